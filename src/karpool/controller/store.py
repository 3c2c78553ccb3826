"""The objects of a cluster, by kind and key: immutable, replaced on change, watched.

Watchers are told at once, in the order in which they came, and only take note; whoever wants to answer with a change of
his own puts that on the agenda, so that nobody hears of changes in the wrong order.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from karpool.model.node import CSINode, Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from karpool.model.wire import Object
from karpool.model.workloads import DaemonSet, Namespace, PodDisruptionBudget, PriorityClass

T = TypeVar("T", bound=Object)
Watcher = Callable[[T | None, T | None], None]


class Versions:
    """The number of the latest change in a store."""

    def __init__(self) -> None:
        self.latest = 0

    def next(self) -> int:
        """The number of a new change."""
        self.latest += 1
        return self.latest


class Shelf(Generic[T]):
    """The objects of one kind; `version` is that of the last change among them."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._held: dict[str, T] = {}
        self._watchers: list[Watcher[T]] = []
        self._listed: tuple[int, tuple[T, ...]] = (0, ())
        self.version = 0

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[T]:
        return iter(self.listed())

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def get(self, key: str) -> T | None:
        """The object of a key, if it is there."""
        return self._held.get(key)

    def listed(self) -> tuple[T, ...]:
        """All objects, in the order in which they came; the same tuple until one changes."""
        # Another thread may change the shelf meanwhile, so what is kept says what it was made of.
        version, listed = self._listed
        if version != self.version:
            version = self.version
            listed = tuple(self._held.values())
            self._listed = (version, listed)
        return listed

    def put(self, value: T) -> T:
        """Create or replace an object."""
        key = value.key
        old = self._held.get(key)
        self._held[key] = value
        self._tell(old, value)
        return value

    def remove(self, key: str) -> None:
        """Take an object away, if it is there."""
        old = self._held.pop(key, None)
        if old is not None:
            self._tell(old, None)

    def watch(self, watcher: Watcher[T]) -> None:
        """Be told of every change: what was before, and what is now."""
        self._watchers.append(watcher)

    def _tell(self, old: T | None, new: T | None) -> None:
        self.version = self._versions.next()
        for watcher in self._watchers:
            watcher(old, new)


class Store:
    """All objects of a cluster that decisions read."""

    def __init__(self) -> None:
        versions = self._versions = Versions()
        self.pods: Shelf[Pod] = Shelf(versions)
        self.nodes: Shelf[Node] = Shelf(versions)
        self.claims: Shelf[NodeClaim] = Shelf(versions)
        self.pools: Shelf[NodePool] = Shelf(versions)
        self.pdbs: Shelf[PodDisruptionBudget] = Shelf(versions)
        self.daemon_sets: Shelf[DaemonSet] = Shelf(versions)
        self.volume_claims: Shelf[PersistentVolumeClaim] = Shelf(versions)
        self.volumes: Shelf[PersistentVolume] = Shelf(versions)
        self.storage_classes: Shelf[StorageClass] = Shelf(versions)
        self.csi_nodes: Shelf[CSINode] = Shelf(versions)
        self.namespaces: Shelf[Namespace] = Shelf(versions)
        self.priority_classes: Shelf[PriorityClass] = Shelf(versions)
        self.volume_attachments: Shelf[VolumeAttachment] = Shelf(versions)
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
        """Everything but the pods, for those who read them in columns: so many change that each list of them is new."""
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
        )
