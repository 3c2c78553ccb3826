"""The compactor's plan in a terminal: pools, nodes that would be drained, and why the others stay."""

from karpool.report.compaction_document import ChosenPart, Compaction, NodePart
from karpool.report.formatting import count, ratio, sentence
from karpool.report.reason_table import print_reasons, reason_lines
from karpool.report.terminal import Screen, right, wrapped


def print_compaction(compaction: Compaction, screen: Screen, *, every_node: bool) -> None:
    screen.line(
        screen.text("Compaction", "bold"), f" as of {compaction.time:%Y-%m-%d %H:%M:%S} UTC; requests, not usage"
    )
    numbers = ("nodes", "under-used", "marked", "in progress")
    screen.table(
        ("pool", "enabled", *(right(title) for title in numbers)),
        (
            (name or "no pool", "yes" if pool.enabled else "no", *map(str, counts))
            for name, pool in compaction.pools.items()
            for counts in ((pool.nodes, pool.underutilized, pool.marked, pool.in_progress),)
        ),
    )
    _chosen(compaction.chosen, screen)
    staying = [node for node in compaction.nodes if node.change != "drain"]
    if every_node:
        _nodes(compaction.nodes, screen)
    elif staying:
        print_reasons(staying, screen)


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
        rows.append((node.node, node.pool, str(len(node.placements)), screen.lines(lines)))
    screen.table(columns, rows)


def _nodes(nodes: tuple[NodePart, ...], screen: Screen) -> None:
    screen.heading(f"All {count(len(nodes), 'node')}")
    columns = ("node", "pool", right("cpu"), right("memory"), "marked")
    screen.table(
        (*columns, "change", wrapped("why it stays")),
        (
            (
                node.name,
                node.pool or "no pool",
                ratio(node.cpu_ratio),
                ratio(node.memory_ratio),
                "yes" if node.marked else "no",
                node.change or "",
                reason_lines(node, screen),
            )
            for node in nodes
        ),
    )
