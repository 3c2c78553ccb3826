"""What decisions read of a cluster, and nothing else: fit to be given away.

Most is left out by reading: objects are typed, and there is no field for environments, arguments, commands, images or
addresses. Left out here is what the types hold and nobody reads, above all annotations that nobody asks for.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from karpool.cluster.volumes import BIND_COMPLETED
from karpool.compaction import marks, nodes, pods
from karpool.execution.tickets import COMMAND, REPLACES
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Container, HostPath, Pod, PodSpec, Volume
from karpool.model.storage import LocalSource, PersistentVolume
from karpool.model.workloads import DaemonSet, StatefulSet, WorkloadSpec
from karpool.provisioning.pool_hash import pool_hash
from karpool.wire.objects import Condition, Metadata, Object

T = TypeVar("T", bound=Object)

ANNOTATIONS: Final = frozenset(
    {
        names.DO_NOT_DISRUPT,
        names.NODEPOOL_HASH,
        names.NODEPOOL_HASH_VERSION,
        names.TERMINATION_TIMESTAMP,
        names.POD_DELETION_COST,
        names.GRACE_PERIOD,
        names.BALANCED_K,
        names.MINIMUM_SAVINGS,
        names.BUDGETS,
        BIND_COMPLETED,
        COMMAND,
        REPLACES,
        marks.ANNOTATION,
        nodes.SCALE_DOWN_DISABLED,
        pods.SAFE_TO_EVICT,
        pods.SAFE_VOLUMES,
    }
)
"""The annotations that somebody reads: plans, the compactor, or a simulation."""
# The only condition whose message is shown.
_TELLING: Final = "Drifted"


def redacted(objects: Objects) -> Objects:
    """The objects that decisions read, with what decisions read of them."""
    pools = tuple(map(_pool, objects.node_pools))
    stamps = _stamps(objects.node_pools, pools)
    return Objects(
        pods=_each(_pod, objects.pods),
        nodes=_each(_node, objects.nodes),
        node_pools=tuple(_restamped(pool, stamps) for pool in pools),
        node_claims=tuple(_restamped(_claim(claim), stamps) for claim in objects.node_claims),
        pod_disruption_budgets=_each(_bare, objects.pod_disruption_budgets),
        daemon_sets=_each(_daemon_set, objects.daemon_sets),
        stateful_sets=_each(_stateful_set, objects.stateful_sets),
        persistent_volume_claims=_each(_bare, objects.persistent_volume_claims),
        persistent_volumes=_each(_volume, objects.persistent_volumes),
        storage_classes=_each(_bare, objects.storage_classes),
        csi_nodes=_each(_bare, objects.csi_nodes),
        namespaces=_each(_bare, objects.namespaces),
    )


def _each(slim: Callable[[T], T], listed: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(map(slim, listed))


def _bare(thing: T) -> T:
    return replace(thing, metadata=_metadata(thing.metadata))


def _metadata(metadata: Metadata) -> Metadata:
    return replace(metadata, annotations=_annotations(metadata.annotations), generation=0, resource_version="")


def _annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key in ANNOTATIONS}


def _conditions(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple(one if one.type == _TELLING or not one.message else replace(one, message="") for one in conditions)


# -- pods --------------------------------------------------------------------------------------------------------


def _pod(pod: Pod) -> Pod:
    status = replace(pod.status, conditions=_conditions(pod.status.conditions))
    return replace(_bare(pod), spec=_pod_spec(pod.spec), status=status)


def _pod_spec(spec: PodSpec) -> PodSpec:
    return replace(
        spec,
        containers=tuple(map(_container, spec.containers)),
        init_containers=tuple(map(_container, spec.init_containers)),
        volumes=tuple(_pod_volume(volume) for volume in spec.volumes if _binds(volume)),
    )


def _container(container: Container) -> Container:
    return replace(container, ports=tuple(port for port in container.ports if port.host_port))


def _binds(volume: Volume) -> bool:
    """Whether a volume has to do with where its pod can run."""
    return any((volume.persistent_volume_claim, volume.ephemeral, volume.empty_dir, volume.host_path))


def _pod_volume(volume: Volume) -> Volume:
    return volume if volume.host_path is None else replace(volume, host_path=HostPath())


def _daemon_set(entry: DaemonSet) -> DaemonSet:
    template = entry.spec.template
    slim = replace(template, metadata=_metadata(template.metadata), spec=_pod_spec(template.spec))
    return replace(_bare(entry), spec=replace(entry.spec, template=slim))


def _stateful_set(entry: StatefulSet) -> StatefulSet:
    return replace(_bare(entry), spec=WorkloadSpec(replicas=entry.spec.replicas))


# -- nodes and pools ---------------------------------------------------------------------------------------------


def _node(node: Node) -> Node:
    return replace(_bare(node), status=replace(node.status, conditions=_conditions(node.status.conditions)))


def _claim(claim: NodeClaim) -> NodeClaim:
    return replace(_bare(claim), status=replace(claim.status, conditions=_conditions(claim.status.conditions)))


def _pool(pool: NodePool) -> NodePool:
    template = pool.spec.template
    metadata = replace(template.metadata, annotations=_annotations(template.metadata.annotations))
    return replace(
        _bare(pool),
        spec=replace(pool.spec, template=replace(template, metadata=metadata)),
        status=replace(pool.status, conditions=_conditions(pool.status.conditions)),
    )


def _stamps(before: tuple[NodePool, ...], after: tuple[NodePool, ...]) -> Mapping[str, str]:
    """Hashes of templates that are Karpool's own, and what they are once annotations are left out."""
    return {pool_hash(old): pool_hash(new) for old, new in zip(before, after, strict=True)}


def _restamped(thing: T, stamps: Mapping[str, str]) -> T:
    """The same with the hash of the redacted template: a simulation computes it, and nothing must seem to drift."""
    held = thing.metadata.annotations.get(names.NODEPOOL_HASH, "")
    if stamps.get(held, held) == held:
        return thing
    annotations = {**thing.metadata.annotations, names.NODEPOOL_HASH: stamps[held]}
    return replace(thing, metadata=replace(thing.metadata, annotations=annotations))


# -- volumes -----------------------------------------------------------------------------------------------------


def _volume(volume: PersistentVolume) -> PersistentVolume:
    """What drives a volume and where it is reached, not how."""
    spec = volume.spec
    kept: dict[str, Any] = {
        "local": None if spec.local is None else LocalSource(),
        "host_path": None if spec.host_path is None else LocalSource(),
        "aws_elastic_block_store": None if spec.aws_elastic_block_store is None else {},
        "gce_persistent_disk": None if spec.gce_persistent_disk is None else {},
        "azure_disk": None if spec.azure_disk is None else {},
    }
    return replace(_bare(volume), spec=replace(spec, **kept))
