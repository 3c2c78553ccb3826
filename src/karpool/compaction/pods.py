"""Which pods leave a node that is drained, and which of them block the drain.

The rules are those of estafette-k8s-node-compactor. Where Cluster Autoscaler has finer ones (volumes in memory, volumes
that are named as safe to lose), these apply, because it must agree to remove the node.
"""

from typing import Final

from karpool.compaction.reasons import CompactionReasonCode as Code
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.pod import Pod, Volume
from karpool.model.reasons import Reason
from karpool.model.unreadable import unreadable_reason

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SYSTEM: Final = "kube-system"
_REPLICATORS: Final = ("ReplicaSet", "ReplicationController", "StatefulSet", "Job")


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
    annotations = pod.metadata.annotations
    if annotations.get(SAFE_TO_EVICT) == "false":
        return _reason(Code.POD_NOT_SAFE_TO_EVICT, f"has {SAFE_TO_EVICT} false", pod)
    if annotations.get(DO_NOT_DISRUPT) == "true":
        return _reason(Code.POD_DO_NOT_DISRUPT, f"has {DO_NOT_DISRUPT}", pod)
    if not needs_new_node(pod):
        return None
    if not _replicated(pod):
        return _reason(Code.POD_NOT_REPLICATED, "has no controller that would start it again elsewhere", pod)
    local = _local_volume(pod) if annotations.get(SAFE_TO_EVICT) != "true" else None
    if local is not None:
        return _reason(Code.POD_LOCAL_STORAGE, f"keeps data on the node, in its volume {local.name or '?'}", pod)
    return None


def autoscaler_blocker(pod: Pod, *, covered: bool) -> Reason | None:
    """Why Cluster Autoscaler, by default, does not remove a node with this kube-system pod; None: it does.

    `covered`: whether a PodDisruptionBudget covers the pod, which lets the autoscaler move it.
    """
    system = pod.active and pod.metadata.namespace == SYSTEM and not pod.is_daemon and not pod.is_mirror
    if not system or covered or pod.metadata.annotations.get(SAFE_TO_EVICT) == "true":
        return None
    message = f"is in {SYSTEM}, and neither a PodDisruptionBudget nor {SAFE_TO_EVICT} true lets the autoscaler move it"
    return _reason(Code.SYSTEM_POD, message, pod)


def _replicated(pod: Pod) -> bool:
    return any(owner.controller or owner.kind in _REPLICATORS for owner in pod.metadata.owner_references)


def _local_volume(pod: Pod) -> Volume | None:
    """A volume whose content would be lost, unless it is named as safe to lose."""
    safe = {name.strip() for name in pod.metadata.annotations.get(SAFE_VOLUMES, "").split(",")}
    return next((volume for volume in pod.spec.volumes if _is_local(volume) and volume.name not in safe), None)


def _is_local(volume: Volume) -> bool:
    on_disk = volume.empty_dir is not None and volume.empty_dir.medium != "Memory"
    return on_disk or volume.host_path is not None


def _reason(code: Code, message: str, pod: Pod) -> Reason:
    return Reason(code, message, f"Pod {pod.key}")
