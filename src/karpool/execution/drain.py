"""Draining: pods are evicted tier by tier, and deleted when the node's termination grace period ends.

A pod that was not evicted is tried again with back-off. It makes no difference why the Eviction API refused, so its
answer is not needed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from karpool.disruption.candidates.pods import STUCK_AFTER, critical, evictable, protected_until, waiting_for_eviction
from karpool.execution.actions import DeletePod, EvictPod
from karpool.execution.reconcile_context import ReconcileContext
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.reading.unreadable import UNREADABLE

DEFAULT_GRACE: Final = 30
_INSTANT: Final = timedelta(milliseconds=1)
LetsGo = Callable[[Pod], bool]
"""Whether a pod whose turn it is may be evicted now."""


def _any(_pod: Pod) -> bool:
    """Nothing is waited for."""
    return True


def drain(context: ReconcileContext, node: Node, deadline: datetime | None, lets_go: LetsGo = _any) -> int:
    """Evict the pods whose turn it is and that `lets_go` lets go; how many are still on the node."""
    left = waiting_on(context, node.name)
    staying = []
    for pod in left:
        if deadline is not None and _is_late(pod, deadline, context.now):
            _delete(context, node, pod, deadline)
        else:
            staying.append(pod)
            _requeue(context, pod, deadline)
    first = next_on(context, node.name) if len(staying) == len(left) else _with_answers(context, first_tier(staying))
    for pod, may_go in first:
        _evict(context, node, pod, lets_go, may_go=may_go)
    return len(left)


def waiting_on(context: ReconcileContext, name: str) -> list[Pod]:
    """The pods that are still to leave a node; whoever asks first in a pass works it out."""
    found = context.waiting.get(name)
    if found is None:
        found = [pod for pod in context.pods_on(name) if waiting_for_eviction(pod, context.now)]
        context.waiting[name] = found
    return found


def next_on(context: ReconcileContext, name: str) -> list[tuple[Pod, bool]]:
    """The pods whose turn it is on a node, and whether they may be evicted; as of `waiting_on`."""
    found = context.next_to_go.get(name)
    if found is None:
        found = context.next_to_go[name] = _with_answers(context, first_tier(waiting_on(context, name)))
    return found


def _with_answers(context: ReconcileContext, pods: list[Pod]) -> list[tuple[Pod, bool]]:
    return [(pod, evictable(pod, context.now)) for pod in pods]


def tier(pod: Pod) -> int:
    """The order of eviction: ordinary pods, their daemons, critical pods, their daemons."""
    return 2 * critical(pod) + pod.is_daemon


def first_tier(pods: Iterable[Pod]) -> list[Pod]:
    """The pods of the lowest tier; terminating pods, too, hold back the tiers after theirs."""
    tiers: defaultdict[int, list[Pod]] = defaultdict(list)
    for pod in pods:
        tiers[tier(pod)].append(pod)
    return sorted(tiers[min(tiers)], key=lambda pod: pod.key) if tiers else []


def _evict(context: ReconcileContext, node: Node, pod: Pod, lets_go: LetsGo, *, may_go: bool) -> None:
    if not may_go:
        until = protected_until(pod) if pod.active else None
        if until is not None:
            context.requeue_at(until)
        return
    lost = context.pdbs.unreadable_over(pod)
    if lost is not None:
        message = f"pod {pod.key} is not evicted, because {lost.object} {lost.message}"
        context.record_event("Node", node.name, UNREADABLE, message, "Warning")
        return
    if lets_go(pod) and context.may_evict(pod):
        if pod.metadata.uid in context.state.evictions:
            message = f"pod {pod.key} was not evicted yet"
            context.record_event("Node", node.name, "FailedDraining", message, "Warning")
        context.do(EvictPod(pod.key, pod.metadata.uid, node.name))


def _is_late(pod: Pod, deadline: datetime, now: datetime) -> bool:
    if pod.metadata.deletion_timestamp is not None:
        return pod.metadata.deletion_timestamp > deadline
    return now >= deadline - timedelta(seconds=grace_seconds(pod))


def grace_seconds(pod: Pod) -> int:
    seconds = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if seconds is None else seconds


def _delete(context: ReconcileContext, node: Node, pod: Pod, deadline: datetime) -> None:
    if context.may_evict(pod):
        grace = max(1, int((deadline - context.now).total_seconds()))
        message = "is deleted because its node's termination grace period ends"
        context.record_event("Pod", pod.key, "Disrupted", message, "Warning")
        context.do(DeletePod(pod.key, pod.metadata.uid, node.name, grace))


def _requeue(context: ReconcileContext, pod: Pod, deadline: datetime | None) -> None:
    if pod.metadata.deletion_timestamp is not None:
        context.requeue_at(pod.metadata.deletion_timestamp + STUCK_AFTER + _INSTANT)
    elif deadline is not None:
        context.requeue_at(deadline - timedelta(seconds=grace_seconds(pod)))
