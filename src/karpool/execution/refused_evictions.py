"""Pods whose eviction is refused for long: they hold up the drain of a node that a command deletes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from karpool.disruption.brakes.failures import pool_of
from karpool.disruption.brakes.harm import HarmedPod
from karpool.disruption.pods import evictable, protected_until, waiting_for_eviction
from karpool.disruption.reasons import clock
from karpool.execution.drain import first_tier
from karpool.execution.tickets import ticket_of
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod


def refused_evictions(
    claims: Iterable[NodeClaim], pods_on: Callable[[str], Sequence[Pod]], after: timedelta, now: datetime
) -> Iterator[tuple[str, HarmedPod]]:
    """By pool: pods whose turn to be evicted came long ago, and who are still there because nobody may evict them."""
    for claim in claims:
        ticket, deleted = ticket_of(claim), claim.metadata.deletion_timestamp
        if ticket is None or deleted is None or now - deleted < after:
            continue
        waiting = [pod for pod in pods_on(claim.status.node_name) if waiting_for_eviction(pod, now)]
        for pod in first_tier(waiting):
            # One that was protected until a moment ago is not refused yet.
            if evictable(pod, now) and now - (protected_until(pod) or deleted) >= after:
                why = f"is not let go from node {claim.status.node_name}, which drains since {clock(deleted, now)}"
                yield pool_of(claim), HarmedPod(ticket.id, pod.key, why)
