"""When a node may take part in consolidation: `consolidateAfter` and `consolidationGracePeriod`."""

from datetime import UTC, datetime
from typing import Final

from karpool.disruption.reasons import ReasonCode, clock
from karpool.model.annotations import AnnotationError, grace_period
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.reasons import Reason
from karpool.wire.duration import Duration
from karpool.wire.objects import condition

_LONG_AGO: Final = datetime(1, 1, 2, tzinfo=UTC)
_NEVER: Final = datetime(9999, 12, 30, tzinfo=UTC)


def reference_time(claim: NodeClaim) -> datetime | None:
    """The moment from which a node counts as quiet: its last pod event, else when it was initialized."""
    if claim.status.last_pod_event_time is not None:
        return claim.status.last_pod_event_time
    initialized = condition(claim.status.conditions, "Initialized")
    if initialized is None:
        return claim.metadata.creation_timestamp
    if initialized.status != "True":
        return None
    return initialized.last_transition_time or claim.metadata.creation_timestamp


def source_closed(claim: NodeClaim, pool: NodePool, now: datetime) -> Reason | None:
    """Why consolidation may not empty the node now, if it may not.

    A claim without an Initialized condition is taken at the word of its Node's label, which candidates are asked for.
    """
    if pool.static:
        message = f"NodePool {pool.name} keeps a fixed number of nodes"
        return Reason(ReasonCode.STATIC_POOL, message, _subject(claim))
    if pool.spec.disruption.consolidate_after.never:
        message = f"NodePool {pool.name} has consolidateAfter Never"
        return Reason(ReasonCode.CONSOLIDATE_AFTER_NEVER, message, _subject(claim))
    initialized = condition(claim.status.conditions, "Initialized")
    if initialized is not None and initialized.status != "True":
        why = f"its condition Initialized is {initialized.status}"
        reason = f" ({initialized.reason})" if initialized.reason else ""
        return Reason(ReasonCode.NODE_NOT_INITIALIZED, f"is not initialized: {why}{reason}", _subject(claim))
    return _waiting(claim, pool, now)


def in_grace(claim: NodeClaim, pool: NodePool | None, now: datetime) -> Reason | None:
    """Why the node is invisible to consolidation, neither source nor destination, if it is.

    Only a pod event makes a node invisible: one that has had none is seen.
    """
    event = claim.status.last_pod_event_time
    if pool is None:
        return None
    try:
        period = grace_period(pool)
    except AnnotationError as problem:
        message = f"the grace period of NodePool {pool.name} cannot be read, so its nodes are left alone: {problem}"
        return Reason(ReasonCode.GRACE_PERIOD_INVALID, message, _subject(claim))
    visible = _ends(event, period)
    if visible is None or now >= visible:
        return None
    message = (
        f"had a pod event, and the grace period of NodePool {pool.name} ({period}) lasts until {clock(visible, now)}"
    )
    return Reason(ReasonCode.GRACE_PERIOD, message, _subject(claim))


def closed_until(claim: NodeClaim, pool: NodePool | None) -> datetime:
    """When consolidation may move pods to the node, as far as its window and its grace period go."""
    if pool is None:
        return _LONG_AGO
    opens = None
    if not pool.static and pool.ready:
        opens = _ends(reference_time(claim), pool.spec.disruption.consolidate_after)
    try:
        visible = _ends(claim.status.last_pod_event_time, grace_period(pool))
    except AnnotationError:
        return _NEVER
    return max(opens or _LONG_AGO, visible or _LONG_AGO)


def settled_at(claim: NodeClaim, pool: NodePool | None, opens: datetime) -> datetime:
    """When a node that takes pods from a moment on (`closed_until`) may be emptied by consolidation, too.

    Unlike others, a node of a pool that is not ready is filled before its window opens, but not emptied.
    """
    if pool is None or pool.ready or pool.static:
        return opens
    return max(opens, _ends(reference_time(claim), pool.spec.disruption.consolidate_after) or opens)


def _waiting(claim: NodeClaim, pool: NodePool, now: datetime) -> Reason | None:
    """Why the node has not been quiet for long enough."""
    length = pool.spec.disruption.consolidate_after
    opens = _ends(reference_time(claim), length)
    if opens is None or now >= opens:
        return None
    message = f"consolidateAfter of NodePool {pool.name} ({length}) has not passed; it does at {clock(opens, now)}"
    return Reason(ReasonCode.CONSOLIDATE_AFTER_WINDOW, message, _subject(claim))


def _ends(start: datetime | None, length: Duration) -> datetime | None:
    """When a stretch that began at `start` is over; None if it never began or has no end to wait for."""
    return None if start is None or length.delta is None else start + length.delta


def _subject(claim: NodeClaim) -> str:
    return f"Node {claim.status.node_name}" if claim.status.node_name else f"NodeClaim {claim.name}"
