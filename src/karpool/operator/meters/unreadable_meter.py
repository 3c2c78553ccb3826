"""Counts objects that cannot be read, by kind, as they come and go."""

from collections import Counter
from functools import partial
from typing import Any

from karpool.controller.store import ClusterStore
from karpool.kube.store import Store
from karpool.wire.objects import Object


class UnreadableMeter:
    def __init__(self, store: ClusterStore) -> None:
        self._counts: Counter[str] = Counter()
        kinds: dict[str, Store[Any]] = {
            "Pod": store.pods,
            "Node": store.nodes,
            "NodeClaim": store.claims,
            "NodePool": store.pools,
            "PodDisruptionBudget": store.pdbs,
            "DaemonSet": store.daemon_sets,
            "PersistentVolumeClaim": store.volume_claims,
            "PersistentVolume": store.volumes,
            "StorageClass": store.storage_classes,
            "CSINode": store.csi_nodes,
            "Namespace": store.namespaces,
            "VolumeAttachment": store.volume_attachments,
        }
        for kind, objects in kinds.items():
            objects.watch(partial(self._changed, kind))

    def _changed(self, kind: str, old: Object | None, new: Object | None) -> None:
        self._counts[kind] += bool(new is not None and new.unreadable) - bool(old is not None and old.unreadable)

    def by_kind(self) -> dict[str, int]:
        """How many objects of each kind cannot be read now, where there is one."""
        return {kind: count for kind, count in self._counts.items() if count > 0}
