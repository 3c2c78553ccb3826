"""A catalogue as far as it is available: without offerings that ran out, with what is left of reservations."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from karpool.catalog.instance_types import Catalog, InstanceType, Offering

OfferingKey = tuple[str, str, str]
"""Type, zone and capacity type."""


def offering_key(entry: InstanceType, offering: Offering) -> OfferingKey:
    return entry.name, offering.zone, offering.capacity_type


def obtainable(catalog: Catalog, short: Collection[OfferingKey], reserved: Mapping[str, int]) -> Catalog:
    """The catalogue with short offerings unavailable, and reservations less what is taken of them by now."""
    types = tuple(_obtainable_type(entry, short, reserved) for entry in catalog.types)
    return replace(catalog, types=types) if types != catalog.types else catalog


def _obtainable_type(entry: InstanceType, short: Collection[OfferingKey], reserved: Mapping[str, int]) -> InstanceType:
    offerings = tuple(_obtainable_offering(entry, offering, short, reserved) for offering in entry.offerings)
    return entry if offerings == entry.offerings else replace(entry, offerings=offerings)


def _obtainable_offering(
    entry: InstanceType, offering: Offering, short: Collection[OfferingKey], reserved: Mapping[str, int]
) -> Offering:
    if offering_key(entry, offering) in short:
        return replace(offering, available=False)
    taken = reserved.get(offering.reservation_id or "", 0)
    if not taken:
        return offering
    left = max(0, offering.reservation_capacity - taken)
    return replace(offering, reservation_capacity=left)


def with_free_slots(catalog: Catalog, count: int) -> Catalog:
    """The catalogue as it would be with so many more slots in every reservation that is offered; the same without."""
    types = tuple(_with_free_slots(entry, count) for entry in catalog.types)
    return replace(catalog, types=types) if types != catalog.types else catalog


def _with_free_slots(entry: InstanceType, count: int) -> InstanceType:
    if not any(offering.available and offering.reservation_id is not None for offering in entry.offerings):
        return entry
    offerings = (
        replace(offering, reservation_capacity=max(0, offering.reservation_capacity) + count)
        if offering.available and offering.reservation_id is not None
        else offering
        for offering in entry.offerings
    )
    return replace(entry, offerings=tuple(offerings))
