"""Who pays, in a terminal."""

from typing import Final

from karpool.report.costs.costs_document import CostGroupPart, CostPart, CostsPart
from karpool.report.costs.costs_words import NO_LABEL, grouped_by, has_costs
from karpool.report.formatting import UNKNOWN, amounts
from karpool.report.table_layout import TableColumn
from karpool.report.terminal import Screen, right

_SHOWN: Final = 20


def print_costs(costs: CostsPart, screen: Screen, *, every_group: bool) -> None:
    """A line for each group, the dearest first, then what belongs to none, and the total."""
    screen.heading(f"Who pays, by {grouped_by(costs)}")
    screen.line("A pod pays for what it requests of its node's CPU and memory; what nobody requests is idle.")
    shown = costs.groups if every_group else costs.groups[:_SHOWN]
    others = [entry for entry in (costs.headroom, costs.system, costs.idle) if has_costs(entry)]
    rows = [*shown, *others, costs.total]
    before = _prices([entry.before for entry in rows])
    after = _prices([entry.after for entry in rows])
    saved = amounts(map(_saved, rows))
    columns = (
        TableColumn(grouped_by(costs)),
        right("pods", spare=1),
        right("$/h today"),
        right("after"),
        right("saved", spare=1),
    )
    names = [*(entry.name or NO_LABEL for entry in shown), *(entry.name for entry in (*others, costs.total))]
    pods = ["" if entry in (costs.system, costs.idle) else _pods(entry, screen) for entry in rows]
    screen.table(columns, zip(names, pods, before, after, saved, strict=True))
    if len(shown) < len(costs.groups):
        screen.line(f"and {len(costs.groups) - len(shown):,} more; --all lists them")
    if any(part.unpriced for entry in rows for part in (entry.before, entry.after)):
        screen.line(
            f"{UNKNOWN}: pods on nodes of unknown price; --catalog FILE, --price and --groups FILE can name prices."
        )


def _pods(entry: CostGroupPart, screen: Screen) -> str:
    before, after = f"{entry.before.pods:,}", f"{entry.after.pods:,}"
    return before if before == after else f"{before} {screen.arrow} {after}"


def _prices(parts: list[CostPart]) -> list[str]:
    """Prices of one column; a price that is known in part says so."""
    written = amounts(part.price_per_hour for part in parts)
    return [
        f"{text} + {UNKNOWN}" if part.unpriced and part.price_per_hour is not None else text
        for part, text in zip(parts, written, strict=True)
    ]


def _saved(entry: CostGroupPart) -> float | None:
    before, after = entry.before, entry.after
    if before.price_per_hour is None or after.price_per_hour is None or before.unpriced != after.unpriced:
        return None
    return before.price_per_hour - after.price_per_hour
