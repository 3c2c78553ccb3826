"""The kinds that decisions read as API resources; objects are decoded and validated as manifests are."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from karpool.kube.resources import Raw, Resource, Unreadable
from karpool.model import node, nodepool, pod, storage, workloads
from karpool.model.decoding import read_object
from karpool.model.kinds import KINDS
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.selectors import LabelSelector
from karpool.wire.objects import Object

T = TypeVar("T", bound=Object)


def collection_of(resource: Resource[Any]) -> str:
    """The field of `Objects` that holds a kind."""
    return KINDS[resource.kind].collection


def _read(kind: str, raw: Raw, api_version: str) -> Object | str:
    """An object, or the first rule that it breaks."""
    reading = read_object(raw, KINDS[kind], api_version)
    if reading.object is None or reading.refused:
        flaw = reading.refused[0]
        return f"{flaw.field}: {flaw.message}" if flaw.field else flaw.message
    return reading.object


class _NodeName(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _BoundPod(msgspec.Struct):
    spec: _NodeName = msgspec.field(default_factory=_NodeName)


def _protected_pod(unreadable: Unreadable) -> pod.Pod:
    """A pod of which only the node is known: it must not be disrupted."""
    try:
        node_name = msgspec.json.decode(unreadable.raw, type=_BoundPod).spec.node_name
    except msgspec.ValidationError:
        node_name = ""
    metadata = msgspec.structs.replace(unreadable.metadata, annotations={DO_NOT_DISRUPT: "true"})
    return pod.Pod(metadata=metadata, spec=pod.PodSpec(node_name=node_name), status=pod.PodStatus(phase="Running"))


def _strict_budget(unreadable: Unreadable) -> workloads.PodDisruptionBudget:
    """A budget with an unknown selector: it covers its whole namespace and, without a status, allows no eviction."""
    spec = workloads.BudgetSpec(selector=LabelSelector())
    return workloads.PodDisruptionBudget(metadata=unreadable.metadata, spec=spec)


_FALLBACKS: Final[dict[str, Callable[[Unreadable], Object]]] = {
    "Pod": _protected_pod,
    "PodDisruptionBudget": _strict_budget,
}


def resource_of(struct: type[T]) -> Resource[T]:
    kind = KINDS[struct.__name__]
    return Resource(
        kind.groups[0],
        "v1",
        kind.collection.replace("_", ""),
        kind.name,
        namespaced=kind.namespaced,
        type=struct,
        reader=partial(_read, kind.name),
        fallback=_FALLBACKS.get(kind.name),
    )


PODS: Final = resource_of(pod.Pod)
NODES: Final = resource_of(node.Node)
NODE_POOLS: Final = resource_of(nodepool.NodePool)
NODE_CLAIMS: Final = resource_of(nodepool.NodeClaim)
POD_DISRUPTION_BUDGETS: Final = resource_of(workloads.PodDisruptionBudget)
DAEMON_SETS: Final = resource_of(workloads.DaemonSet)
STATEFUL_SETS: Final = resource_of(workloads.StatefulSet)
PERSISTENT_VOLUME_CLAIMS: Final = resource_of(storage.PersistentVolumeClaim)
PERSISTENT_VOLUMES: Final = resource_of(storage.PersistentVolume)
STORAGE_CLASSES: Final = resource_of(storage.StorageClass)
CSI_NODES: Final = resource_of(node.CSINode)
VOLUME_ATTACHMENTS: Final = resource_of(storage.VolumeAttachment)
NAMESPACES: Final = resource_of(workloads.Namespace)
