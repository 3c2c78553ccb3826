"""Volumes and the claims on them, as far as they decide where a pod can run."""

from msgspec import field

from karpool.model.scheduling import NodeSelector
from karpool.wire.objects import Object, Wire


class VolumeClaimSpec(Wire):
    """What a claim asks for."""

    volume_name: str = ""
    storage_class_name: str | None = None


class VolumeClaimStatus(Wire):
    """How a claim fares."""

    phase: str = ""


class PersistentVolumeClaim(Object):
    """A claim on a volume."""

    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: VolumeClaimStatus = VolumeClaimStatus()


class CSISource(Wire):
    """The CSI driver behind a volume."""

    driver: str


class VolumeNodeAffinity(Wire):
    """Where a volume can be reached."""

    required: NodeSelector | None = None


class LocalSource(Wire):
    """A volume that is a part of one node."""

    path: str = ""


class VolumeSpec(Wire):
    """Where a volume is and what drives it."""

    csi: CSISource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    local: LocalSource | None = None
    host_path: LocalSource | None = None
    aws_elastic_block_store: dict[str, object] | None = field(name="awsElasticBlockStore", default=None)
    gce_persistent_disk: dict[str, object] | None = field(name="gcePersistentDisk", default=None)
    azure_disk: dict[str, object] | None = field(name="azureDisk", default=None)


class PersistentVolume(Object):
    """A volume."""

    spec: VolumeSpec = VolumeSpec()


class TopologyExpression(Wire):
    """A label key and the values it may have."""

    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(Wire):
    """Expressions that must all hold."""

    match_label_expressions: tuple[TopologyExpression, ...] = ()


class StorageClass(Object):
    """A class of volumes."""

    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class VolumeAttachmentSource(Wire):
    """The volume of an attachment."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Wire):
    """Which volume is attached to which node."""

    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Object):
    """An attached volume."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
