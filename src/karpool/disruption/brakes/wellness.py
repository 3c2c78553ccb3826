"""Whether a pod does its work: it is bound, its containers run, and it is ready."""

from datetime import datetime, timedelta
from typing import Final

from karpool.model.pod import ContainerStatus, Pod
from karpool.wire.objects import condition

_CRASHING: Final = "CrashLoopBackOff"
_AGAIN_AND_AGAIN: Final = 3
"""From so many restarts on a container that crashes has done so all the time; a single crash may be anything."""

_STARTS_WITHIN: Final = timedelta(minutes=10)
"""How long a new pod that is Pending may be on its way to be well."""


def unwell(pod: Pod) -> str | None:
    """What a person would say is wrong with a pod that should run; None if nothing is known to be wrong."""
    if pod.status.phase == "Succeeded":
        return None
    statuses = _statuses(pod)
    if statuses and any(status.waits_for == _CRASHING for status in statuses):
        return "is crash-looping"
    if pod.status.phase in ("Pending", ""):
        return "is Pending" if pod.bound else "is Pending without a node"
    ready = condition(pod.status.conditions, "Ready")
    return "is not ready" if ready is not None and ready.status != "True" else None


def unwell_already(pod: Pod, now: datetime) -> bool:
    """Whether a pod is unwell before anything is done to it; one that has just been made and starts is not."""
    if not pod.active or pod.unreadable or unwell(pod) is None:
        return False
    created = pod.metadata.creation_timestamp
    starts = pod.status.phase in ("Pending", "") and created is not None and now - created < _STARTS_WITHIN
    return not starts


def unwell_since(pod: Pod) -> datetime | None:
    """Since when a pod that is not well is so; for one that crashes again and again: since it was created.

    Such a pod is ready for a moment after each restart, so that its condition does not tell.
    """
    created = pod.metadata.creation_timestamp
    ready = condition(pod.status.conditions, "Ready")
    crashes = any(s.waits_for == _CRASHING and s.restart_count >= _AGAIN_AND_AGAIN for s in _statuses(pod))
    if crashes or pod.status.phase in ("Pending", "") or ready is None or ready.last_transition_time is None:
        return created
    return ready.last_transition_time


def _statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    return (*pod.status.container_statuses, *pod.status.init_container_statuses)
