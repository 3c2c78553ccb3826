"""Pods whose eviction is refused for long: they hold up the drain of a node that a command deletes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from karpool.disruption.brakes.failures import pool_of
from karpool.disruption.brakes.harm import HarmedPod
from karpool.disruption.candidates.pods import evictable, protected_until, waiting_for_eviction
from karpool.disruption.reasons import clock
from karpool.execution.drain import first_tier, grace_seconds
from karpool.execution.tickets import ticket_of
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod

_LONGEST_GRACE: Final = timedelta(hours=1)
"""As long as a pod is seen to leave, its node waits for it; what is guessed of it afterwards has an end."""


def refused_evictions(
    claims: Iterable[NodeClaim], pods_on: Callable[[str], Sequence[Pod]], after: timedelta, now: datetime
) -> Iterator[tuple[str, HarmedPod]]:
    """By pool: pods of nodes that drain, and that no pod has left for long, because nobody may evict them.

    A PodDisruptionBudget lets one go when the one before it runs elsewhere: as long as that goes on, nothing is wrong.
    """
    for claim in claims:
        ticket, deleted = ticket_of(claim), claim.metadata.deletion_timestamp
        if ticket is None or deleted is None or now - deleted < after:
            continue
        waiting = [pod for pod in pods_on(claim.status.node_name) if waiting_for_eviction(pod, now)]
        if any(pod.terminating for pod in waiting):
            continue  # one is on its way, and others may wait for it
        event = claim.status.last_pod_event_time
        left = event if event is not None and event > deleted else None
        for pod in first_tier(waiting):
            # One that was protected until a moment ago is not refused yet.
            since = max(_gone_by(left, pod) or deleted, protected_until(pod) or deleted)
            if evictable(pod, now) and now - since >= after:
                why = f"drains since {clock(deleted, now)}" if left is None else f"no pod left since {clock(left, now)}"
                message = f"is not let go from node {claim.status.node_name}, which {why}"
                yield pool_of(claim), HarmedPod(ticket.id, pod.key, message)


def _gone_by(left: datetime | None, pod: Pod) -> datetime | None:
    """When the last pod that began to leave was gone: pods of a kind have their grace period in common."""
    return None if left is None else left + min(timedelta(seconds=grace_seconds(pod)), _LONGEST_GRACE)
