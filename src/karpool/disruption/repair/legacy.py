"""Legacy repair: an unhealthy node is deleted at once, without a budget, a veto or a replacement beforehand.

This is what Karpenter did before repair became voluntary; `--legacy-node-repair` asks for it.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from karpool.cluster.nodes import StateNode
from karpool.cluster.pairing import join
from karpool.disruption.brakes.stop import Stops
from karpool.disruption.repair.breaker import PoolHealth, breaker
from karpool.disruption.repair.policies import RepairPolicies, RepairPolicy
from karpool.model.labels import NODEPOOL
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.wire.objects import Condition


class LegacyRepair(NamedTuple):
    """A node that is to be deleted, and the condition that says so."""

    claim: NodeClaim
    node: Node
    condition: Condition


def legacy_repairs(policies: RepairPolicies, objects: Objects, stops: Stops, now: datetime) -> Iterator[LegacyRepair]:
    """The nodes that have been unhealthy for too long, unless too much of their pool, or of the cluster, is."""
    replacing = RepairPolicies(tuple(policy for policy in policies.listed if not policy.reboots))
    healths = _healths(replacing, objects.nodes)
    for state in join(objects.nodes, objects.node_claims):
        claim, node = state.claim, state.node
        if claim is None or node is None or _untouchable(state):
            continue
        found = _overdue(replacing, node, now)
        # A NodeClaim without a pool is measured by the whole cluster.
        about = f"NodePool {state.pool}" if state.pool else "Cluster"
        tripped = breaker(healths.get(state.pool, PoolHealth()), about)
        if found is not None and tripped is None and stops.of(state.pool, state.name) is None:
            yield LegacyRepair(claim, node, found)


def _untouchable(state: StateNode) -> bool:
    return state.deleting or any(part is not None and part.unreadable for part in (state.claim, state.node))


def _healths(policies: RepairPolicies, nodes: tuple[Node, ...]) -> dict[str, PoolHealth]:
    """How healthy each pool is; under an empty name the whole cluster."""
    counted: Counter[str] = Counter()
    unhealthy: Counter[str] = Counter()
    for node in nodes:
        for pool in {node.metadata.labels.get(NODEPOOL, ""), ""}:
            counted[pool] += 1
            unhealthy[pool] += policies.unhealthy(node)
    return {pool: PoolHealth(number, unhealthy[pool]) for pool, number in counted.items()}


def _overdue(policies: RepairPolicies, node: Node, now: datetime) -> Condition | None:
    """The condition that has been there for too long, the one whose time came first."""
    due = [
        (max(known) + length, entry)
        for entry in node.status.conditions
        for policy in _matching(policies, entry)
        if (length := policy.toleration_duration.delta) is not None
        and (known := [m for m in (entry.last_transition_time, node.metadata.creation_timestamp) if m is not None])
    ]
    first = min(due, key=lambda pair: pair[0], default=None)
    return None if first is None or first[0] > now else first[1]


def _matching(policies: RepairPolicies, entry: Condition) -> list[RepairPolicy]:
    """The policies of a condition; the one without an expression serves its own condition only."""
    own = [policy for policy in policies.listed if policy.fallback and policy.named_by(entry)]
    return [*policies.naming_reason(entry), *own]
