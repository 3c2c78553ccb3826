"""The instance that is launched for a NodeClaim: its type, its labels, and the Node that it registers."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.catalog.pricing import PRICE_LABEL, launchable
from karpool.model import labels as names
from karpool.model.node import Node, NodeSpec, NodeStatus
from karpool.model.nodepool import NodeClaim
from karpool.model.requirements import NO_REQUIREMENTS, Requirements
from karpool.model.scheduling import Taint
from karpool.wire.objects import Condition, Metadata
from karpool.wire.quantity import ZERO, Quantity

NOTHING: Final[Mapping[str, Quantity]] = MappingProxyType({})
NOT_READY: Final = "node.kubernetes.io/not-ready"


def choose_offering(
    catalog: Catalog,
    wanted: Requirements,
    is_short: Callable[[InstanceType, Offering], bool],
    requests: Mapping[str, Quantity] = NOTHING,
    pool: str = "",
) -> tuple[InstanceType, Offering] | None:
    """The cheapest available offering of the types that a claim accepts and that have room for its requests.

    The type is as it is in the pool of the claim.
    """
    best: tuple[float, InstanceType, Offering] | None = None
    types = wanted.get(names.INSTANCE_TYPE)
    for entry in catalog.types:
        if types is None or types.complement:
            # Nobody has chosen types yet, so nobody has looked at what is known of their labels.
            suits = entry.meets(wanted)
        else:
            suits = types.has(entry.name) and entry.requirements.meets(wanted)
        if not suits:
            continue
        own = catalog.in_pool(entry, pool)
        if not holds(own, requests):
            continue
        for offering in launchable(entry, wanted):
            known = catalog.price(offering)
            # What nobody knows the price of is taken when there is nothing else.
            price = math.inf if known is None else known
            if (best is not None and price >= best[0]) or is_short(entry, offering):
                continue
            best = (price, own, offering)
    return None if best is None else best[1:]


def holds(entry: InstanceType, requests: Mapping[str, Quantity]) -> bool:
    """Whether a type has at least what is requested."""
    return all(amount <= entry.allocatable.get(name, ZERO) for name, amount in requests.items())


def instance_labels(
    entry: InstanceType, offering: Offering, price: float | None, wanted: Requirements = NO_REQUIREMENTS
) -> dict[str, str]:
    """The labels for which type, offering and the claim's requirements leave only one value, and the price."""
    offered = entry.requirements.intersect(offering.requirements)
    open_keys = [key for key in wanted if key in offered or len(wanted[key].values) == 1]
    known = offered.intersect(Requirements((key, wanted[key]) for key in open_keys))
    return {**single_values(known), **({} if price is None else {PRICE_LABEL: f"{price:.6g}"})}


def single_values(*collections: Requirements) -> dict[str, str]:
    """The keys for which requirements leave only one value, with that; the last collection counts."""
    return {
        key: next(iter(allowed.values))
        for requirements in collections
        for key, allowed in requirements.items()
        if not allowed.complement and len(allowed.values) == 1
    }


def starting_taints(claim: NodeClaim) -> tuple[Taint, ...]:
    """The taints with which the node of a claim appears: no pod may use it before it is registered."""
    waiting = Taint(key=names.UNREGISTERED_TAINT, effect="NoExecute")
    return (waiting, *claim.spec.startup_taints, *claim.spec.taints)


def starting_node(
    name: str, provider_id: str, entry: InstanceType, *, labels: dict[str, str], taints: tuple[Taint, ...]
) -> Node:
    """The Node that an instance registers: not ready yet."""
    return Node(
        metadata=Metadata(name=name, labels={**labels, names.HOSTNAME: name}),
        spec=NodeSpec(provider_id=provider_id, taints=(Taint(key=NOT_READY, effect="NoSchedule"), *taints)),
        status=NodeStatus(
            capacity=dict(entry.capacity),
            allocatable=dict(entry.allocatable),
            conditions=(Condition(type="Ready", status="False"),),
        ),
    )
