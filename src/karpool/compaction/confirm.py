"""The last look before a node is cordoned, or pods are evicted from it: what the API server has of it now.

A node that is not what was decided on is left as it is; the caches know more by then, and the next step decides again.
"""

from collections.abc import Iterable
from typing import NamedTuple

from karpool.cluster.changes import Impact, pod_change
from karpool.compaction.actions import CompactionAction, SetNodeState, node_of
from karpool.compaction.advance import CompactionStep
from karpool.compaction.nodes import NodeView
from karpool.compaction.pods import eviction_blocker, needs_new_node
from karpool.compaction.reasons import CompactionReasonCode as Code
from karpool.execution.actions import DeletePod, EvictPod, RecordEvent
from karpool.execution.fresh_facts import FreshFacts, FreshNode
from karpool.model.autoscaler_rules import SCALE_DOWN_DISABLED
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.reasons import Reason


class ConfirmedStep(NamedTuple):
    """The actions to take, and why nodes are left out, by their names."""

    actions: tuple[CompactionAction, ...]
    refused: dict[str, Reason]


def nodes_to_read(actions: Iterable[CompactionAction]) -> list[str]:
    """The nodes that are to be cordoned, or to lose pods."""
    return sorted({node_of(action) for action in actions if _drains(action)})


def confirmed(step: CompactionStep, facts: FreshFacts) -> ConfirmedStep:
    """A step without the nodes that are not what was decided on; what is left of these is an Event."""
    views = {verdict.view.name: verdict.view for verdict in step.decision.nodes}
    names = nodes_to_read(step.actions)
    reasons = {name: _changed(views[name], facts[name]) for name in names}
    refused = {name: reason for name, reason in reasons.items() if reason is not None}
    actions = [action for action in step.actions if node_of(action) not in refused]
    actions += [
        RecordEvent("Node", name, reason.code, f"its drain waits: {reason.object} {reason.message}", "Warning")
        for name, reason in refused.items()
    ]
    return ConfirmedStep(tuple(actions), refused)


def without_starts(actions: Iterable[CompactionAction]) -> tuple[CompactionAction, ...]:
    """The actions without those of nodes that would be cordoned."""
    listed = tuple(actions)
    starting = {action.node for action in listed if isinstance(action, SetNodeState) and action.unschedulable}
    return tuple(action for action in listed if node_of(action) not in starting)


def _drains(action: CompactionAction) -> bool:
    return isinstance(action, EvictPod | DeletePod) or (isinstance(action, SetNodeState) and bool(action.unschedulable))


def _changed(view: NodeView, facts: FreshNode) -> Reason | None:
    """What stands against draining a node now, and was not known when that was decided."""
    about = f"Node {view.name}"
    if facts.problem:
        return Reason(Code.FACTS_UNKNOWN, f"could not be read again: {facts.problem}", about)
    if facts.node is None or facts.node.metadata.uid != view.node.metadata.uid:
        return Reason(Code.FACTS_CHANGED, "is no longer there", about)
    if _is_protected(facts.node) and not _is_protected(view.node):
        return Reason(Code.NODE_DO_NOT_DISRUPT, "must not be disrupted since a moment ago", about)
    known = {(pod.key, pod.metadata.uid): pod for pod in view.pods}
    for pod in sorted(facts.pods, key=lambda pod: pod.key):
        reason = eviction_blocker(pod) or _news(known.get((pod.key, pod.metadata.uid)), pod)
        if reason is not None:
            return reason
    return None


def _is_protected(node: Node) -> bool:
    annotations = node.metadata.annotations
    return "true" in (annotations.get(DO_NOT_DISRUPT), annotations.get(SCALE_DOWN_DISABLED))


def _news(before: Pod | None, pod: Pod) -> Reason | None:
    if not needs_new_node(pod):
        return None
    about = f"Pod {pod.key}"
    if before is None:
        return Reason(Code.FACTS_CHANGED, f"came to node {pod.spec.node_name} a moment ago", about)
    if pod_change(before, pod) is Impact.COLUMNS:
        return Reason(Code.FACTS_CHANGED, "has other requests or constraints since a moment ago", about)
    return None
