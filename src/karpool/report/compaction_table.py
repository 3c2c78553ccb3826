"""The compactor's plan as a table for people: pools, nodes that would be drained, and why the others stay."""

import sys
from typing import TYPE_CHECKING

from karpool.report.compaction_document import ChosenPart, Compaction, NodePart
from karpool.report.tables import is_plain
from karpool.report.words import count

if TYPE_CHECKING:
    from karpool.report.terminal import Screen


def show(made: Compaction, *, every_node: bool) -> None:
    """Print a decision: pools, nodes that would be drained, and why the others stay."""
    from karpool.report.terminal import Column, Screen

    screen = Screen(sys.stdout, plain=is_plain(sys.stdout))
    screen.line(screen.text("Compaction", "bold"), f" as of {made.time:%Y-%m-%d %H:%M:%S} UTC; requests, not usage")
    numbers = ("nodes", "under-used", "marked", "in progress")
    screen.table(
        (Column("pool"), Column("enabled"), *(Column(title, "right") for title in numbers)),
        (
            (name or "no pool", "yes" if pool.enabled else "no", *map(str, shown))
            for name, pool in made.pools.items()
            for shown in ((pool.nodes, pool.underutilized, pool.marked, pool.in_progress),)
        ),
    )
    _show_chosen(made.chosen, screen)
    staying = [node for node in made.nodes if node.change != "drain"]
    if every_node:
        _show_nodes(made.nodes, screen)
    elif staying:
        _show_reasons(staying, screen)


def _show_chosen(chosen: tuple[ChosenPart, ...], screen: "Screen") -> None:
    from karpool.report.terminal import Column

    if not chosen:
        screen.heading("No node would be drained now.")
        return
    screen.heading(f"{count(len(chosen), 'node')} would be cordoned and drained")
    columns = (Column("node"), Column("pool"), Column("pods moved", "right"), Column("where to", wraps=True))
    rows = []
    for node in chosen:
        lines = [f"{place.pod} {screen.arrow} {place.target or 'nowhere'}" for place in node.placements]
        lines += [f"warning: {reason.object}: {reason.message}" for reason in node.warnings]
        rows.append((node.node, node.pool, str(len(node.placements)), screen.lines(lines)))
    screen.table(columns, rows)


def _show_reasons(staying: list[NodePart], screen: "Screen") -> None:
    from karpool.report.terminal import Column

    groups: dict[str, list[NodePart]] = {}
    for node in staying:
        for code in dict.fromkeys(reason.code for reason in node.reasons):
            groups.setdefault(code, []).append(node)
    screen.heading(f"Why {count(len(staying), 'node')} stay" + ("s" if len(staying) == 1 else ""))
    screen.table(
        (Column("reason"), Column("nodes", "right"), Column("for example", wraps=True)),
        (
            (code, str(len(nodes)), f"{nodes[0].name}: {_said(nodes[0], code)}")
            for code, nodes in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
        ),
    )


def _show_nodes(nodes: tuple[NodePart, ...], screen: "Screen") -> None:
    from karpool.report.terminal import Column

    screen.heading(f"All {count(len(nodes), 'node')}")
    titles = (Column("node"), Column("pool"), Column("cpu", "right"), Column("memory", "right"), Column("marked"))
    screen.table(
        (*titles, Column("change"), Column("why it stays", wraps=True)),
        (
            (
                node.name,
                node.pool or "no pool",
                _percent(node.cpu_ratio),
                _percent(node.memory_ratio),
                "yes" if node.marked else "no",
                node.change or "",
                screen.lines(f"{reason.code}: {_said(node, reason.code)}" for reason in node.reasons),
            )
            for node in nodes
        ),
    )


def _said(node: NodePart, code: str) -> str:
    """The node's first reason of a code, led by the pod it is about."""
    reason = next(reason for reason in node.reasons if reason.code == code)
    return f"{reason.object}: {reason.message}" if reason.object.startswith("Pod ") else reason.message


def _percent(ratio: float | None) -> str:
    return "?" if ratio is None else f"{ratio:.0%}"
