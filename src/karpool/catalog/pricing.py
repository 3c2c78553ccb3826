"""What a node costs, and what a new one would cost; an unknown price is None, never zero."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.model.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODEPOOL,
    ON_DEMAND,
    OS,
    REGION,
    RESERVED,
    SPOT,
    ZONE,
    canonical,
)
from karpool.model.requirements import ANY, NO_REQUIREMENTS, NOTHING, Requirements

PRICE_LABEL: Final = "eks-node-viewer/instance-price"
TOLD_PRICE: Final = "karpool.sh/told-price"
"""The price that the user told of a node's group; it is a label in memory alone, and counts where no other is known."""
_NO_ZONE: Final = re.compile(r"[0-9]?")
"""How the zone of a node is labelled that is in none: in Azure with the number of its fault domain."""

# How clouds mark their spot nodes where Karpenter does not; a node that carries none of these marks is on demand.
_SPOT_MARKS: Final = (
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    ("cloud.google.com/gke-preemptible", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)


def capacity_type_of(labels: Mapping[str, str]) -> str:
    """A node's capacity type, by Karpenter's label or the mark of its cloud."""
    written = labels.get(CAPACITY_TYPE)
    if written is not None:
        return written
    return SPOT if any(labels.get(key) == value for key, value in _SPOT_MARKS) else ON_DEMAND


def label_of(labels: Mapping[str, str], key: str) -> str:
    """A label by its current name or a name that it had; empty when there is none."""
    value = labels.get(key)
    if value is None:
        value = next((value for name, value in labels.items() if canonical(name) == key), "")
    return value


def price_on_label(labels: Mapping[str, str]) -> float | None:
    """The hourly price that a node carries as a label, or that the user told of its group."""
    try:
        price = float(labels.get(PRICE_LABEL) or labels.get(TOLD_PRICE, "nan"))
    except ValueError:
        return None
    return price if math.isfinite(price) and price >= 0 else None


def node_price(catalog: Catalog, labels: Mapping[str, str]) -> float | None:
    """What a node with these labels costs an hour, the fee included; None if it is unknown.

    The price is that of its offering, if it has one. Without one, reserved capacity costs nothing beyond the fee, and
    any other node what its price label says.
    """
    offering = node_offering(catalog, labels)
    if offering is not None:
        return catalog.price(offering)
    written = 0.0 if capacity_type_of(labels) == RESERVED else price_on_label(labels)
    return None if written is None else catalog.with_fee(written)


def node_offering(catalog: Catalog, labels: Mapping[str, str]) -> Offering | None:
    """The offering of known price that a node with these labels is of, if there is one, available or not.

    It is that of its type in its zone, capacity type and pool; of a node in no zone, that of its region, if its price
    is the same in all zones.
    """
    kind = capacity_type_of(labels)
    entry = catalog.by_name.get(label_of(labels, INSTANCE_TYPE))
    if entry is None or not _sold_with(entry, label_of(labels, OS)):
        return None
    zone, pool = label_of(labels, ZONE), labels.get(NODEPOOL, "")
    priced = [
        offering
        for offering in entry.offerings
        if offering.price is not None and _is_at(offering, CAPACITY_TYPE, kind) and _is_at(offering, NODEPOOL, pool)
    ]
    here = next((offering for offering in priced if _is_at(offering, ZONE, zone)), None)
    if here is None and has_no_zone(zone):
        here = _everywhere(entry, priced, label_of(labels, REGION))
    return here


def has_no_zone(zone: str) -> bool:
    """Whether the label of a zone names none."""
    return _NO_ZONE.fullmatch(zone) is not None


def _sold_with(entry: InstanceType, system: str) -> bool:
    """Whether prices of a type include what an operating system costs; a node that does not name one runs Linux."""
    return not system or entry.requirements.get(OS, ANY).has(system)


def _everywhere(entry: InstanceType, priced: Iterable[Offering], region: str) -> Offering | None:
    """An offering that stands for all of a region, because they cost the same there."""
    usual = entry.requirements.get(REGION, NOTHING)
    there = [offering for offering in priced if region and offering.requirements.get(REGION, usual).has(region)]
    return there[0] if len({offering.price for offering in there}) == 1 else None


def _is_at(offering: Offering, key: str, value: str) -> bool:
    wanted = offering.requirements.get(key)
    return wanted is None or wanted.has(value)


def launchable(entry: InstanceType, requirements: Requirements) -> Iterator[Offering]:
    """The available offerings of a type that can meet requirements; keys that these leave open are free."""
    return (o for o in entry.offerings if o.launchable and _meet(o.requirements, requirements))


# Hundreds of types have offerings in the same few zones, and are compared with the same requirements in a row.
@lru_cache(maxsize=16384)
def _meet(offered: Requirements, wanted: Requirements) -> bool:
    return offered.meets(wanted)


def cheapest_launch(entry: InstanceType, requirements: Requirements = NO_REQUIREMENTS) -> Offering | None:
    """The cheapest offering that can be launched; one of unknown price only if there is no other."""
    return min(launchable(entry, requirements), key=_known_or_last, default=None)


def _known_or_last(offering: Offering) -> float:
    return math.inf if offering.price is None else offering.price


def cheapest_launch_price(
    entry: InstanceType, requirements: Requirements = NO_REQUIREMENTS, *, catalog: Catalog
) -> float | None:
    """What the cheapest launch costs an hour, the fee included; None if there is none or its price is not known."""
    offering = cheapest_launch(entry, requirements)
    return None if offering is None else catalog.price(offering)


def by_price(types: Iterable[InstanceType], requirements: Requirements = NO_REQUIREMENTS) -> list[InstanceType]:
    """Types by the price of their cheapest launch, then by name; unknown prices and types without a launch last."""

    def rank(entry: InstanceType) -> tuple[float, bool, str]:
        offering = cheapest_launch(entry, requirements)
        return (math.inf if offering is None else _known_or_last(offering), offering is None, entry.name)

    return sorted(types, key=rank)
