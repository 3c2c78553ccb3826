"""Writes down what becomes of a virtual cluster, as the API server and the cloud know it."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from tests.robustness.checker.records import Change, Fault, Json, Mark, Record, Request, Start

from karpool.kube.store import Store
from karpool.virtual.cloud import Instance
from karpool.virtual.cluster import VirtualCluster
from karpool.wire.objects import Object, encode_value

WATCHED: Final = {
    "Pod": "pods",
    "Node": "nodes",
    "NodeClaim": "claims",
    "NodePool": "pools",
    "PodDisruptionBudget": "pdbs",
    "DaemonSet": "daemon_sets",
    "ConfigMap": "pauses",
    "Namespace": "namespaces",
}
"""The kinds that change in these stories, and where a ClusterStore keeps them."""
PLURALS: Final = {
    "Pod": "pods",
    "Node": "nodes",
    "NodeClaim": "nodeclaims",
    "NodePool": "nodepools",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "DaemonSet": "daemonsets",
    "ConfigMap": "configmaps",
    "Namespace": "namespaces",
}


def as_json(value: object) -> Any:
    return msgspec.to_builtins(value, enc_hook=encode_value)


class HistoryRecorder:
    """The records of one story, in the order in which things happened; `injected` counts the faults."""

    def __init__(self, cluster: VirtualCluster, seed: int, settings: Json | None = None) -> None:
        self.cluster = cluster
        self.queue = cluster.queue
        epoch = cluster.queue.start.isoformat()
        self.records: list[Record] = [Start(seed=seed, epoch=epoch, settings=settings or {})]
        self.injected: Counter[str] = Counter()
        self._by = -1
        for kind, attribute in WATCHED.items():
            store: Store[Any] = getattr(cluster.store, attribute)
            for obj in store:
                self._changed(kind, None, obj)
            store.watch(self._watcher(kind))
        cluster.cloud.on_start.append(self._started)
        cluster.cloud.on_end.append(self._ended)

    @property
    def revision(self) -> int:
        """The revision that the next record will have."""
        return len(self.records)

    # -- the cluster ---------------------------------------------------------------------------------------------

    def _watcher(self, kind: str) -> Callable[[Object | None, Object | None], None]:
        return lambda old, new: self._changed(kind, old, new)

    def _changed(self, kind: str, old: Object | None, new: Object | None) -> None:
        known = new if new is not None else old
        if known is not None:
            self.note(kind, known.key, None if new is None else as_json(new))

    def _started(self, instance: Instance) -> None:
        self.note("Instance", instance.name, {"metadata": {"name": instance.name}})

    def _ended(self, instance: Instance) -> None:
        self.note("Instance", instance.name, None)

    def note(self, kind: str, key: str, obj: Json | None) -> None:
        self.records.append(Change(self.queue.time, kind, key, obj, self._by))

    # -- requests and faults -------------------------------------------------------------------------------------

    @contextmanager
    def request(self, request: Request) -> Iterator[None]:
        """Write a request down; what changes meanwhile is its doing."""
        self._by = self.revision
        self.records.append(request)
        try:
            yield
        finally:
            self._by = -1

    def fault(self, kind: str, who: str = "", seconds: float = 0.0) -> None:
        self.injected[kind] += 1
        self.records.append(Fault(self.queue.time, kind, who, seconds))

    def mark(self, what: str) -> None:
        self.records.append(Mark(self.queue.time, what))
