"""What a user pays less than the price list says: savings plans, committed use, negotiated percentages.

A discount names types by a pattern, and if need be a cloud or regions and a capacity type:
`m7*=31%`, `eu-west-1/m7*=31%`, `aws/*:spot=5%`. Like commitments, it is for on-demand capacity unless it says spot.
Of several that match the last one counts; they do not add up.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Final

from karpool.catalog.instance_types import InstanceType, Offering, PriceOrigin
from karpool.catalog.places import place_of
from karpool.model.labels import ON_DEMAND, RESERVED, SPOT
from karpool.wire.problems import InputError, suggestion

OPTION: Final = "--discount"
_KINDS: Final = (ON_DEMAND, SPOT)
_WHOLE: Final = 100
_SYNTAX: Final = re.compile(
    r"((?P<where>[^\s/:=]+)/)?(?P<types>[^\s/:=]+)(:(?P<kind>[^\s/:=]*))?=(?P<percent>-?[0-9]+(\.[0-9]+)?)\s*%"
)


@dataclass(frozen=True, slots=True)
class Discount:
    """A percentage off the price of some types; `text` is how it was written."""

    text: str
    types: str
    percent: Decimal
    where: str = ""
    capacity_type: str = ON_DEMAND

    @property
    def factor(self) -> float:
        """What is left to pay of one dollar."""
        return float((_WHOLE - self.percent) / _WHOLE)

    def names(self, entry: InstanceType) -> bool:
        return fnmatchcase(entry.name, self.types)

    def covers(self, cloud: str, region: str) -> bool:
        """Whether it holds in a region of a cloud; without limits it holds everywhere."""
        return not self.where or self.where == cloud or fnmatchcase(region, self.where)


def parse_discounts(texts: Iterable[str]) -> tuple[Discount, ...]:
    """Read several discounts."""
    return tuple(map(parse_discount, texts))


def parse_discount(text: str) -> Discount:
    """Read `[WHERE/]TYPES[:CAPACITY_TYPE]=PERCENT%`."""
    found = _SYNTAX.fullmatch(text.strip())
    if found is None or found["kind"] not in (None, *_KINDS):
        raise InputError.at(
            OPTION,
            f"{text!r} is no discount; write TYPES=PERCENT% such as 'm7*=31%', 'm7*:spot=5%' for spot, or"
            " 'eu-west-1/m7*=31%' or 'aws/*=5%' for a region or a cloud",
        )
    percent = Decimal(found["percent"])
    if not 0 <= percent <= _WHOLE:
        raise InputError.at(OPTION, f"{text!r}: {percent} % is out of range; a discount is from 0 to 100 %")
    return Discount(text.strip(), found["types"], percent, found["where"] or "", found["kind"] or ON_DEMAND)


def check_types(discounts: Iterable[Discount], types: Sequence[InstanceType]) -> None:
    """Refuse a discount on types that there are not: misspelt, most likely."""
    for discount in discounts:
        if not any(map(discount.names, types)):
            names = [name for entry in types for name in (entry.name.partition(".")[0], entry.name)]
            hint = suggestion(discount.types.strip("*?"), dict.fromkeys(names))
            raise InputError.at(OPTION, f"{discount.text!r}: the catalogue has no type {discount.types!r}{hint}")


def discount_on(entry: InstanceType, offering: Offering, discounts: Sequence[Discount]) -> Discount | None:
    """The discount that an offering of a type gets, if any: the last that matches."""
    kind = offering.capacity_type or ON_DEMAND
    if kind == RESERVED:
        return None
    for discount in reversed(discounts):
        if discount.capacity_type == kind and discount.names(entry) and _is_there(discount, entry, offering):
            return discount
    return None


def with_discounts(
    origins: Iterable[PriceOrigin], discounts: Sequence[Discount], types: Sequence[InstanceType]
) -> tuple[PriceOrigin, ...]:
    """The origins of prices, with the discounts that change some of them."""
    clouds = {entry.name: cloud_of(entry) for entry in types if any(rule.names(entry) for rule in discounts)}

    def in_force(discount: Discount, origin: PriceOrigin) -> bool:
        named = (entry for entry in types if discount.names(entry) and origin.cloud in ("", clouds[entry.name]))
        here = not origin.region or discount.covers(origin.cloud, origin.region)
        # A source that names no region, such as a file, may have types of several ones.
        return here and origin.known and any(_is_there(discount, entry, o) for entry in named for o in entry.offerings)

    return tuple(
        origin._replace(discounts=tuple(rule.text for rule in discounts if in_force(rule, origin)))
        for origin in origins
    )


def cloud_of(entry: InstanceType) -> str:
    """The cloud that sells a type, as its labels tell; empty where they do not."""
    return place_of(_labels(entry))[0]


def _is_there(discount: Discount, entry: InstanceType, offering: Offering) -> bool:
    return not discount.where or discount.covers(*place_of({**_labels(entry), **_labels(offering)}))


def _labels(sold: InstanceType | Offering) -> Mapping[str, str]:
    """Labels that have one value; of those with several only that they are there."""
    return {
        key: next(iter(allowed.values)) if len(allowed.values) == 1 else ""
        for key, allowed in sold.requirements.items()
        if allowed.values and not allowed.complement
    }
