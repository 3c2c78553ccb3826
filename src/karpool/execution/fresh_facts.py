"""What the API server has of a node now, read before something is done that cannot be undone.

Decisions rest on caches, which may be behind without anybody noticing. So a command starts, and a node is deleted, only
on what was read a moment ago.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from karpool.cluster.changes import Impact, pod_change
from karpool.disruption.candidates.pods import blocks_until
from karpool.disruption.command import Cause
from karpool.disruption.reasons import ReasonCode
from karpool.model.labels import DO_NOT_DISRUPT, DO_NOT_REPAIR
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.reading.unreadable import unreadable_reason
from karpool.model.reasons import Reason


@dataclass(frozen=True, slots=True)
class FreshNode:
    """A node and all pods on it; `problem` says why they could not be read, and then nothing else is known."""

    node: Node | None = None
    pods: tuple[Pod, ...] = ()
    problem: str = ""


FreshFacts = Mapping[str, FreshNode]
"""By the name of a node."""


def to_read(unread: frozenset[str], facts: FreshFacts) -> frozenset[str]:
    """What the next run has to know: what this one missed, and what it knew, if it missed anything.

    Who may go can depend on what was read. If each run knew only what the last one missed, two sets of nodes could be
    wanted in turn for ever.
    """
    return unread | facts.keys() if unread else unread


def changed_since(
    name: str,
    known: Iterable[Pod],
    facts: FreshNode,
    now: datetime,
    *,
    cause: str = "",
    drains_anyway: bool = False,
) -> Reason | None:
    """What has become of a node since it was decided to disrupt it for a cause, if that stands against it.

    `known` are the pods that the decision knew. `drains_anyway`: whatever its pods say.
    """
    reason = unknown(name, facts) or node_protected(name, facts, cause)
    if reason is not None or drains_anyway:
        return reason
    before = {(pod.key, pod.metadata.uid): pod for pod in known}
    for pod in sorted(facts.pods, key=lambda pod: pod.key):
        reason = blocks_until(pod, now) or _news(before.get((pod.key, pod.metadata.uid)), pod)
        if reason is not None:
            return reason
    return None


def unknown(name: str, facts: FreshNode) -> Reason | None:
    """Why a node is not known well enough to be removed: it was not read, or one of its pods cannot be."""
    return unreadable(name, facts) or _lost_pod(facts)


def unreadable(name: str, facts: FreshNode) -> Reason | None:
    """Why nothing is known of a node."""
    if not facts.problem:
        return None
    return Reason("FactsUnknown", f"could not be read again before it is removed: {facts.problem}", f"Node {name}")


def _lost_pod(facts: FreshNode) -> Reason | None:
    """A pod that cannot be read: nobody knows what it would say."""
    lost = [pod for pod in facts.pods if pod.unreadable and not pod.terminal]
    return unreadable_reason("Pod", min(lost, key=lambda pod: pod.key)) if lost else None


def node_protected(name: str, facts: FreshNode, cause: str) -> Reason | None:
    """Why the node itself must stay, or is gone; repair has a veto of its own."""
    if facts.node is None:
        return Reason("NodeGone", "is no longer there, or has no NodeClaim", f"Node {name}")
    repairs = cause == Cause.UNHEALTHY
    veto, code = (
        (DO_NOT_REPAIR, ReasonCode.NODE_DO_NOT_REPAIR) if repairs else (DO_NOT_DISRUPT, ReasonCode.NODE_DO_NOT_DISRUPT)
    )
    if facts.node.metadata.annotations.get(veto) == "true":
        return Reason(code, f"has the annotation {veto}", f"Node {name}")
    return None


def _news(before: Pod | None, pod: Pod) -> Reason | None:
    """What is new of a pod, so that the place that was found for it, or none, is not the right one."""
    if not pod.reschedulable:
        return None
    about = f"Pod {pod.key}"
    if before is None:
        message = f"came to node {pod.spec.node_name} after the decision to remove the node"
        return Reason("PodArrived", message, about)
    if pod_change(before, pod) is Impact.COLUMNS:
        return Reason("PodChanged", "requests or constraints are others than when it was decided to move it", about)
    return None
