"""The kinds that decisions need: which struct holds each, and where it belongs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import msgspec

from karpool.model import capacity_buffer, devices, gangs, node, node_overlay, nodepool, pod, storage, workloads
from karpool.model.labels import PAUSE_MAP, STATUS_MAP
from karpool.wire.objects import Object, decode_value

KARPENTER: Final = "karpenter.sh"
AUTOSCALING: Final = "autoscaling.x-k8s.io"


@dataclass(frozen=True)
class Kind:
    """A kind of object: its struct, the field of `Objects` that collects it, its API groups, the version to ask for.

    `only`: where it is given, the objects that are read, by their names, and the field for each; no others of the kind
    are looked at.
    """

    struct: type[Object]
    collection: str
    groups: tuple[str, ...] = ("",)
    namespaced: bool = False
    version: str = "v1"
    only: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        return self.struct.__name__

    def collection_of(self, name: object) -> str | None:
        """The field for an object of this name; None if it is not read."""
        if not self.only:
            return self.collection
        return self.only.get(name) if isinstance(name, str) else None

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self.struct, dec_hook=decode_value)


_APPS: Final = ("apps", "extensions")
_STORAGE: Final = ("storage.k8s.io",)
_DEVICES: Final = ("resource.k8s.io",)
_LISTED: Final = (
    Kind(pod.Pod, "pods", namespaced=True),
    Kind(node.Node, "nodes"),
    Kind(nodepool.NodePool, "node_pools", (KARPENTER,)),
    Kind(nodepool.NodeClaim, "node_claims", (KARPENTER,)),
    Kind(workloads.PodDisruptionBudget, "pod_disruption_budgets", ("policy",), namespaced=True),
    Kind(workloads.DaemonSet, "daemon_sets", _APPS, namespaced=True),
    Kind(workloads.Deployment, "deployments", _APPS, namespaced=True),
    Kind(workloads.ReplicaSet, "replica_sets", _APPS, namespaced=True),
    Kind(workloads.ReplicationController, "replication_controllers", namespaced=True),
    Kind(workloads.StatefulSet, "stateful_sets", _APPS, namespaced=True),
    Kind(workloads.Service, "services", namespaced=True),
    Kind(workloads.Job, "jobs", ("batch",), namespaced=True),
    Kind(workloads.CronJob, "cron_jobs", ("batch",), namespaced=True),
    Kind(storage.PersistentVolumeClaim, "persistent_volume_claims", namespaced=True),
    Kind(storage.PersistentVolume, "persistent_volumes"),
    Kind(storage.StorageClass, "storage_classes", _STORAGE),
    Kind(node.CSINode, "csi_nodes", _STORAGE),
    Kind(storage.VolumeAttachment, "volume_attachments", _STORAGE),
    Kind(workloads.Namespace, "namespaces"),
    Kind(capacity_buffer.CapacityBuffer, "capacity_buffers", (AUTOSCALING,), namespaced=True, version="v1beta1"),
    Kind(node_overlay.NodeOverlay, "node_overlays", (KARPENTER,), version="v1alpha1"),
    Kind(workloads.PodTemplate, "pod_templates", namespaced=True),
    Kind(workloads.PriorityClass, "priority_classes", ("scheduling.k8s.io",)),
    Kind(devices.ResourceClaim, "resource_claims", _DEVICES, namespaced=True),
    Kind(devices.ResourceClaimTemplate, "resource_claim_templates", _DEVICES, namespaced=True),
    Kind(devices.ResourceSlice, "resource_slices", _DEVICES),
    Kind(devices.DeviceClass, "device_classes", _DEVICES),
    Kind(gangs.PodGroup, "pod_groups", gangs.POD_GROUP_API_GROUPS, namespaced=True, version="v1alpha1"),
    Kind(gangs.Workload, "workloads", (gangs.NATIVE,), namespaced=True, version="v1alpha1"),
    Kind(
        workloads.ConfigMap,
        "pauses",
        namespaced=True,
        only={PAUSE_MAP: "pauses", STATUS_MAP: "autoscaler_statuses"},
    ),
)
KINDS: Final = {kind.name: kind for kind in _LISTED}


def find_kind(name: str, api_version: str) -> Kind | None:
    """The kind to read an object as; None for kinds, or groups, that decisions do not need."""
    kind = KINDS.get(name)
    if kind is None or (api_version and _group(api_version) not in kind.groups):
        return None
    return kind


def _group(api_version: str) -> str:
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def qualified_kind(name: str, api_version: str) -> str:
    """The kind, with its group where the kind alone would be mistaken for one that we read."""
    group = _group(api_version)
    return f"{name}.{group}" if group and name in KINDS else name
