"""A fleet in a terminal: what each cluster could save, and what keeps most money where it is."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from karpool.report.fleet_document import NODES, FleetDocument, FleetRow
from karpool.report.formatting import amount, amounts, count, per_hour, per_month, percent

if TYPE_CHECKING:
    from karpool.report.terminal import Screen

_MOST_BLOCKERS: Final = 10
_MOST_WARNINGS: Final = 10
_MOST_NAMES: Final = 3
_LONGEST: Final = 300


def print_fleet(document: FleetDocument, screen: "Screen") -> None:
    from karpool.report.terminal import right, wrapped

    screen.line(
        screen.text(count(document.planned, "cluster"), "bold"),
        f" as of {document.time:%Y-%m-%d %H:%M:%S} UTC; requests, not usage",
    )
    if document.planned:
        screen.line(_headline(document))
    screen.line("")
    columns = (
        "cluster",
        right("nodes", spare=2),
        right("then", spare=2, name="nodes then"),
        right("$/h"),
        right("saves $/h"),
        right("%", spare=1),
        right("evictions"),
        wrapped("what keeps most money where it is"),
    )
    clusters = document.clusters
    prices = zip(
        amounts(row.price_before for row in clusters), amounts(row.savings_per_hour for row in clusters), strict=True
    )
    screen.table(columns, (_row(row, *money) for row, money in zip(clusters, prices, strict=True)))
    if document.blockers:
        means = "nodes that stay for it cost" if document.measure == NODES else "the least possible price falls by"
        screen.heading(f"What keeps most money where it is, in all of them: $/h that {means}")
        listed = document.blockers[:_MOST_BLOCKERS]
        prices_held = amounts(part.price_per_hour for part in listed)
        rows = (
            [price, part.code, f"{part.nodes:,}", f"{part.clusters:,}"]
            for part, price in zip(listed, prices_held, strict=True)
        )
        screen.table((right("$/h"), "what", right("nodes"), right("clusters")), rows)
    lines = list(warning_lines(document.clusters))
    if lines:
        screen.heading("What may mislead")
    for line in lines:
        screen.line(line)
    if document.failed:
        screen.line("")
        screen.line(f"{count(document.failed, 'cluster')} could not be planned; the sums leave them out.")
    if any(row.unpriced_nodes for row in document.clusters):
        screen.line("Prices of some nodes are not known; the sums leave them out.")
    if not document.complete:
        screen.line("Not complete: not all clusters were planned.")


def _headline(document: FleetDocument) -> str:
    saved = f"{per_hour(document.savings_per_hour)} ({per_month(document.savings_per_hour)})"
    who = "It" if document.planned == 1 else "They"
    return (
        f"{who} could save {saved} of {per_hour(document.price_before)}, with {document.nodes_after:,} nodes instead of"
        f" {document.nodes_before:,} and {count(document.evictions, 'eviction')}."
    )


def _row(row: FleetRow, price: str, saved: str) -> list[str]:
    if row.error:
        return [row.name, "", "", "", "", "", "", _shortened(row.error)]
    return [
        row.name,
        f"{row.nodes_before:,}",
        f"{row.nodes_after:,}",
        price,
        saved,
        percent(row.savings_percent),
        f"{row.evictions:,}",
        ", ".join(f"{blocker.code} {amount(blocker.price_per_hour)}" for blocker in row.blockers[:2]) or _stays(row),
    ]


def _stays(row: FleetRow) -> str:
    return f"{row.stays}: {count(row.stays_nodes, 'node')}" if row.stays else ""


def warning_lines(clusters: Iterable[FleetRow]) -> Iterator[str]:
    """Each warning once, with the clusters that it is about; those that concern most clusters first."""
    about: dict[str, list[str]] = {}
    for row in clusters:
        for text in dict.fromkeys(row.warnings):
            about.setdefault(text, []).append(row.name)
    ordered = sorted(about.items(), key=lambda entry: -len(entry[1]))
    for text, names in ordered[:_MOST_WARNINGS]:
        some = len(names) <= _MOST_NAMES
        yield f"{', '.join(names) if some else f'{len(names):,} clusters, such as {names[0]}'}: {text}"
    if len(ordered) > _MOST_WARNINGS:
        yield f"and {len(ordered) - _MOST_WARNINGS:,} more warnings; --output json has all"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} ..."
