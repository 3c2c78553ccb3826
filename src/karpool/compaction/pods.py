"""Which pods leave a node that is drained, and which of them block the drain.

The rules are those of estafette-k8s-node-compactor. Where Cluster Autoscaler has finer ones (volumes in memory, volumes
that are named as safe to lose), these apply, because it must agree to remove the node.
"""

from karpool.compaction.reasons import CompactionReasonCode as Code
from karpool.model import autoscaler_rules as rules
from karpool.model.autoscaler_rules import SYSTEM
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.pod import Pod
from karpool.model.reading.unreadable import unreadable_reason
from karpool.model.reasons import Reason


def must_leave(pod: Pod) -> bool:
    """Whether a node counts as drained only when the pod is gone."""
    return not (pod.terminal or pod.is_daemon or pod.is_mirror or pod.metadata.namespace == SYSTEM)


def needs_new_node(pod: Pod) -> bool:
    return must_leave(pod) and pod.reschedulable


def why_stays(pod: Pod) -> str:
    """Why the pod stays on a node that is drained, or needs no other node; empty if it must move."""
    if pod.is_daemon:
        return "belongs to a DaemonSet, and goes with its node"
    if pod.is_mirror:
        return "is a static pod of its node"
    if pod.metadata.namespace == SYSTEM:
        return f"is in {SYSTEM}, whose pods are not drained"
    return "" if needs_new_node(pod) else "ends already, and needs no other place"


def eviction_blocker(pod: Pod) -> Reason | None:
    if pod.unreadable and not pod.terminal:
        return unreadable_reason("Pod", pod)
    if not pod.active:
        return None
    if rules.unsafe_to_evict(pod):
        return _reason(Code.POD_NOT_SAFE_TO_EVICT, rules.UNSAFE_WORDS, pod)
    if pod.metadata.annotations.get(DO_NOT_DISRUPT) == "true":
        return _reason(Code.POD_DO_NOT_DISRUPT, f"has {DO_NOT_DISRUPT}", pod)
    if not needs_new_node(pod):
        return None
    if not rules.replicated(pod):
        return _reason(Code.POD_NOT_REPLICATED, rules.NOT_REPLICATED_WORDS, pod)
    local = None if rules.safe_to_evict(pod) else rules.local_volume(pod)
    return None if local is None else _reason(Code.POD_LOCAL_STORAGE, rules.local_words(local), pod)


def autoscaler_blocker(pod: Pod, *, covered: bool) -> Reason | None:
    """Why Cluster Autoscaler, by default, does not remove a node with this kube-system pod; None: it does.

    `covered`: whether a PodDisruptionBudget covers the pod, which lets the autoscaler move it.
    """
    return _reason(Code.SYSTEM_POD, rules.SYSTEM_WORDS, pod) if rules.kept_as_system_pod(pod, covered=covered) else None


def _reason(code: Code, message: str, pod: Pod) -> Reason:
    return Reason(code, message, f"Pod {pod.key}")
