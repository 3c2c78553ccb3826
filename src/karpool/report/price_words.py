"""Where the prices of a report come from, as a part of documents and in a sentence."""

from collections.abc import Iterable, Sequence

from karpool.catalog.instance_types import PriceOrigin
from karpool.report.plans.document import PricesPart


def prices_parts(origins: Iterable[PriceOrigin]) -> tuple[PricesPart, ...]:
    """The sources of a catalogue as documents write them."""
    return tuple(
        PricesPart(**{name: getattr(origin, name) for name in PricesPart.__struct_fields__}) for origin in origins
    )


def prices_words(prices: Sequence[PricesPart]) -> str:
    """Cloud, region, day and source of prices, and discounts; empty if nothing is known of them."""
    if not prices:
        return ""
    discounts = dict.fromkeys(text for part in prices for text in part.discounts)
    less = f" Discounts: {', '.join(discounts)}." if discounts else ""
    return f"Prices: {'; '.join(map(_words, prices))}.{less}"


def _words(part: PricesPart) -> str:
    where = " ".join(filter(None, (part.cloud, part.region)))
    if not part.known:
        return f"{where}: ? (no price list)"
    listed = f"{part.source} of {part.date}" if part.date else part.source
    return f"{where}, {listed}" if where else listed
