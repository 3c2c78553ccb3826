"""Instance types of nodes in the cluster that the catalogue does not have.

Such a type can be kept and priced if a label or the user gives its price. It is never launched, because nodes show what
exists and not what is available.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from karpool.catalog.instance_types import Amounts, Catalog, InstanceType, Offering, places_of, sold_in
from karpool.catalog.overrides import PriceChanges, repriced
from karpool.catalog.pricing import capacity_type_of, label_of, price_on_label
from karpool.model.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODEPOOL,
    RESERVATION_ID,
    RESERVED,
    WELL_KNOWN,
    ZONE,
    canonical,
)
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.requirements import Requirements
from karpool.wire.quantity import ZERO

# Labels that belong to a node and say nothing about its type.
_OF_THE_NODE: Final = frozenset({NODEPOOL, RESERVATION_ID, ZONE, CAPACITY_TYPE})
Place = tuple[str, str]


class _Sighting(NamedTuple):
    """One machine as its node, or its claim before there is a node, describes it."""

    labels: Mapping[str, str]
    capacity: Amounts
    allocatable: Amounts

    @property
    def place(self) -> Place:
        return label_of(self.labels, ZONE), capacity_type_of(self.labels)

    @property
    def price(self) -> float | None:
        return 0.0 if capacity_type_of(self.labels) == RESERVED else price_on_label(self.labels)


def observed(nodes: Iterable[Node], claims: Iterable[NodeClaim] = ()) -> tuple[InstanceType, ...]:
    """The types that nodes and claims show, by name, each with an unavailable offering for every place it was seen."""
    groups: dict[str, list[_Sighting]] = {}
    for sighting in _sightings(nodes, claims):
        name = label_of(sighting.labels, INSTANCE_TYPE)
        if name and sighting.allocatable:
            groups.setdefault(name, []).append(sighting)
    return tuple(_instance_type(name, seen) for name, seen in sorted(groups.items()))


def with_observed(catalog: Catalog, nodes: Iterable[Node], claims: Iterable[NodeClaim] = ()) -> Catalog:
    """The catalogue with the types that only nodes and claims know, at the prices that the user set."""
    changes = PriceChanges(overrides=catalog.price_overrides)
    new = [repriced(entry, changes) for entry in observed(nodes, claims) if entry.name not in catalog.by_name]
    return replace(catalog, types=(*catalog.types, *new)) if new else catalog


def _sightings(nodes: Iterable[Node], claims: Iterable[NodeClaim]) -> Iterator[_Sighting]:
    named = sorted(nodes, key=lambda node: node.name)
    for node in named:
        yield _Sighting(node.metadata.labels, node.status.capacity, node.status.allocatable)
    present = {node.name for node in named}
    for claim in sorted(claims, key=lambda claim: claim.name):
        if claim.status.node_name not in present:
            yield _Sighting(claim.metadata.labels, claim.status.capacity, claim.status.allocatable)


def _instance_type(name: str, seen: list[_Sighting]) -> InstanceType:
    """The type as its first node shows it, wherever any of them is."""
    first = seen[0]
    prices: dict[Place, float | None] = {}
    for sighting in seen:
        if prices.get(sighting.place) is None:
            prices[sighting.place] = sighting.price
    # A node may report less capacity than it can give to pods; what it gives is there in any case.
    names = first.capacity.keys() | first.allocatable.keys()
    capacity = {key: max(first.capacity.get(key, ZERO), first.allocatable.get(key, ZERO)) for key in sorted(names)}
    offerings = tuple(Offering(sold_in(*place), price, available=False) for place, price in sorted(prices.items()))
    own = {key: value for key, value in first.labels.items() if canonical(key) in WELL_KNOWN - _OF_THE_NODE}
    return InstanceType(
        name=name,
        requirements=Requirements([*Requirements.of_labels(own).items(), *places_of(offerings)]),
        capacity=capacity,
        overhead={key: amount - first.allocatable.get(key, ZERO) for key, amount in capacity.items()},
        offerings=offerings,
        observed=True,
    )
