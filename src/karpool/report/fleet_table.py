"""A fleet in a terminal: what each cluster could save, and what keeps most money where it is."""

from typing import TYPE_CHECKING, Final

from karpool.report.fleet_document import FleetDocument, FleetRow
from karpool.report.formatting import amount, count, per_hour, per_month, percent

if TYPE_CHECKING:
    from karpool.report.terminal import Screen

_MOST_BLOCKERS: Final = 10
_LONGEST: Final = 120


def print_fleet(document: FleetDocument, screen: "Screen") -> None:
    from karpool.report.terminal import right, wrapped

    saved = f"{per_hour(document.savings_per_hour)} ({per_month(document.savings_per_hour)})"
    screen.line(
        screen.text(count(document.planned, "cluster"), "bold"),
        f" as of {document.time:%Y-%m-%d %H:%M:%S} UTC; requests, not usage",
    )
    screen.line(
        f"They could save {saved} of {per_hour(document.price_before)}, with {document.nodes_after:,} nodes instead of"
        f" {document.nodes_before:,} and {count(document.evictions, 'eviction')}."
    )
    screen.line("")
    columns = (
        "cluster",
        right("nodes"),
        right("then"),
        right("$/h"),
        right("saves $/h"),
        right("%"),
        right("evictions"),
        wrapped("what keeps most money where it is"),
    )
    screen.table(columns, (_row(row) for row in document.clusters))
    if document.blockers:
        screen.heading("What keeps most money where it is, in all of them")
        listed = document.blockers[:_MOST_BLOCKERS]
        rows = ([amount(part.price_per_hour), part.code, str(part.nodes), str(part.clusters)] for part in listed)
        screen.table((right("$/h"), "what", right("nodes"), right("clusters")), rows)
    if document.failed:
        screen.line("")
        screen.line(f"{count(document.failed, 'cluster')} could not be planned; the sums leave them out.")
    if any(row.unpriced_nodes for row in document.clusters):
        screen.line("Prices of some nodes are not known; the sums leave them out.")
    if not document.complete:
        screen.line("Not complete: not all clusters were planned.")


def _row(row: FleetRow) -> list[str]:
    if row.error:
        return [row.name, "", "", "", "", "", "", row.error[:_LONGEST]]
    return [
        row.name,
        str(row.nodes_before),
        str(row.nodes_after),
        amount(row.price_before),
        amount(row.savings_per_hour),
        percent(row.savings_percent),
        f"{row.evictions:,}",
        ", ".join(f"{blocker.code} {amount(blocker.price_per_hour)}" for blocker in row.blockers[:2]),
    ]
