"""The objects of the virtual cluster, by kind and key: immutable, replaced on change, watched.

Watchers are told at once, in the order in which they came, and only take note; whoever wants to answer with a change of
his own puts that on the agenda, so that nobody hears of changes in the wrong order.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec

from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.wire import Object
from karpool.model.workloads import DaemonSet, PodDisruptionBudget

T = TypeVar("T", bound=Object)
Watcher = Callable[[T | None, T | None], None]


class Versions:
    """The number of the latest change in a store."""

    def __init__(self) -> None:
        self.latest = 0

    def next(self) -> str:
        """The number of a new change."""
        self.latest += 1
        return str(self.latest)


class Shelf(Generic[T]):
    """The objects of one kind; `version` is that of the last change among them."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._held: dict[str, T] = {}
        self._watchers: list[Watcher[T]] = []
        self._listed: tuple[T, ...] | None = ()
        self.version = 0

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[T]:
        return iter(self._held.values())

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def get(self, key: str) -> T | None:
        """The object of a key, if it is there."""
        return self._held.get(key)

    def listed(self) -> tuple[T, ...]:
        """All objects, in the order in which they came; the same tuple until one changes."""
        if self._listed is None:
            self._listed = tuple(self._held.values())
        return self._listed

    def put(self, value: T) -> T:
        """Create or replace an object; it gets a new resource version."""
        key = value.key
        old = self._held.get(key)
        metadata = msgspec.structs.replace(value.metadata, resource_version=self._versions.next())
        new = msgspec.structs.replace(value, metadata=metadata)
        self._held[key] = new
        self._tell(old, new)
        return new

    def remove(self, key: str) -> None:
        """Take an object away, if it is there."""
        old = self._held.pop(key, None)
        if old is not None:
            self._versions.next()
            self._tell(old, None)

    def watch(self, watcher: Watcher[T]) -> None:
        """Be told of every change: what was before, and what is now."""
        self._watchers.append(watcher)

    def _tell(self, old: T | None, new: T | None) -> None:
        self.version = self._versions.latest
        self._listed = None
        for watcher in self._watchers:
            watcher(old, new)


class Store:
    """All objects of the virtual cluster."""

    def __init__(self) -> None:
        versions = self._versions = Versions()
        self.pods: Shelf[Pod] = Shelf(versions)
        self.nodes: Shelf[Node] = Shelf(versions)
        self.claims: Shelf[NodeClaim] = Shelf(versions)
        self.pools: Shelf[NodePool] = Shelf(versions)
        self.pdbs: Shelf[PodDisruptionBudget] = Shelf(versions)
        self.daemon_sets: Shelf[DaemonSet] = Shelf(versions)
        self._built: tuple[int, Objects] = (-1, Objects())

    @property
    def version(self) -> int:
        """The number of the latest change."""
        return self._versions.latest

    def objects(self) -> Objects:
        """Everything as decisions read it, made anew only after a change."""
        if self._built[0] != self.version:
            self._built = (self.version, self._build())
        return self._built[1]

    def _build(self) -> Objects:
        return Objects(
            pods=self.pods.listed(),
            nodes=self.nodes.listed(),
            node_claims=self.claims.listed(),
            node_pools=self.pools.listed(),
            pod_disruption_budgets=self.pdbs.listed(),
            daemon_sets=self.daemon_sets.listed(),
        )
