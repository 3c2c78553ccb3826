"""What Cluster Autoscaler asks of a node and its pods before it removes the node.

The rules are those of its defaults. A cloud's own autoscaler may have fewer: see `GroupSource`.
"""

from typing import Final

from karpool.model.pod import Pod, Volume

SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SYSTEM: Final = "kube-system"
_REPLICATORS: Final = ("ReplicaSet", "ReplicationController", "StatefulSet", "Job")


def unsafe_to_evict(pod: Pod) -> bool:
    """Whether the pod says that it must not be evicted."""
    return pod.metadata.annotations.get(SAFE_TO_EVICT) == "false"


def safe_to_evict(pod: Pod) -> bool:
    """Whether the pod says that it may be evicted, whatever else would keep it."""
    return pod.metadata.annotations.get(SAFE_TO_EVICT) == "true"


def replicated(pod: Pod) -> bool:
    """Whether a controller would start the pod again elsewhere."""
    return any(owner.controller or owner.kind in _REPLICATORS for owner in pod.metadata.owner_references)


def local_volume(pod: Pod) -> Volume | None:
    """A volume whose content would be lost, unless it is named as safe to lose."""
    safe = {name.strip() for name in pod.metadata.annotations.get(SAFE_VOLUMES, "").split(",")}
    return next((volume for volume in pod.spec.volumes if _is_local(volume) and volume.name not in safe), None)


def _is_local(volume: Volume) -> bool:
    on_disk = volume.empty_dir is not None and volume.empty_dir.medium != "Memory"
    return on_disk or volume.host_path is not None


def kept_as_system_pod(pod: Pod, *, covered: bool) -> bool:
    """Whether the pod keeps its node because it is in kube-system; not if a PodDisruptionBudget has `covered` it."""
    system = pod.active and pod.metadata.namespace == SYSTEM and not pod.is_daemon and not pod.is_mirror
    return system and not covered and not safe_to_evict(pod)


UNSAFE_WORDS: Final = f"has {SAFE_TO_EVICT} false"
NOT_REPLICATED_WORDS: Final = "has no controller that would start it again elsewhere"
SYSTEM_WORDS: Final = (
    f"is in {SYSTEM}, and neither a PodDisruptionBudget nor {SAFE_TO_EVICT} true lets the autoscaler move it"
)


def local_words(volume: Volume) -> str:
    return f"keeps data on the node, in its volume {volume.name or '?'}"
