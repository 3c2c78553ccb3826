"""Records what happens in a store of objects, live or virtual."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from karpool.controller.store import ClusterStore
from karpool.kube.store import Store
from karpool.model.objects import Objects
from karpool.recording.observer import Observer

_STORES: Final = {
    "NodePool": "pools",
    "NodeClaim": "claims",
    "Node": "nodes",
    "Pod": "pods",
    "PodDisruptionBudget": "pdbs",
    "DaemonSet": "daemon_sets",
    "Deployment": "deployments",
    "StatefulSet": "stateful_sets",
    "PersistentVolumeClaim": "volume_claims",
    "PersistentVolume": "volumes",
    "StorageClass": "storage_classes",
    "CSINode": "csi_nodes",
    "Namespace": "namespaces",
    "NodeOverlay": "overlays",
    "CapacityBuffer": "buffers",
    "ResourceClaim": "resource_claims",
    "ResourceClaimTemplate": "resource_claim_templates",
    "ResourceSlice": "resource_slices",
    "DeviceClass": "device_classes",
    "PodGroup": "pod_groups",
    "Workload": "workloads",
}


def record_store(store: ClusterStore, observer: Observer, now: Callable[[], datetime]) -> None:
    """Write down what is in a store now, and every change from now on."""
    observer.listed(_overlaid(store), now(), _STORES)
    for kind, name in _STORES.items():
        entries: Store[Any] = getattr(store, name)
        entries.watch(partial(_changed, observer, now, kind))


def _overlaid(store: ClusterStore) -> Objects:
    return replace(store.objects(), node_overlays=store.overlays.listed())


def _changed(observer: Observer, now: Callable[[], datetime], kind: str, old: Any, new: Any) -> None:
    if new is not None:
        observer.saw(kind, new, now())
    elif old is not None:
        observer.lost(kind, old.key, now())
