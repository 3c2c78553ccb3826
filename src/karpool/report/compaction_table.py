"""The compactor's plan as a table for people: pools, nodes that would be drained, and why the others stay."""

import sys

from karpool.report.compaction_document import ChosenPart, Compaction, NodePart
from karpool.report.plan_table import group_by_code, sentence, stay_heading
from karpool.report.tables import is_plain
from karpool.report.terminal import Column, Screen
from karpool.report.words import count, share


def print_compaction(made: Compaction, *, every_node: bool) -> None:
    """Print a decision: pools, nodes that would be drained, and why the others stay."""
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
    _chosen(made.chosen, screen)
    staying = [node for node in made.nodes if node.change != "drain"]
    if every_node:
        _each_node(made.nodes, screen)
    elif staying:
        _reasons(staying, screen)


def _chosen(chosen: tuple[ChosenPart, ...], screen: Screen) -> None:
    if not chosen:
        screen.heading("No node would be drained now.")
        return
    screen.heading(f"{count(len(chosen), 'node')} would be cordoned and drained")
    columns = (Column("node"), Column("pool"), Column("pods moved", "right"), Column("where to", wraps=True))
    rows = []
    for node in chosen:
        lines = [f"{place.pod} {screen.arrow} {place.target or 'nowhere'}" for place in node.placements]
        lines += [f"warning: {sentence(reason)}" for reason in node.warnings]
        rows.append((node.node, node.pool, str(len(node.placements)), screen.lines(lines)))
    screen.table(columns, rows)


def _reasons(staying: list[NodePart], screen: Screen) -> None:
    screen.heading(stay_heading(len(staying)))
    screen.table(
        (Column("reason"), Column("nodes", "right"), Column("for example", wraps=True)),
        ((code, str(len(nodes)), _example(nodes[0], code)) for code, nodes in group_by_code(staying)),
    )


def _each_node(nodes: tuple[NodePart, ...], screen: Screen) -> None:
    screen.heading(f"All {count(len(nodes), 'node')}")
    titles = (Column("node"), Column("pool"), Column("cpu", "right"), Column("memory", "right"), Column("marked"))
    screen.table(
        (*titles, Column("change"), Column("why it stays", wraps=True)),
        (
            (
                node.name,
                node.pool or "no pool",
                share(node.cpu_ratio),
                share(node.memory_ratio),
                "yes" if node.marked else "no",
                node.change or "",
                screen.lines(f"{reason.code}: {sentence(reason, node.name)}" for reason in node.reasons),
            )
            for node in nodes
        ),
    )


def _example(node: NodePart, code: str) -> str:
    """A node and its first reason of a code."""
    reason = next(reason for reason in node.reasons if reason.code == code)
    return f"{node.name}: {sentence(reason, node.name)}"
