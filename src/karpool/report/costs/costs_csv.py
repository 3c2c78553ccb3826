"""Who pays, as lines for a spreadsheet."""

from collections.abc import Iterator
from typing import Final

from karpool.report.costs.costs_document import CostGroupPart, CostsPart
from karpool.report.costs.costs_words import grouped_by
from karpool.report.csv_text import csv_text
from karpool.report.formatting import HOURS_PER_MONTH

_HEAD: Final = (
    "kind",
    "podsBefore",
    "podsAfter",
    "pricePerHourBefore",
    "pricePerHourAfter",
    "pricePerMonthBefore",
    "pricePerMonthAfter",
    "unpricedBefore",
    "unpricedAfter",
)


def costs_csv(costs: CostsPart) -> str:
    """A line for each group, the dearest first, and for what belongs to none; what is not known is empty.

    `kind` tells groups from the rest. Prices are those of what is known; `unpriced` counts what they leave out.
    """
    return csv_text((grouped_by(costs), *_HEAD), (_row(kind, entry) for kind, entry in _entries(costs)))


def _entries(costs: CostsPart) -> Iterator[tuple[str, CostGroupPart]]:
    yield from ((costs.by, entry) for entry in costs.groups)
    yield from (("headroom", costs.headroom), ("system", costs.system), ("idle", costs.idle), ("total", costs.total))


def _row(kind: str, entry: CostGroupPart) -> tuple[object, ...]:
    before, after = entry.before, entry.after
    prices = (before.price_per_hour, after.price_per_hour)
    months = (None if price is None else price * HOURS_PER_MONTH for price in prices)
    return (entry.name, kind, before.pods, after.pods, *prices, *months, before.unpriced, after.unpriced)
