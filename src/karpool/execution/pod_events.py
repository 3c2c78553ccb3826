"""Pod events: a pod that is bound, finishes or starts to terminate restarts its node's `consolidateAfter`.

`pod_event` judges each change while the controller watches. After a restart, `missed_pod_events` reads what happened
meanwhile from the pods' timestamps, so that a restart alone delays no consolidation.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from karpool.cluster.pairing import join
from karpool.execution.actions import SetPodEventTime
from karpool.execution.drain import grace_seconds
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.wire.objects import condition

SAME_EVENT: Final = timedelta(seconds=10)


def pod_event(before: Pod | None, after: Pod | None) -> str | None:
    """The name of the node for which a change of a pod is an event, if it is one.

    `before` None: the pod is new; `after` None: it is gone. Pods of DaemonSets never count.
    """
    pod = after or before
    if pod is None or not pod.spec.node_name:
        return None
    if after is None:
        happened = before is not None and before.active
    else:
        happened = (
            before is None
            or not before.spec.node_name
            or (after.terminal and not before.terminal)
            or (after.terminating and not before.terminating)
        )
    return pod.spec.node_name if happened and not pod.is_daemon else None


def note_pod_event(claim: NodeClaim, event: datetime) -> SetPodEventTime | None:
    """Write an event to a claim, unless the last one written is less than ten seconds older."""
    last = claim.status.last_pod_event_time
    if last is not None and event < last + SAME_EVENT:
        return None
    return SetPodEventTime(claim.name, event)


def missed_pod_events(objects: Objects, now: datetime) -> tuple[SetPodEventTime, ...]:
    """The events that were not written, each with the time it happened."""
    latest: dict[str, datetime] = {}
    for pod in objects.pods:
        if pod.spec.node_name and not pod.is_daemon:
            for moment in _moments(pod):
                if moment <= now:
                    latest[pod.spec.node_name] = max(moment, latest.get(pod.spec.node_name, moment))
    actions = (
        note_pod_event(state.claim, latest[state.name])
        for state in join(objects.nodes, objects.node_claims)
        if state.node is not None and state.claim is not None and state.name in latest
    )
    return tuple(action for action in actions if action is not None)


def bound_at(pod: Pod) -> datetime | None:
    """When a pod was bound; None: its conditions do not say."""
    scheduled = condition(pod.status.conditions, "PodScheduled")
    return scheduled.last_transition_time if scheduled is not None and scheduled.status == "True" else None


def _moments(pod: Pod) -> Iterator[datetime]:
    """When a pod was bound, finished, and started to terminate, as far as its status shows."""
    bound = bound_at(pod) or pod.status.start_time
    if bound is not None:
        yield bound
    if pod.terminal:
        yield from (entry.last_transition_time for entry in pod.status.conditions if entry.last_transition_time)
    if pod.metadata.deletion_timestamp is not None:
        # The timestamp is the end of the grace period; the deletion started one grace period earlier.
        yield pod.metadata.deletion_timestamp - timedelta(seconds=grace_seconds(pod))
