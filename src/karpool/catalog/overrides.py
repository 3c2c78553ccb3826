"""Prices that the user knows better: per type, per type and capacity type, by a factor, spot as a share, discounts.

The order is fixed: the factor changes the source's prices; an override replaces that; a spot fraction is taken of the
on-demand price that came out; a spot override replaces that; discounts are taken off what no override says.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from karpool.catalog.discounts import Discount, discount_on
from karpool.catalog.instance_types import Catalog, InstanceType, Offering, cheapest
from karpool.model.labels import CAPACITY_TYPES, RESERVED, SPOT
from karpool.wire.problems import InputError

PriceOverrides = Mapping[tuple[str, str], float]
_MARKET: Final = (SPOT, RESERVED)


@dataclass(frozen=True)
class PriceChanges:
    """All changes to a source's prices; an override without a capacity type is not for spot or reserved."""

    factor: float = 1.0
    spot_fraction: float | None = None
    overrides: PriceOverrides = field(default_factory=dict)
    discounts: tuple[Discount, ...] = ()


def parse_price(text: str) -> tuple[tuple[str, str], float]:
    """Read `TYPE=PRICE` or `TYPE:CAPACITY_TYPE=PRICE`."""
    what, _, amount = text.rpartition("=")
    name, _, kind = what.partition(":")
    try:
        price = float(amount)
    except ValueError:
        price = math.nan
    if not name or (":" in what and kind not in CAPACITY_TYPES) or not _sensible(price):
        raise InputError.at(
            "--price",
            f"{text!r} is no price; write TYPE=PRICE or TYPE:CAPACITY_TYPE=PRICE, such as m5.large=0.08 or"
            f" m5.large:spot=0.03 (capacity types: {', '.join(CAPACITY_TYPES)})",
        )
    return (name, kind), price


def parse_prices(texts: Iterable[str]) -> dict[tuple[str, str], float]:
    """Read several prices; the last one for a type and capacity type counts."""
    return dict(parse_price(text) for text in texts)


def checked_amount(option: str, value: float) -> float:
    """The value, if it is a number that can be a price or a share of one."""
    if not _sensible(value):
        raise InputError.at(option, f"{value} must be a number that is not negative")
    return value


def _sensible(value: float) -> bool:
    return math.isfinite(value) and value >= 0


def scaled(price: float | None, factor: float) -> float | None:
    """A price times a factor, as on paper: 0.096 times 0.9 is 0.0864."""
    return None if price is None else float(Decimal(repr(price)) * Decimal(repr(factor)))


def repriced(entry: InstanceType, changes: PriceChanges) -> InstanceType:
    first = [_listed(entry.name, offering, changes) for offering in entry.offerings]
    if changes.spot_fraction is not None:
        first = _spot_as_share(entry.name, first, changes.spot_fraction, changes.overrides)
    if changes.discounts:
        first = [_discounted(entry, offering, changes) for offering in first]
    return replace(entry, offerings=tuple(first))


def _discounted(entry: InstanceType, offering: Offering, changes: PriceChanges) -> Offering:
    """An offering at its discount; a price that the user set is what is paid."""
    if offering.price is None or override_for(entry.name, offering, changes.overrides) is not None:
        return offering
    discount = discount_on(entry, offering, changes.discounts)
    return offering if discount is None else replace(offering, price=scaled(offering.price, discount.factor))


def _listed(name: str, offering: Offering, changes: PriceChanges) -> Offering:
    override = override_for(name, offering, changes.overrides)
    price = scaled(offering.price, changes.factor) if override is None else override
    return offering if price == offering.price else replace(offering, price=price)


def _spot_as_share(name: str, offerings: list[Offering], fraction: float, overrides: PriceOverrides) -> list[Offering]:
    regular = [offering for offering in offerings if offering.capacity_type not in _MARKET]
    by_zone = {offering.zone: offering.price for offering in regular}
    anywhere = cheapest(offering.price for offering in regular)

    def changed(offering: Offering) -> Offering:
        price = scaled(by_zone.get(offering.zone, anywhere), fraction)
        keep = offering.capacity_type != SPOT or price is None or (name, SPOT) in overrides
        return offering if keep else replace(offering, price=price)

    return [changed(offering) for offering in offerings]


def override_for(name: str, offering: Offering, overrides: PriceOverrides) -> float | None:
    exact = overrides.get((name, offering.capacity_type))
    return overrides.get((name, "")) if exact is None and offering.capacity_type not in _MARKET else exact


def unknown_types(catalog: Catalog) -> list[str]:
    """Types with an override that the catalogue does not have: misspelt, most likely."""
    return sorted({name for name, _ in catalog.price_overrides if name not in catalog.by_name})
