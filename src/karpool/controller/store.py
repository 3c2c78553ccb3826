"""The objects of a cluster that decisions read: one store for each kind."""

from karpool.kube.store import Store, Versions
from karpool.model.capacity_buffer import CapacityBuffer
from karpool.model.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from karpool.model.gangs import PodGroup, Workload
from karpool.model.node import CSINode, Node
from karpool.model.node_overlay import NodeOverlay
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from karpool.model.workloads import (
    ConfigMap,
    DaemonSet,
    Deployment,
    Namespace,
    PodDisruptionBudget,
    PodTemplate,
    PriorityClass,
    ReplicaSet,
    StatefulSet,
)


class ClusterStore:
    """All objects of a cluster that decisions read."""

    def __init__(self) -> None:
        versions = self._versions = Versions()
        self.pods: Store[Pod] = Store(versions)
        self.nodes: Store[Node] = Store(versions)
        self.claims: Store[NodeClaim] = Store(versions)
        self.pools: Store[NodePool] = Store(versions)
        self.pdbs: Store[PodDisruptionBudget] = Store(versions)
        self.daemon_sets: Store[DaemonSet] = Store(versions)
        self.volume_claims: Store[PersistentVolumeClaim] = Store(versions)
        self.volumes: Store[PersistentVolume] = Store(versions)
        self.storage_classes: Store[StorageClass] = Store(versions)
        self.csi_nodes: Store[CSINode] = Store(versions)
        self.namespaces: Store[Namespace] = Store(versions)
        self.priority_classes: Store[PriorityClass] = Store(versions)
        self.volume_attachments: Store[VolumeAttachment] = Store(versions)
        self.pauses: Store[ConfigMap] = Store(versions)
        self.overlays: Store[NodeOverlay] = Store(versions)
        self.buffers: Store[CapacityBuffer] = Store(versions)
        self.pod_templates: Store[PodTemplate] = Store(versions)
        self.resource_claims: Store[ResourceClaim] = Store(versions)
        self.resource_claim_templates: Store[ResourceClaimTemplate] = Store(versions)
        self.resource_slices: Store[ResourceSlice] = Store(versions)
        self.device_classes: Store[DeviceClass] = Store(versions)
        self.pod_groups: Store[PodGroup] = Store(versions)
        self.workloads: Store[Workload] = Store(versions)
        # Only the workloads that buffers refer to.
        self.deployments: Store[Deployment] = Store(versions)
        self.stateful_sets: Store[StatefulSet] = Store(versions)
        self.replica_sets: Store[ReplicaSet] = Store(versions)
        self._built: tuple[int, Objects] = (-1, Objects())

    @property
    def version(self) -> int:
        """The number of the latest change."""
        return self._versions.latest

    def objects(self) -> Objects:
        """Everything as decisions read it, made anew only after a change."""
        if self._built[0] != self.version:
            self._built = (self.version, self._build(self.pods.listed()))
        return self._built[1]

    def but_pods(self) -> Objects:
        """Everything but the pods: they are read from columns, and change so often that every list of them is new."""
        return self._build(())

    def _build(self, pods: tuple[Pod, ...]) -> Objects:
        return Objects(
            pods=pods,
            nodes=self.nodes.listed(),
            node_claims=self.claims.listed(),
            node_pools=self.pools.listed(),
            pod_disruption_budgets=self.pdbs.listed(),
            daemon_sets=self.daemon_sets.listed(),
            persistent_volume_claims=self.volume_claims.listed(),
            persistent_volumes=self.volumes.listed(),
            storage_classes=self.storage_classes.listed(),
            csi_nodes=self.csi_nodes.listed(),
            namespaces=self.namespaces.listed(),
            priority_classes=self.priority_classes.listed(),
            volume_attachments=self.volume_attachments.listed(),
            pauses=self.pauses.listed(),
            capacity_buffers=self.buffers.listed(),
            pod_templates=self.pod_templates.listed(),
            deployments=self.deployments.listed(),
            stateful_sets=self.stateful_sets.listed(),
            replica_sets=self.replica_sets.listed(),
            resource_claims=self.resource_claims.listed(),
            resource_claim_templates=self.resource_claim_templates.listed(),
            resource_slices=self.resource_slices.listed(),
            device_classes=self.device_classes.listed(),
            pod_groups=self.pod_groups.listed(),
            workloads=self.workloads.listed(),
        )
