"""Volumes, claims on them, and how many of them a node can attach."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from karpool.model.labels import (
    HOSTNAME,
    ZONE,
)
from karpool.model.node import CSIDriver, CSIDriverAllocatable, CSINode, CSINodeSpec
from karpool.model.scheduling import (
    NodeSelector,
    NodeTerm,
)
from karpool.model.storage import (
    CSISource,
    LocalSource,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyExpression,
    TopologyTerm,
    VolumeClaimSpec,
    VolumeClaimStatus,
    VolumeNodeAffinity,
    VolumeSpec,
)
from karpool.wire.objects import Metadata
from tests.factories.pods import node_term


def pvc(
    name: str,
    *,
    namespace: str = "default",
    volume: str = "",
    storage_class: str | None = None,
    phase: str | None = None,
    deleted: datetime | None = None,
) -> PersistentVolumeClaim:
    """A claim; bound when it names a volume."""
    bound = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    return PersistentVolumeClaim(
        metadata=Metadata(name=name, namespace=namespace, annotations=bound, deletion_timestamp=deleted),
        spec=VolumeClaimSpec(volume_name=volume, storage_class_name=storage_class),
        status=VolumeClaimStatus(phase=phase or ("Bound" if volume else "Pending")),
    )


def local_volume(name: str, host: str | None) -> PersistentVolume:
    """A volume that is a directory of one host; without a name it does not say of which."""
    volume = pv(name, terms=[] if host is None else [node_term((HOSTNAME, "In", host))])
    return replace(volume, spec=replace(volume.spec, local=LocalSource(path="/data")))


def host_path_volume(name: str) -> PersistentVolume:
    """A volume that is a directory of whatever host its pod is on."""
    volume = pv(name)
    return replace(volume, spec=replace(volume.spec, host_path=LocalSource(path="/data")))


def pv(
    name: str, *, zones: Sequence[str] = (), terms: Sequence[NodeTerm] = (), driver: str | None = None
) -> PersistentVolume:
    """A volume that can be reached in some zones, or where any of some terms holds."""
    reach = (*terms, *([node_term((ZONE, "In", *zones))] if zones else []))
    return PersistentVolume(
        metadata=Metadata(name=name),
        spec=VolumeSpec(
            csi=CSISource(driver=driver) if driver else None,
            node_affinity=VolumeNodeAffinity(required=NodeSelector(node_selector_terms=reach)) if reach else None,
        ),
    )


def storage_class(
    name: str = "standard",
    *,
    provisioner: str = "csi.example.com",
    zones: Sequence[str] = (),
    binding: str = "WaitForFirstConsumer",
) -> StorageClass:
    terms = (
        (TopologyTerm(match_label_expressions=(TopologyExpression(key=ZONE, values=tuple(zones)),)),) if zones else ()
    )
    return StorageClass(
        metadata=Metadata(name=name), provisioner=provisioner, volume_binding_mode=binding, allowed_topologies=terms
    )


def csi_node(name: str, **limits: int) -> CSINode:
    """What a node can attach: `csi_node("n1", **{"csi.example.com": 3})`."""
    drivers = (CSIDriver(name=key, allocatable=CSIDriverAllocatable(count=count)) for key, count in limits.items())
    return CSINode(metadata=Metadata(name=name), spec=CSINodeSpec(drivers=tuple(drivers)))
