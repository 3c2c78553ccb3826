"""Draining: pods leave a node tier by tier, asked politely until the node's deadline forces them.

A pod that was asked and stays is asked again, later and later. Whether the Eviction API said no because of a budget or
for another reason makes no difference, so nobody has to report its answer.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from karpool.disruption.pods import STUCK_AFTER, critical, evictable, protected_until, waiting_for_eviction
from karpool.execution.actions import DeletePod, EvictPod
from karpool.execution.turn import Turn
from karpool.model.node import Node
from karpool.model.pod import Pod

DEFAULT_GRACE: Final = 30
_INSTANT: Final = timedelta(milliseconds=1)


def drain(turn: Turn, node: Node, deadline: datetime | None) -> int:
    """Ask the pods whose turn it is to leave; how many are still to go."""
    left = [pod for pod in turn.pods_on(node.name) if waiting_for_eviction(pod, turn.now)]
    staying = []
    for pod in left:
        if deadline is not None and _must_force(pod, deadline, turn.now):
            _force(turn, pod, deadline)
        else:
            staying.append(pod)
            _await(turn, pod, deadline)
    for pod in _first_tier(staying):
        _evict(turn, node, pod)
    return len(left)


def tier(pod: Pod) -> int:
    """When a pod leaves: ordinary pods, their daemons, critical pods, their daemons."""
    return 2 * critical(pod) + pod.is_daemon


def _first_tier(pods: Iterable[Pod]) -> list[Pod]:
    """The pods whose turn it is: terminating ones, too, hold back the tiers after theirs."""
    tiers: defaultdict[int, list[Pod]] = defaultdict(list)
    for pod in pods:
        tiers[tier(pod)].append(pod)
    return sorted(tiers[min(tiers)], key=lambda pod: pod.key) if tiers else []


def _evict(turn: Turn, node: Node, pod: Pod) -> None:
    if not evictable(pod, turn.now):
        until = protected_until(pod) if pod.active else None
        if until is not None:
            turn.look_again(until)
        return
    if turn.attempt(pod):
        if pod.metadata.uid in turn.state.evictions:
            said = f"pod {pod.key} was asked to leave and has not gone yet"
            turn.tell("Node", node.name, "FailedDraining", said, "Warning")
        turn.do(EvictPod(pod.key, pod.metadata.uid, node.name))


# -- the deadline ------------------------------------------------------------------------------------------------------


def _must_force(pod: Pod, deadline: datetime, now: datetime) -> bool:
    """Whether a pod would not be gone by the deadline without force."""
    if pod.metadata.deletion_timestamp is not None:
        return pod.metadata.deletion_timestamp > deadline
    return now >= deadline - timedelta(seconds=_grace(pod))


def _grace(pod: Pod) -> int:
    written = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if written is None else written


def _force(turn: Turn, pod: Pod, deadline: datetime) -> None:
    if turn.attempt(pod):
        grace = max(1, int((deadline - turn.now).total_seconds()))
        said = "is deleted because its node's termination grace period ends"
        turn.tell("Pod", pod.key, "Disrupted", said, "Warning")
        turn.do(DeletePod(pod.key, pod.metadata.uid, grace))


def _await(turn: Turn, pod: Pod, deadline: datetime | None) -> None:
    """Look again when the pod counts as stuck, or must be forced."""
    if pod.metadata.deletion_timestamp is not None:
        turn.look_again(pod.metadata.deletion_timestamp + STUCK_AFTER + _INSTANT)
    elif deadline is not None:
        turn.look_again(deadline - timedelta(seconds=_grace(pod)))
