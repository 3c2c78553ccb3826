"""The compactor's plan in a terminal: pools, nodes that would be drained, and why the others stay."""

from collections import Counter
from typing import Final

from karpool.report.compaction.compaction_document import ChosenPart, Compaction, EndPart, NodePart
from karpool.report.formatting import UNKNOWN, amounts, count, per_hour, ratio, sentence
from karpool.report.price_words import prices_words
from karpool.report.reason_table import print_reasons, reason_lines
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Screen, right, wrapped

_DRAINS_SHOWN: Final = 20
_DEFAULTS: Final = (
    "There is no configuration, so every node group takes part: nodes under 75% of CPU and memory, not those that the"
    " autoscaler would keep."
)


def print_compaction(compaction: Compaction, screen: Screen, *, every_node: bool) -> None:
    screen.line(
        screen.text("Compaction", "bold"), f" as of {compaction.time:%Y-%m-%d %H:%M:%S} UTC; requests, not usage"
    )
    numbers = (
        right("nodes"),
        right("under-used"),
        right("marked", spare=1),
        right("to mark", spare=3),
        right("in progress", spare=2),
    )
    marked = Counter(node.pool for node in compaction.nodes if _is_marked(node))
    coming = Counter(node.pool for node in compaction.nodes if node.change == "mark")
    screen.table(
        ("pool", TableColumn("enabled", spare=4), *numbers),
        (
            (name or "no pool", "yes" if pool.enabled else "no", *(f"{number:,}" for number in counts))
            for name, pool in compaction.pools.items()
            for counts in ((pool.nodes, pool.underutilized, marked[name], coming[name], pool.in_progress),)
        ),
    )
    if not compaction.configured:
        screen.line(_DEFAULTS)
    _chosen(compaction.chosen, screen)
    if compaction.end is not None:
        _end(compaction.end, screen)
    staying = [node for node in compaction.nodes if node.change != "drain"]
    if every_node:
        _nodes(compaction.nodes, screen)
    elif staying:
        print_reasons(staying, screen, after=" now")


def _is_marked(node: NodePart) -> bool:
    """Whether a node has its mark already; one that would get it now is to be marked."""
    return node.change == "unmark" or (node.marked and node.change != "mark")


def _chosen(chosen: tuple[ChosenPart, ...], screen: Screen) -> None:
    if not chosen:
        screen.heading("No node would be drained now.")
        return
    screen.heading(f"{count(len(chosen), 'node')} would be cordoned and drained")
    columns = ("node", "pool", right("pods moved"), wrapped("where to"))
    rows = []
    for node in chosen:
        lines = [f"{placement.pod} {screen.arrow} {placement.target or 'nowhere'}" for placement in node.placements]
        lines += [f"warning: {sentence(reason)}" for reason in node.warnings]
        rows.append((node.node, node.pool, f"{len(node.placements):,}", screen.lines(lines)))
    screen.table(columns, rows)


def _end(end: EndPart, screen: Screen) -> None:
    """Where it ends if it is left alone."""
    if not end.drains:
        return
    arrow, gone = screen.arrow, [drain.price_per_hour for drain in end.drains]
    known = [price for price in gone if price is not None]
    rest = " + ?" if 0 < len(known) < len(gone) else ""
    saved = f"{per_hour(sum(known) if known else None)}{rest}"
    screen.heading(f"Left alone, it would drain {count(len(end.drains), 'node')}, which saves {saved}")
    prices = iter(amounts(price for pool in end.pools.values() for price in (pool.price_before, pool.price_after)))
    rows = (
        (
            name or "no pool",
            f"{pool.before:,} {arrow} {pool.after:,}",
            f"{next(prices)} {arrow} {next(prices)}",
            f"{_size(pool.minimum)}-{_size(pool.maximum)}",
        )
        for name, pool in end.pools.items()
    )
    screen.table(("pool", right("nodes"), right("$/h"), right("min-max")), rows)
    names = [drain.node for drain in end.drains]
    screen.line("In this order: " + ", ".join(names[:_DRAINS_SHOWN]) + _more(len(names) - _DRAINS_SHOWN))
    if words := prices_words(end.prices):
        screen.line(words)


def _size(size: int | None) -> str:
    return UNKNOWN if size is None else f"{size:,}"


def _more(left: int) -> str:
    return f" and {left:,} more; --output json has them all" if left > 0 else ""


def _nodes(nodes: tuple[NodePart, ...], screen: Screen) -> None:
    screen.heading(f"All {count(len(nodes), 'node')}")
    columns = ("node", TableColumn("pool", spare=2), right("cpu"), right("memory"), TableColumn("marked", spare=1))
    screen.table(
        (*columns, "change", wrapped("why it stays")),
        (
            (
                node.name,
                node.pool or "no pool",
                ratio(node.cpu_ratio),
                ratio(node.memory_ratio),
                "yes" if _is_marked(node) else "no",
                node.change or "",
                reason_lines(node, screen),
            )
            for node in nodes
        ),
    )
