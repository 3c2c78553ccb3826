"""Pod events: a pod that comes to a node, finishes or begins to leave restarts the node's quiet time.

While a controller watches, `pod_event` judges each change. After a start, `missed_events` reads from the pods' own
timestamps what happened meanwhile, so that a restart by itself restarts no quiet time.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from karpool.cluster.nodes import join
from karpool.execution.actions import SetPodEventTime
from karpool.execution.drain import DEFAULT_GRACE
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.wire.objects import condition

SAME_EVENT: Final = timedelta(seconds=10)


def pod_event(before: Pod | None, after: Pod | None) -> str | None:
    """The name of the node on which a change of a pod counts as an event, if it does.

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


def restart_quiet_time(claim: NodeClaim, event: datetime) -> SetPodEventTime | None:
    """Note an event on a claim; events within ten seconds of the last one noted are the same."""
    noted = claim.status.last_pod_event_time
    if noted is not None and event < noted + SAME_EVENT:
        return None
    return SetPodEventTime(claim.name, event)


def missed_events(objects: Objects, now: datetime) -> tuple[SetPodEventTime, ...]:
    """The events that nobody noted, each at the time it happened."""
    latest: dict[str, datetime] = {}
    for pod in objects.pods:
        if pod.spec.node_name and not pod.is_daemon:
            for moment in _moments(pod):
                if moment <= now:
                    latest[pod.spec.node_name] = max(moment, latest.get(pod.spec.node_name, moment))
    found = []
    for state in join(objects.nodes, objects.node_claims):
        if state.node is not None and state.claim is not None and state.name in latest:
            action = restart_quiet_time(state.claim, latest[state.name])
            found += [action] if action is not None else []
    return tuple(found)


def _moments(pod: Pod) -> Iterator[datetime]:
    """When a pod came to its node, finished, and began to leave, as far as it says."""
    scheduled = condition(pod.status.conditions, "PodScheduled")
    bound = scheduled.last_transition_time if scheduled is not None and scheduled.status == "True" else None
    bound = bound or pod.status.start_time
    if bound is not None:
        yield bound
    if pod.terminal:
        yield from (entry.last_transition_time for entry in pod.status.conditions if entry.last_transition_time)
    if pod.metadata.deletion_timestamp is not None:
        # The timestamp says when the pod should be gone: its deletion began a grace period earlier.
        grace = pod.spec.termination_grace_period_seconds
        yield pod.metadata.deletion_timestamp - timedelta(seconds=DEFAULT_GRACE if grace is None else grace)
