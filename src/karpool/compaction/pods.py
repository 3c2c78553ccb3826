"""What draining a node means to its pods: which of them leave, and which of them keep the node.

The rules are those of estafette-k8s-node-compactor. Where Cluster Autoscaler knows more (volumes in memory, volumes
that are named as safe to lose), its rules are followed, because it has to agree to remove the node in the end.
"""

from typing import Final

from karpool.compaction.reasons import CompactionReasonCode
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.pod import Pod, Volume
from karpool.model.reasons import Reason

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SYSTEM: Final = "kube-system"
_REPLICATORS: Final = ("ReplicaSet", "ReplicationController", "StatefulSet", "Job")


def leaves(pod: Pod) -> bool:
    """Whether the pod has to be gone before a node is drained."""
    return not (pod.terminal or pod.is_daemon or pod.is_mirror or pod.metadata.namespace == SYSTEM)


def drained(pod: Pod) -> bool:
    """Whether the pod has to leave a node that is drained, and needs another place."""
    return leaves(pod) and pod.reschedulable


def why_stays(pod: Pod) -> str:
    """Why the pod stays on a node that is drained, or needs no other place; empty if it has to move."""
    if pod.is_daemon:
        return "belongs to a DaemonSet, and goes with its node"
    if pod.is_mirror:
        return "is a static pod of its node"
    if pod.metadata.namespace == SYSTEM:
        return f"is in {SYSTEM}, whose pods are not drained"
    return "" if drained(pod) else "ends already, and needs no other place"


def keeps(pod: Pod) -> Reason | None:
    """Why the pod keeps its node, if it does."""
    if not pod.active:
        return None
    annotations = pod.metadata.annotations
    if annotations.get(SAFE_TO_EVICT) == "false":
        return _reason(CompactionReasonCode.POD_NOT_SAFE_TO_EVICT, f"has {SAFE_TO_EVICT} false", pod)
    if annotations.get(DO_NOT_DISRUPT) == "true":
        return _reason(CompactionReasonCode.POD_DO_NOT_DISRUPT, f"has {DO_NOT_DISRUPT}", pod)
    if not drained(pod):
        return None
    if not _replicated(pod):
        return _reason(
            CompactionReasonCode.POD_NOT_REPLICATED, "has no controller that would start it again elsewhere", pod
        )
    local = _local_volume(pod) if annotations.get(SAFE_TO_EVICT) != "true" else None
    if local is not None:
        return _reason(
            CompactionReasonCode.POD_LOCAL_STORAGE, f"keeps data on the node, in its volume {local.name or '?'}", pod
        )
    return None


def stays_for_good(pod: Pod, *, covered: bool) -> Reason | None:
    """Why Cluster Autoscaler, as it is by default, would not remove a node with this kube-system pod; None: it would.

    `covered`: whether a PodDisruptionBudget covers the pod, which tells the autoscaler how to move it.
    """
    system = pod.active and pod.metadata.namespace == SYSTEM and not pod.is_daemon and not pod.is_mirror
    if not system or covered or pod.metadata.annotations.get(SAFE_TO_EVICT) == "true":
        return None
    said = f"is in {SYSTEM}, and neither a PodDisruptionBudget nor {SAFE_TO_EVICT} true lets the autoscaler move it"
    return _reason(CompactionReasonCode.SYSTEM_POD, said, pod)


def _replicated(pod: Pod) -> bool:
    return any(owner.controller or owner.kind in _REPLICATORS for owner in pod.metadata.owner_references)


def _local_volume(pod: Pod) -> Volume | None:
    """A volume whose content would be lost."""
    safe = {name.strip() for name in pod.metadata.annotations.get(SAFE_VOLUMES, "").split(",")}
    return next((volume for volume in pod.spec.volumes if _is_local(volume) and volume.name not in safe), None)


def _is_local(volume: Volume) -> bool:
    on_disk = volume.empty_dir is not None and volume.empty_dir.medium != "Memory"
    return on_disk or volume.host_path is not None


def _reason(code: CompactionReasonCode, message: str, pod: Pod) -> Reason:
    return Reason(code, message, f"Pod {pod.key}")
