"""The kinds that decisions read as API resources; objects are decoded and validated as manifests are."""

from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from karpool.kube.resources import Raw, Resource, Unreadable
from karpool.model import capacity_buffer, devices, gangs, node, node_overlay, nodepool, pod, storage, workloads
from karpool.model.reading.decoding import read_object
from karpool.model.reading.kinds import KINDS
from karpool.model.reading.unreadable import stand_in
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


def _stand_in(kind: str, unreadable: Unreadable) -> Object:
    return stand_in(KINDS[kind], unreadable.raw, unreadable.problem)


def resource_of(struct: type[T]) -> Resource[T]:
    kind = KINDS[struct.__name__]
    return Resource(
        kind.groups[0],
        kind.version,
        kind.collection.replace("_", ""),
        kind.name,
        namespaced=kind.namespaced,
        type=struct,
        reader=partial(_read, kind.name),
        fallback=partial(_stand_in, kind.name),
    )


PODS: Final = resource_of(pod.Pod)
NODES: Final = resource_of(node.Node)
NODE_POOLS: Final = resource_of(nodepool.NodePool)
NODE_CLAIMS: Final = resource_of(nodepool.NodeClaim)
POD_DISRUPTION_BUDGETS: Final = resource_of(workloads.PodDisruptionBudget)
DAEMON_SETS: Final = resource_of(workloads.DaemonSet)
STATEFUL_SETS: Final = resource_of(workloads.StatefulSet)
DEPLOYMENTS: Final = resource_of(workloads.Deployment)
REPLICA_SETS: Final = resource_of(workloads.ReplicaSet)
POD_TEMPLATES: Final = resource_of(workloads.PodTemplate)
NODE_OVERLAYS: Final = resource_of(node_overlay.NodeOverlay)
CAPACITY_BUFFERS: Final = resource_of(capacity_buffer.CapacityBuffer)
REPLICATION_CONTROLLERS: Final = resource_of(workloads.ReplicationController)
SERVICES: Final = resource_of(workloads.Service)
PERSISTENT_VOLUME_CLAIMS: Final = resource_of(storage.PersistentVolumeClaim)
PERSISTENT_VOLUMES: Final = resource_of(storage.PersistentVolume)
STORAGE_CLASSES: Final = resource_of(storage.StorageClass)
CSI_NODES: Final = resource_of(node.CSINode)
RESOURCE_CLAIMS: Final = resource_of(devices.ResourceClaim)
RESOURCE_CLAIM_TEMPLATES: Final = resource_of(devices.ResourceClaimTemplate)
RESOURCE_SLICES: Final = resource_of(devices.ResourceSlice)
DEVICE_CLASSES: Final = resource_of(devices.DeviceClass)
POD_GROUPS: Final = resource_of(gangs.PodGroup)
WORKLOADS: Final = resource_of(gangs.Workload)
VOLUME_ATTACHMENTS: Final = resource_of(storage.VolumeAttachment)
PLAIN_CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True, type=workloads.ConfigMap)
"""ConfigMaps of which it matters what they say: one that cannot be read is an error."""
CONFIG_MAPS: Final = replace(
    PLAIN_CONFIG_MAPS,
    # That it is there is what counts of one that pauses, and one that cannot be read says nothing of groups.
    fallback=lambda unreadable: workloads.ConfigMap(metadata=unreadable.metadata),
)
PAUSES: Final = CONFIG_MAPS
"""The ConfigMap that pauses everything."""
NAMESPACES: Final = resource_of(workloads.Namespace)
