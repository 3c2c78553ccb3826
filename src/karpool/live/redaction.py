"""Removes everything from objects that decisions do not read, so that a snapshot file can be given away.

Most is removed by decoding: the structs have no fields for environments, arguments, commands, images or addresses. The
rest is removed here: above all, annotations that Karpool does not read.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from karpool.cluster.volumes import BIND_COMPLETED
from karpool.compaction import marks
from karpool.disruption.brakes.pause import REASON
from karpool.execution.tickets import COMMAND, REPLACES
from karpool.model import autoscaler_rules, gangs
from karpool.model import labels as names
from karpool.model.capacity_buffer import CapacityBuffer, CapacityBufferStatus
from karpool.model.group_sizes import STATUS_KEY
from karpool.model.managers import CAPI_KIND, CAPI_OWNER, OPENSHIFT_MACHINE
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Container, DiskOfCloud, HostPath, Pod, PodSpec, Volume
from karpool.model.storage import LocalSource, PersistentVolume
from karpool.model.workloads import ConfigMap, PodTemplate, PodTemplateSpec, StatefulSet, WorkloadObject, WorkloadSpec
from karpool.provisioning.pool_hash import pool_hash
from karpool.wire.objects import Metadata, Object

T = TypeVar("T", bound=Object)
W = TypeVar("W", bound=WorkloadObject)
S = TypeVar("S", Pod, Node, NodeClaim, NodePool)

ANNOTATIONS: Final = frozenset(
    {
        names.DO_NOT_DISRUPT,
        names.NODEPOOL_HASH,
        names.NODEPOOL_HASH_VERSION,
        names.TERMINATION_TIMESTAMP,
        names.DISRUPTION_COST,
        names.POD_DELETION_COST,
        names.OWN_DELETION_COST,
        names.GRACE_PERIOD,
        names.BALANCED_K,
        names.MINIMUM_SAVINGS,
        names.BUDGETS,
        names.DISRUPTIONS,
        names.HARM,
        names.MAX_EVICTIONS,
        names.PAUSED,
        names.FAILED_COMMAND,
        names.FAILED_LAUNCH,
        names.LAUNCHED_FOR,
        CAPI_KIND,
        CAPI_OWNER,
        OPENSHIFT_MACHINE,
        BIND_COMPLETED,
        COMMAND,
        REPLACES,
        marks.ANNOTATION,
        autoscaler_rules.SCALE_DOWN_DISABLED,
        autoscaler_rules.SAFE_TO_EVICT,
        autoscaler_rules.SAFE_VOLUMES,
        *gangs.ANNOTATIONS,
    }
)
"""The annotations that plans, the compactor or a simulation read."""
# The only condition whose message is shown.
_SHOWN_CONDITION: Final = "Drifted"


def redacted(objects: Objects) -> Objects:
    """The objects with only those fields that decisions read."""
    pools = tuple(map(_pool, objects.node_pools))
    # The hash of a template changes when annotations are removed.
    hashes = {pool_hash(old): pool_hash(new) for old, new in zip(objects.node_pools, pools, strict=True)}
    scaled = {
        f"{buffer.metadata.namespace}/{buffer.spec.scalable_ref.name}"
        for buffer in objects.capacity_buffers
        if buffer.spec.scalable_ref is not None
    }
    return Objects(
        pods=tuple(map(_pod, objects.pods)),
        nodes=tuple(map(_with_status, objects.nodes)),
        node_pools=tuple(_rehashed(pool, hashes) for pool in pools),
        node_claims=tuple(_rehashed(_with_status(claim), hashes) for claim in objects.node_claims),
        pod_disruption_budgets=tuple(map(_with_metadata, objects.pod_disruption_budgets)),
        daemon_sets=tuple(map(_workload, objects.daemon_sets)),
        stateful_sets=tuple(_stateful_set(entry, scaled) for entry in objects.stateful_sets),
        deployments=tuple(_workload(entry) for entry in objects.deployments if entry.key in scaled),
        replica_sets=tuple(_workload(entry) for entry in objects.replica_sets if entry.key in scaled),
        node_overlays=tuple(map(_with_metadata, objects.node_overlays)),
        pod_templates=tuple(map(_pod_template, objects.pod_templates)),
        capacity_buffers=tuple(map(_buffer, objects.capacity_buffers)),
        persistent_volume_claims=tuple(map(_with_metadata, objects.persistent_volume_claims)),
        persistent_volumes=tuple(map(_volume, objects.persistent_volumes)),
        storage_classes=tuple(map(_with_metadata, objects.storage_classes)),
        csi_nodes=tuple(map(_with_metadata, objects.csi_nodes)),
        namespaces=tuple(map(_with_metadata, objects.namespaces)),
        resource_claims=tuple(map(_with_metadata, objects.resource_claims)),
        resource_claim_templates=tuple(map(_with_metadata, objects.resource_claim_templates)),
        resource_slices=tuple(map(_with_metadata, objects.resource_slices)),
        device_classes=tuple(map(_with_metadata, objects.device_classes)),
        pod_groups=tuple(map(_with_metadata, objects.pod_groups)),
        workloads=tuple(map(_with_metadata, objects.workloads)),
        pauses=tuple(_config_map(entry, REASON) for entry in objects.pauses),
        autoscaler_statuses=tuple(_config_map(entry, STATUS_KEY) for entry in objects.autoscaler_statuses),
    )


class Redactor:
    """Redacts objects one by one, as `redacted` does all of them; workloads keep their templates."""

    def __init__(self) -> None:
        self._hashes: dict[str, str] = {}

    def __call__(self, kind: str, obj: Any) -> Any:
        """The object without what decisions do not read; pools have to come before the claims that they made."""
        if kind == "NodePool":
            kept = _pool(obj)
            self._hashes[pool_hash(obj)] = pool_hash(kept)
            return _rehashed(kept, self._hashes)
        if kind == "NodeClaim":
            return _rehashed(_with_status(obj), self._hashes)
        return _OF_KIND[kind](obj)


def _config_map(entry: ConfigMap, key: str) -> ConfigMap:
    """That there is one, and what it says under a key."""
    metadata = Metadata(name=entry.name, namespace=entry.metadata.namespace)
    return ConfigMap(metadata=metadata, data={key: entry.data[key]} if key in entry.data else {})


def _with_metadata(obj: T) -> T:
    return replace(obj, metadata=_metadata(obj.metadata))


def _metadata(metadata: Metadata) -> Metadata:
    return replace(metadata, annotations=_annotations(metadata.annotations), generation=0, resource_version="")


def _annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key in ANNOTATIONS}


def _with_status(obj: S) -> S:
    """The object with redacted metadata and conditions."""
    conditions = tuple(
        entry if entry.type == _SHOWN_CONDITION or not entry.message else replace(entry, message="")
        for entry in obj.status.conditions
    )
    return replace(_with_metadata(obj), status=replace(obj.status, conditions=conditions))


def _pod(pod: Pod) -> Pod:
    return replace(_with_status(pod), spec=_pod_spec(pod.spec))


def _pod_spec(spec: PodSpec) -> PodSpec:
    return replace(
        spec,
        containers=tuple(map(_container, spec.containers)),
        init_containers=tuple(map(_container, spec.init_containers)),
        volumes=tuple(_pod_volume(volume) for volume in spec.volumes if _limits_placement(volume)),
    )


def _container(container: Container) -> Container:
    return replace(container, ports=tuple(port for port in container.ports if port.host_port))


def _limits_placement(volume: Volume) -> bool:
    """Whether a volume matters for where its pod can run or whether it can be evicted."""
    return any((volume.persistent_volume_claim, volume.ephemeral, volume.empty_dir, volume.host_path, *_disks(volume)))


def _disks(volume: Volume) -> tuple[DiskOfCloud | None, ...]:
    return volume.aws_elastic_block_store, volume.gce_persistent_disk, volume.azure_disk


def _pod_volume(volume: Volume) -> Volume:
    if volume.host_path is not None:
        return replace(volume, host_path=HostPath())
    aws, google, azure = (None if disk is None else DiskOfCloud() for disk in _disks(volume))
    return replace(volume, aws_elastic_block_store=aws, gce_persistent_disk=google, azure_disk=azure)


def _template(template: PodTemplateSpec) -> PodTemplateSpec:
    return replace(template, metadata=_metadata(template.metadata), spec=_pod_spec(template.spec))


def _workload(entry: W) -> W:
    return replace(_with_metadata(entry), spec=replace(entry.spec, template=_template(entry.spec.template)))


def _stateful_set(entry: StatefulSet, scaled: Collection[str]) -> StatefulSet:
    """A StatefulSet without its template, unless a CapacityBuffer may need it."""
    if entry.key in scaled:
        return _workload(entry)
    return replace(_with_metadata(entry), spec=WorkloadSpec(replicas=entry.spec.replicas))


def _pod_template(entry: PodTemplate) -> PodTemplate:
    return replace(_with_metadata(entry), template=_template(entry.template))


def _buffer(buffer: CapacityBuffer) -> CapacityBuffer:
    return replace(_with_metadata(buffer), status=CapacityBufferStatus())


def _pool(pool: NodePool) -> NodePool:
    template = pool.spec.template
    metadata = replace(template.metadata, annotations=_annotations(template.metadata.annotations))
    return replace(_with_status(pool), spec=replace(pool.spec, template=replace(template, metadata=metadata)))


def _rehashed(obj: T, hashes: Mapping[str, str]) -> T:
    """The object with the hash of the redacted template: a simulation computes it, and nothing must seem to drift."""
    old = obj.metadata.annotations.get(names.NODEPOOL_HASH, "")
    if hashes.get(old, old) == old:
        return obj
    annotations = {**obj.metadata.annotations, names.NODEPOOL_HASH: hashes[old]}
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations))


def _volume(volume: PersistentVolume) -> PersistentVolume:
    """A volume's driver and topology, without paths and identifiers."""
    spec = volume.spec
    sources: dict[str, Any] = {
        "local": None if spec.local is None else LocalSource(),
        "host_path": None if spec.host_path is None else LocalSource(),
        "aws_elastic_block_store": None if spec.aws_elastic_block_store is None else {},
        "gce_persistent_disk": None if spec.gce_persistent_disk is None else {},
        "azure_disk": None if spec.azure_disk is None else {},
    }
    return replace(_with_metadata(volume), spec=replace(spec, **sources))


_OF_KIND: Final[dict[str, Callable[[Any], Any]]] = {
    "Pod": _pod,
    "Node": _with_status,
    "DaemonSet": _workload,
    "Deployment": _workload,
    "ReplicaSet": _workload,
    "StatefulSet": _workload,
    "PodTemplate": _pod_template,
    "PersistentVolume": _volume,
    "CapacityBuffer": _buffer,
    **dict.fromkeys(
        (
            "PodDisruptionBudget",
            "NodeOverlay",
            "PersistentVolumeClaim",
            "StorageClass",
            "CSINode",
            "Namespace",
            "ResourceClaim",
            "ResourceClaimTemplate",
            "ResourceSlice",
            "DeviceClass",
            "PodGroup",
            "Workload",
        ),
        _with_metadata,
    ),
}
"""How an object of a kind is redacted, where that does not depend on others."""
