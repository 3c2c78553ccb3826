"""What pools with a fixed number of nodes do about their size, whatever the steps of a plan are.

No step of a plan adds or removes such a node for good: the pool does that by itself. What it comes to stands beside the
plan and is in none of its sums.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from karpool.catalog.instance_types import Catalog
from karpool.catalog.pricing import cheapest_launch, node_price
from karpool.cluster.daemons import Daemon
from karpool.disruption.plan import Plan
from karpool.disruption.settings import DisruptionSettings
from karpool.execution.static_pools import missing_claims, surplus_claims
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.templates import template_of
from karpool.report.plans.document import PoolSizePart
from karpool.wire.quantity import ZERO


def pool_size_parts(
    plan: Plan, objects: Objects, catalog: Catalog, settings: DisruptionSettings, daemons: Sequence[Daemon]
) -> tuple[PoolSizePart, ...]:
    """A part for each pool that has too few or too many nodes; none while nobody keeps sizes, or claims are unclear."""
    claims = objects.node_claims
    if not settings.static_capacity or any(claim.unreadable for claim in claims):
        return ()
    halted = {stop.pool for stop in plan.stops}
    prices = {node.name: node_price(catalog, node.metadata.labels) for node in objects.nodes}
    parts = []
    for pool in objects.node_pools:
        if not pool.static or pool.unreadable:
            continue
        new = missing_claims(pool, claims, daemons, plan.time)
        gone = () if {None, pool.name} & halted else _surplus(pool, objects, plan.time, settings)
        if new or gone:
            launched = [_launch_price(pool, claim, catalog) for claim in new]
            saved = [prices.get(claim.status.node_name) for claim in gone]
            parts.append(
                PoolSizePart(
                    node_pool=pool.name,
                    loses=tuple(claim.status.node_name or claim.name for claim in gone),
                    gets=len(new),
                    price_per_hour=_change(launched, saved),
                )
            )
    return tuple(parts)


def _surplus(pool: NodePool, objects: Objects, now: datetime, settings: DisruptionSettings) -> tuple[NodeClaim, ...]:
    on_node: Mapping[str, list[Pod]] = {node.name: [] for node in objects.nodes}
    for pod in objects.pods:
        if pod.spec.node_name in on_node and not pod.terminal:
            on_node[pod.spec.node_name].append(pod)
    return surplus_claims(
        pool,
        objects.node_claims,
        lambda claim: on_node.get(claim.status.node_name, []),
        now,
        by_deletion_cost=settings.by_deletion_cost,
    )


def _launch_price(pool: NodePool, claim: NodeClaim, catalog: Catalog) -> float | None:
    """What the cheapest node that a claim may become costs."""
    wanted, asked = template_of(pool).requirements, claim.spec.resources.requests
    prices = []
    for entry in catalog.types:
        room = catalog.in_pool(entry, pool.name).allocatable
        if entry.meets(wanted) and all(room.get(name, ZERO) >= amount for name, amount in asked.items()):
            offering = cheapest_launch(entry, wanted)
            prices += [] if offering is None else [catalog.price(offering)]
    return min((price for price in prices if price is not None), default=None)


def _change(launched: Sequence[float | None], saved: Sequence[float | None]) -> float | None:
    """By how much a fleet gets dearer; None if a price is not known."""
    known = [price for price in (*launched, *saved) if price is not None]
    if len(known) < len(launched) + len(saved):
        return None
    return sum(known[: len(launched)]) - sum(known[len(launched) :])
