"""The kinds of objects that decisions read, as resources of the API: each is read and checked as manifests are."""

from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from karpool.kube.resources import Raw, Resource, Unreadable
from karpool.model import node, nodepool, pod, storage, workloads
from karpool.model.decoding import read_claim, read_object, read_pool
from karpool.model.kinds import KARPENTER, KINDS
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.selectors import LabelSelector
from karpool.wire.objects import Object

T = TypeVar("T", bound=Object)

_STORAGE: Final = "storage.k8s.io"


def collection_of(resource: Resource[Any]) -> str:
    """The field of `Objects` that holds a kind."""
    return KINDS[resource.kind].collection


def _read(kind: str, raw: Raw, api_version: str) -> Object | str:
    """An object of a kind, or the first rule that it breaks."""
    if kind == "NodePool":
        reading = read_pool(raw, api_version)
    elif kind == "NodeClaim":
        reading = read_claim(raw, api_version)
    else:
        reading = read_object(raw, KINDS[kind])
    if reading.object is None or reading.refused:
        flaw = reading.refused[0]
        return f"{flaw.field}: {flaw.message}" if flaw.field else flaw.message
    return reading.object


class _Place(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Placed(msgspec.Struct):
    spec: _Place = msgspec.field(default_factory=_Place)


def _careful_pod(unreadable: Unreadable) -> pod.Pod:
    """A pod of which only the place is known: it must not be disturbed."""
    try:
        place = msgspec.json.decode(unreadable.raw, type=_Placed).spec
    except msgspec.ValidationError:
        place = _Place()
    metadata = msgspec.structs.replace(unreadable.metadata, annotations={DO_NOT_DISRUPT: "true"})
    spec, status = pod.PodSpec(node_name=place.node_name), pod.PodStatus(phase="Running")
    return pod.Pod(metadata=metadata, spec=spec, status=status)


def _careful_budget(unreadable: Unreadable) -> workloads.PodDisruptionBudget:
    """Whom a budget covers is unknown: everybody in its namespace. Without a status it lets nobody go."""
    spec = workloads.BudgetSpec(selector=LabelSelector())
    return workloads.PodDisruptionBudget(metadata=unreadable.metadata, spec=spec)


def _fallback(unreadable: Unreadable) -> Object | None:
    """What decisions reckon with instead of an object that cannot be read."""
    if unreadable.resource.kind == "Pod":
        return _careful_pod(unreadable)
    if unreadable.resource.kind == "PodDisruptionBudget":
        return _careful_budget(unreadable)
    return None


def _resource(group: str, plural: str, struct: type[T], *, namespaced: bool) -> Resource[T]:
    kind = struct.__name__
    return Resource(
        group,
        "v1",
        plural,
        kind,
        namespaced=namespaced,
        type=struct,
        reader=partial(_read, kind),
        fallback=_fallback,
    )


def _within_namespaces(group: str, plural: str, struct: type[T]) -> Resource[T]:
    return _resource(group, plural, struct, namespaced=True)


def _cluster_wide(group: str, plural: str, struct: type[T]) -> Resource[T]:
    return _resource(group, plural, struct, namespaced=False)


PODS: Final = _within_namespaces("", "pods", pod.Pod)
NODES: Final = _cluster_wide("", "nodes", node.Node)
NODE_POOLS: Final = _cluster_wide(KARPENTER, "nodepools", nodepool.NodePool)
NODE_CLAIMS: Final = _cluster_wide(KARPENTER, "nodeclaims", nodepool.NodeClaim)
POD_DISRUPTION_BUDGETS: Final = _within_namespaces("policy", "poddisruptionbudgets", workloads.PodDisruptionBudget)
DAEMON_SETS: Final = _within_namespaces("apps", "daemonsets", workloads.DaemonSet)
DEPLOYMENTS: Final = _within_namespaces("apps", "deployments", workloads.Deployment)
REPLICA_SETS: Final = _within_namespaces("apps", "replicasets", workloads.ReplicaSet)
REPLICATION_CONTROLLERS: Final = _within_namespaces("", "replicationcontrollers", workloads.ReplicationController)
STATEFUL_SETS: Final = _within_namespaces("apps", "statefulsets", workloads.StatefulSet)
JOBS: Final = _within_namespaces("batch", "jobs", workloads.Job)
CRON_JOBS: Final = _within_namespaces("batch", "cronjobs", workloads.CronJob)
PERSISTENT_VOLUME_CLAIMS: Final = _within_namespaces("", "persistentvolumeclaims", storage.PersistentVolumeClaim)
PERSISTENT_VOLUMES: Final = _cluster_wide("", "persistentvolumes", storage.PersistentVolume)
STORAGE_CLASSES: Final = _cluster_wide(_STORAGE, "storageclasses", storage.StorageClass)
CSI_NODES: Final = _cluster_wide(_STORAGE, "csinodes", node.CSINode)
VOLUME_ATTACHMENTS: Final = _cluster_wide(_STORAGE, "volumeattachments", storage.VolumeAttachment)
NAMESPACES: Final = _cluster_wide("", "namespaces", workloads.Namespace)
PRIORITY_CLASSES: Final = _cluster_wide("scheduling.k8s.io", "priorityclasses", workloads.PriorityClass)

# Everything that decisions read: one resource for each field of `Objects`.
WATCHED: Final[tuple[Resource[Any], ...]] = (
    PODS,
    NODES,
    NODE_POOLS,
    NODE_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    JOBS,
    CRON_JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    CSI_NODES,
    NAMESPACES,
    PRIORITY_CLASSES,
    VOLUME_ATTACHMENTS,
)
