"""The objects of a cluster, by kind: what loading gives and everything else reads."""

import msgspec

from karpool.model.capacity_buffer import CapacityBuffer
from karpool.model.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from karpool.model.gangs import PodGroup, Workload
from karpool.model.node import CSINode, Node
from karpool.model.node_overlay import NodeOverlay
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from karpool.model.workloads import (
    ConfigMap,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    Namespace,
    PodDisruptionBudget,
    PodTemplate,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


class Objects(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was read, in the order it was read."""

    pods: tuple[Pod, ...] = ()
    nodes: tuple[Node, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    node_claims: tuple[NodeClaim, ...] = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    replica_sets: tuple[ReplicaSet, ...] = ()
    replication_controllers: tuple[ReplicationController, ...] = ()
    stateful_sets: tuple[StatefulSet, ...] = ()
    services: tuple[Service, ...] = ()
    jobs: tuple[Job, ...] = ()
    cron_jobs: tuple[CronJob, ...] = ()
    persistent_volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    persistent_volumes: tuple[PersistentVolume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    capacity_buffers: tuple[CapacityBuffer, ...] = ()
    node_overlays: tuple[NodeOverlay, ...] = ()
    pod_templates: tuple[PodTemplate, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    resource_claim_templates: tuple[ResourceClaimTemplate, ...] = ()
    resource_slices: tuple[ResourceSlice, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    workloads: tuple[Workload, ...] = ()
    pauses: tuple[ConfigMap, ...] = ()
    """ConfigMaps that pause everything."""
    autoscaler_statuses: tuple[ConfigMap, ...] = ()
    """ConfigMaps in which Cluster Autoscaler says how its groups are."""
