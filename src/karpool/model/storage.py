"""Volumes and the claims on them, as far as they decide where a pod can run."""

from karpool.model.scheduling import NodeSelector
from karpool.wire.objects import Object, Wire


class VolumeClaimSpec(Wire):
    volume_name: str = ""
    storage_class_name: str | None = None


class VolumeClaimStatus(Wire):
    phase: str = ""


class PersistentVolumeClaim(Object):
    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: VolumeClaimStatus = VolumeClaimStatus()


class CSISource(Wire):
    driver: str


class VolumeNodeAffinity(Wire):
    required: NodeSelector | None = None


class LocalSource(Wire):
    path: str = ""


class InTreeSource(Wire):
    """A disk that a driver inside Kubernetes once attached; which one it is decides nothing."""


class VolumeSpec(Wire):
    csi: CSISource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    local: LocalSource | None = None
    host_path: LocalSource | None = None
    aws_elastic_block_store: InTreeSource | None = None
    gce_persistent_disk: InTreeSource | None = None
    azure_disk: InTreeSource | None = None


class PersistentVolume(Object):
    spec: VolumeSpec = VolumeSpec()


class TopologyExpression(Wire):
    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(Wire):
    match_label_expressions: tuple[TopologyExpression, ...] = ()


class StorageClass(Object):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class VolumeAttachmentSource(Wire):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Wire):
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Object):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
