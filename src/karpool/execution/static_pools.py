"""Static pools: NodePools with `replicas` keep as many nodes, whether or not there are pods for them.

Missing nodes are created from the template, within `limits.nodes`. Surplus ones go in the order in which they are
missed least: not launched yet, without pods, cheapest to empty; those with a pod that must not be disrupted last.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count, islice

from karpool.cluster.daemons import Daemon
from karpool.disruption.candidates.costs import eviction_cost, lifetime_cost
from karpool.disruption.candidates.pods import protected
from karpool.execution.conditions import LAUNCHED
from karpool.execution.tickets import COMMAND, REPLACES, ticket_of
from karpool.model.labels import NODEPOOL
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod
from karpool.packing.templates import template_of
from karpool.provisioning.claims import NodeRequest, claim_name, new_claim

PodsOf = Callable[[NodeClaim], Sequence[Pod] | None]
"""The pods on the node of a claim; None if nobody knows them."""


@dataclass(frozen=True, slots=True)
class Headcount:
    """The nodes of a static pool: those that stay, and all that count against its limit."""

    staying: int
    """Without nodes that are going, with replacements that are still to be created."""
    total: int

    def missing(self, pool: NodePool) -> int:
        """How many nodes a pool lacks and may have."""
        wanted, limit = (pool.spec.replicas or 0) - self.staying, pool.spec.limits.get("nodes")
        return max(0, wanted if limit is None else min(wanted, limit.units - self.total))

    def surplus(self, pool: NodePool) -> int:
        return max(0, self.staying - (pool.spec.replicas or 0))


def headcount(pool: NodePool, claims: Iterable[NodeClaim]) -> Headcount:
    """Count the claims of a pool; `claims` are all that there are."""
    listed = list(claims)
    mine = [claim for claim in listed if claim.metadata.labels.get(NODEPOOL) == pool.name]
    names = {claim.name for claim in listed}
    tickets = [ticket for claim in mine if (ticket := ticket_of(claim)) is not None]
    promised = {name for ticket in tickets if not ticket.committed for name in ticket.replacements} - names
    staying = [claim for claim in mine if not _goes(claim)]
    return Headcount(len(staying) + len(promised), len(mine) + len(promised))


def missing_claims(
    pool: NodePool, claims: Iterable[NodeClaim], daemons: Sequence[Daemon], now: datetime
) -> tuple[NodeClaim, ...]:
    """The claims to create for a pool; none while it cannot supply nodes."""
    listed = list(claims)
    if not pool.static or not pool.ready:
        return ()
    lacking = headcount(pool, listed).missing(pool)
    taken = {claim.name for claim in listed}
    names = (claim_name(pool.name, now.isoformat(), "static", str(number)) for number in count())
    request = NodeRequest(template_of(pool).requirements, ())
    free = islice((name for name in names if name not in taken), lacking)
    return tuple(new_claim(pool, request, name=name, daemons=daemons) for name in free)


def surplus_claims(
    pool: NodePool,
    claims: Iterable[NodeClaim],
    pods_of: PodsOf,
    now: datetime,
    *,
    by_deletion_cost: bool = True,
) -> tuple[NodeClaim, ...]:
    """The claims to delete of a pool that has too many, in the order in which they go; commands finish first.

    A node whose pods are not known stays, and another one goes in its place.
    """
    listed = list(claims)
    if not pool.static or pool.unreadable or pool.terminating:
        return ()
    free = [
        claim
        for claim in listed
        if claim.metadata.labels.get(NODEPOOL) == pool.name
        and not _goes(claim)
        and not claim.unreadable
        and REPLACES not in claim.metadata.annotations
    ]
    known = {claim.name: (claim, pods) for claim in free if (pods := pods_of(claim)) is not None}
    ranked = sorted(known.values(), key=lambda entry: _rank(entry[0], entry[1], now, by_deletion_cost=by_deletion_cost))
    return tuple(claim for claim, _ in ranked[: headcount(pool, listed).surplus(pool)])


def _goes(claim: NodeClaim) -> bool:
    leaving = claim.terminating or claim.is_true("InstanceTerminating")
    return leaving or COMMAND in claim.metadata.annotations


def _rank(claim: NodeClaim, pods: Sequence[Pod], now: datetime, *, by_deletion_cost: bool) -> tuple[int, float, str]:
    if not claim.is_true(LAUNCHED):
        return 0, 0.0, claim.name
    guarded = any(protected(pod, now) for pod in pods)
    if not guarded and all(pod.is_daemon or pod.is_mirror or pod.terminal for pod in pods):
        return 1, 0.0, claim.name
    costs = (eviction_cost(pod, by_deletion_cost=by_deletion_cost) for pod in pods)
    cost = lifetime_cost(sum(costs), claim, now)
    return 3 if guarded else 2, cost, claim.name
