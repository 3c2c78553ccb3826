"""Instance types and their offerings, as every source of a catalogue gives them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

from karpool.model.devices import NO_DEVICES, TypeDevices
from karpool.model.labels import (
    CAPACITY_TYPE,
    CLASS_LABELS,
    RESERVED,
    WELL_KNOWN,
    ZONE,
    machine_prefix,
    of_provider,
)
from karpool.model.requirements import Requirement, Requirements, one_of
from karpool.wire.quantity import ZERO, Quantity

Amounts = Mapping[str, Quantity]


@dataclass(frozen=True)
class Offering:
    """An instance type in a zone, as a capacity type, for a price; reserved ones in a limited number."""

    requirements: Requirements
    price: float | None
    available: bool = True
    reservation_id: str | None = None
    reservation_capacity: int = 0

    @cached_property
    def zone(self) -> str:
        """The offering's zone; empty when the source names none."""
        return _only_value(self.requirements, ZONE)

    @cached_property
    def capacity_type(self) -> str:
        """The offering's capacity type; empty when the source names none."""
        return _only_value(self.requirements, CAPACITY_TYPE)

    @property
    def reserved(self) -> bool:
        """Whether the offering is paid for already."""
        return self.capacity_type == RESERVED

    @property
    def launchable(self) -> bool:
        """Whether a node can be had now; a reservation may be all right, and full."""
        full = self.reserved and self.reservation_id is not None and self.reservation_capacity <= 0
        return self.available and not full


def _only_value(requirements: Requirements, key: str) -> str:
    wanted = requirements.get(key)
    return next(iter(wanted.values)) if wanted is not None and len(wanted.values) == 1 else ""


@dataclass(frozen=True)
class InstanceType:
    """A kind of machine: its labels as requirements, what it holds, what the system takes, where it is sold."""

    name: str
    requirements: Requirements
    capacity: Amounts
    overhead: Amounts
    offerings: tuple[Offering, ...]
    devices: TypeDevices = NO_DEVICES
    """What the drivers of devices will publish on its nodes."""
    observed: bool = False
    """Whether the type is known only from nodes that exist; such a type can be kept, not launched."""

    def meets(self, wanted: Requirements) -> bool:
        """Whether a machine of this type can be what is wanted; labels of providers must be known to be there."""
        return self.requirements.meets(wanted) and next(unknown_labels(wanted, self), None) is None

    @cached_property
    def described(self) -> frozenset[str]:
        """What those labels of machines begin with of which the source knows some: what it leaves out is not there."""
        return frozenset(map(machine_prefix, self.requirements)) - {""}

    @cached_property
    def allocatable(self) -> dict[str, Quantity]:
        """What is left for pods: capacity less overhead, memory also less huge pages, never below zero."""
        left = {name: max(ZERO, amount - self.overhead.get(name, ZERO)) for name, amount in self.capacity.items()}
        huge = sum(amount.nano for name, amount in self.capacity.items() if name.startswith("hugepages-"))
        if huge:
            left["memory"] = max(ZERO, left.get("memory", ZERO) - Quantity(huge))
        return left


def unknown_labels(wanted: Requirements, entry: InstanceType) -> Iterator[str]:
    """The wanted labels that only a provider could set and of which nobody knows whether a type has them."""
    for key, allowed in wanted.items():
        if key not in entry.requirements and not allowed.given and of_provider(key):
            prefix = machine_prefix(key)
            if not allowed.absent or (prefix and prefix not in entry.described):
                yield key


class PriceOrigin(NamedTuple):
    """Where prices come from: the price list, the day it is of, and the cloud and region that it is for, if any."""

    source: str
    cloud: str = ""
    region: str = ""
    date: str = ""
    known: bool = True
    """Whether there are prices at all: of some regions only the machines are known."""
    discounts: tuple[str, ...] = ()
    """The user's discounts that are taken off some of these prices, as they are written."""
    unlisted_zones: tuple[str, ...] = ()
    """The ids of zones that nodes show and the price list of their region does not have."""


@dataclass(frozen=True)
class Catalog:
    """All instance types, in a stable order, and a fee that every node costs on top."""

    types: tuple[InstanceType, ...]
    node_fee: float = 0.0
    price_overrides: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Prices set by the user, by type and capacity type; they hold for types that are observed later, too."""
    origins: tuple[PriceOrigin, ...] = ()
    pool_capacity: Mapping[str, Mapping[str, Amounts]] = field(default_factory=dict)
    """What machines have besides in single pools: by pool and type."""

    @cached_property
    def by_name(self) -> Mapping[str, InstanceType]:
        return {entry.name: entry for entry in self.types}

    @cached_property
    def well_known(self) -> frozenset[str]:
        """Label keys that the provider of these types sets by itself."""
        keys = {key for entry in self.types for key in entry.requirements}
        keys.update(key for entry in self.types for offering in entry.offerings for key in offering.requirements)
        # The class of a pool is the same for all its nodes: no type leaves it open.
        return WELL_KNOWN | (keys - CLASS_LABELS)

    def in_pool(self, entry: InstanceType, pool: str) -> InstanceType:
        """A type as it is in a pool."""
        more = self.pool_capacity.get(pool, {}).get(entry.name)
        return replace(entry, capacity={**entry.capacity, **more}) if more else entry

    def price(self, offering: Offering) -> float | None:
        """What a node of this offering costs an hour, the fee included; None if the price is not known."""
        return None if offering.price is None else self.with_fee(offering.price)

    def with_fee(self, price: float) -> float:
        """A price and the fee, added as on paper: 0.012 and 0.03 are 0.042."""
        return _sum(price, self.node_fee) if self.node_fee else price


@lru_cache(maxsize=4096)
def _sum(price: float, fee: float) -> float:
    return float(Decimal(repr(price)) + Decimal(repr(fee)))


@lru_cache(maxsize=1024)
def sold_in(zone: str, capacity_type: str) -> Requirements:
    """The requirements of an offering; the same object for the same place, since they are compared often."""
    return Requirements.of_labels({k: v for k, v in ((ZONE, zone), (CAPACITY_TYPE, capacity_type)) if v})


def offerings_in(zones: Iterable[str], prices: Mapping[str, float]) -> tuple[Offering, ...]:
    """An offering in every zone for every capacity type, whose price is the same everywhere."""
    return tuple(Offering(sold_in(zone, kind), price) for zone, (kind, price) in product(zones, prices.items()))


def places_of(offerings: Collection[Offering]) -> Iterator[tuple[str, Requirement]]:
    """The zones and the capacity types of offerings, as requirements of their type."""
    zones, kinds = {offering.zone for offering in offerings}, {offering.capacity_type for offering in offerings}
    for key, values in ((ZONE, zones - {""}), (CAPACITY_TYPE, kinds - {""})):
        if values:
            yield key, one_of(*values)


def cheapest(prices: Iterable[float | None]) -> float | None:
    return min((price for price in prices if price is not None), default=None)
