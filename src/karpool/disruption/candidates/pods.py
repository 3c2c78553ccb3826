"""What a pod lets happen to itself: whether it may be disturbed, evicted, drained."""

from datetime import UTC, datetime, timedelta
from typing import Final

from karpool.disruption.reasons import ReasonCode, clock
from karpool.model.annotations import AnnotationError, do_not_disrupt
from karpool.model.labels import DISRUPTED_TAINT, DO_NOT_DISRUPT
from karpool.model.pod import Pod
from karpool.model.reading.unreadable import unreadable_reason
from karpool.model.reasons import Reason
from karpool.model.scheduling import Taint

FOREVER: Final = datetime.max.replace(tzinfo=UTC)
STUCK_AFTER: Final = timedelta(minutes=1)
CRITICAL_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
_TAINT: Final = Taint(key=DISRUPTED_TAINT, effect="NoSchedule")


def protected_until(pod: Pod) -> datetime | None:
    """When the pod's do-not-disrupt ends; FOREVER if it does not, or the pod has not started; None without one."""
    try:
        length = do_not_disrupt(pod)
    except AnnotationError:
        return None
    if length is None:
        return None
    start = pod.status.start_time
    return FOREVER if start is None or length.delta is None else start + length.delta


def protected(pod: Pod, now: datetime) -> bool:
    """Whether do-not-disrupt holds now, whatever state the pod is in."""
    until = protected_until(pod)
    return until is not None and now < until


def blocks_until(pod: Pod, now: datetime) -> Reason | None:
    """Why the pod holds its node, if it does: it is active and must not be disrupted yet."""
    if pod.unreadable:
        return None if pod.terminal else unreadable_reason("Pod", pod)
    until = protected_until(pod)
    if until is None or now >= until or not pod.active:
        return None
    value = pod.metadata.annotations[DO_NOT_DISRUPT]
    if until != FOREVER:
        message = f"has {DO_NOT_DISRUPT} until {clock(until, now)}"
    elif value == "true":
        message = f"has {DO_NOT_DISRUPT}"
    else:
        message = f"has {DO_NOT_DISRUPT} for {value} from its start, and has not started"
    return Reason(ReasonCode.POD_DO_NOT_DISRUPT, message, f"Pod {pod.key}")


def ignored_protection(pod: Pod) -> Reason | None:
    """A warning when the pod's do-not-disrupt annotation means nothing."""
    try:
        do_not_disrupt(pod)
    except AnnotationError as problem:
        message = f"{problem.flaws[0].message}, so it is ignored"
        return Reason(ReasonCode.DO_NOT_DISRUPT_IGNORED, message, f"Pod {pod.key}")
    return None


def tolerates_disruption(pod: Pod) -> bool:
    """Whether the pod tolerates the taint of nodes that are leaving, and so stays on them to the end."""
    tolerations = pod.spec.tolerations
    return bool(tolerations) and any(toleration.tolerates(_TAINT) for toleration in tolerations)


def disruptable(pod: Pod, now: datetime) -> bool:
    """Whether do-not-disrupt does not stand against moving the pod."""
    return not pod.unreadable and (not pod.active or not protected(pod, now))


def evictable(pod: Pod, now: datetime) -> bool:
    """Whether the pod would be evicted when its node is drained."""
    if pod.unreadable or not pod.active:
        return False
    return not pod.is_mirror and not tolerates_disruption(pod) and not protected(pod, now)


def stuck_terminating(pod: Pod, now: datetime) -> bool:
    """Whether the pod should have been gone for more than a minute."""
    deleted = pod.metadata.deletion_timestamp
    return deleted is not None and now > deleted + STUCK_AFTER


def drainable(pod: Pod, now: datetime) -> bool:
    """Whether draining a node has to wait for the pod; for one that cannot be read, until it is gone."""
    if pod.unreadable:
        return True
    return not tolerates_disruption(pod) and not stuck_terminating(pod, now) and not pod.is_mirror


def waiting_for_eviction(pod: Pod, now: datetime) -> bool:
    """Whether the pod is still to leave a node that drains."""
    return not pod.terminal and drainable(pod, now)


def critical(pod: Pod) -> bool:
    """Whether the pod leaves a node after all others."""
    return pod.spec.priority_class_name in CRITICAL_CLASSES
