"""A cluster as pages show it: rows of all its nodes and pods, and what has changed in them since.

Stores say from any thread which objects have changed; the rows are made later, in slices, on the event loop. Whoever
has read everything needs only the changes, numbered one after the other.
"""

import uuid
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import msgspec

from karpool.catalog.instance_types import Catalog
from karpool.cluster.pairing import Pairing, PairingChange
from karpool.controller.store import ClusterStore
from karpool.kube.store import Store, Watcher
from karpool.model.pod import Pod
from karpool.web.rows import NODE_FIELDS, POD_FIELDS, Labels, Row, Tables, node_row, pod_row, pool_row
from karpool.wire.objects import Object

_KEPT_CHANGES: Final = 2_000
_encode: Final = msgspec.json.Encoder().encode


class FleetRows:
    """The rows of one cluster; the numbers of nodes and pods mean the same as long as it lives."""

    def __init__(self, store: ClusterStore, catalog: Callable[[], Catalog]) -> None:
        self.epoch = uuid.uuid4().hex
        self.number = 0
        """The number of the latest change."""
        self.begun = False
        """Whether all that was there at the beginning has its rows."""
        self._store = store
        self._catalog_of = catalog
        self._catalog: Catalog | None = None
        self._pairing = Pairing()
        self._tables = Tables()
        self._node_numbers: dict[str, int] = {}
        self._nodes: dict[int, Row] = {}
        self._pods: dict[int, Row] = {}
        self._pod_numbers: dict[str, int] = {}
        self._latest = 0
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=_KEPT_CHANGES)
        self._sizes = self._tables.sizes()
        self._changed_nodes: set[int] = set()
        self._changed_pods: set[int] = set()
        self._gone_nodes: set[int] = set()
        self._gone_pods: set[int] = set()
        self._pools_changed = True
        self._namespaces: dict[str, Labels] = {}
        self._changed_namespaces: set[str] = set()
        # Filled by watchers in any thread, emptied here: single operations on a dict are atomic.
        self._dirty: dict[tuple[str, str], None] = {}
        self._watched: list[tuple[Store[Any], Watcher[Any]]] = []
        self._watch()
        self.pods_at_first = len(store.pods)

    def _watch(self) -> None:
        store = self._store
        # The last one in is the first one out: pools, nodes and claims before pods.
        stores: dict[str, Store[Any]] = {
            "pod": store.pods,
            "claim": store.claims,
            "node": store.nodes,
            "pool": store.pools,
            "namespace": store.namespaces,
        }
        for kind, kept in stores.items():
            watcher = partial(self._note, kind)
            kept.watch(watcher)
            self._watched.append((kept, watcher))
        for kind, kept in stores.items():
            self._dirty.update(((kind, entry.key), None) for entry in kept.listed())

    def _note(self, kind: str, old: Object | None, new: Object | None) -> None:
        entry = old if new is None else new
        if entry is not None:
            self._dirty[kind, entry.key] = None

    def close(self) -> None:
        """Follow the store no more."""
        for kept, watcher in self._watched:
            kept.unwatch(watcher)
        self._dirty.clear()

    @property
    def waiting(self) -> int:
        """How many changed objects have no new row yet."""
        return len(self._dirty)

    def read(self, most: int) -> None:
        """Make the rows of so many changed objects."""
        self._catalog = self._catalog or self._catalog_of()
        for _ in range(min(most, len(self._dirty))):
            (kind, key), _nothing = self._dirty.popitem()
            if kind == "pod":
                self._read_pod(key)
            elif kind == "node":
                self._apply(self._pairing.set_node(key, self._store.nodes.get(key)))
            elif kind == "claim":
                self._apply(self._pairing.set_claim(key, self._store.claims.get(key)))
            elif kind == "namespace":
                self._read_namespace(key)
            else:
                self._pools_changed = True

    def reprice(self) -> None:
        """Look at the catalogue again, and make the rows of nodes whose price has changed."""
        catalog = self._catalog_of()
        if catalog is self._catalog:
            return
        self._catalog = catalog
        for state in self._pairing.states():
            self._put_node(state.name, node_row(self._node_number(state.name), state, catalog, self._tables))

    # -- rows ----------------------------------------------------------------------------------------------------

    def _node_number(self, name: str) -> int:
        """The number of a node, which may be known before the node is."""
        number = self._node_numbers.get(name)
        if number is None:
            self._latest += 1
            number = self._node_numbers[name] = self._latest
        return number

    def _apply(self, change: PairingChange) -> None:
        assert self._catalog is not None  # noqa: S101 - `read` has asked for it
        for name in change.gone:
            number = self._node_number(name)
            if self._nodes.pop(number, None) is not None:
                self._gone_nodes.add(number)
                self._changed_nodes.discard(number)
        for state in change.states:
            row = node_row(self._node_number(state.name), state, self._catalog, self._tables)
            self._put_node(state.name, row)

    def _put_node(self, name: str, row: Row) -> None:
        number = self._node_number(name)
        if self._nodes.get(number) != row:
            self._nodes[number] = row
            self._changed_nodes.add(number)
            self._gone_nodes.discard(number)

    def _read_pod(self, key: str) -> None:
        pod = self._store.pods.get(key)
        if pod is None or pod.terminal:
            self._drop_pod(key)
            return
        number = self._pod_numbers.get(key)
        if number is None:
            self._latest += 1
            number = self._pod_numbers[key] = self._latest
        row = pod_row(number, pod, self._node_of(pod), self._tables)
        if self._pods.get(number) != row:
            self._pods[number] = row
            self._changed_pods.add(number)

    def _node_of(self, pod: Pod) -> int:
        return self._node_number(pod.spec.node_name) if pod.spec.node_name else 0

    def _drop_pod(self, key: str) -> None:
        number = self._pod_numbers.pop(key, None)
        if number is not None:
            del self._pods[number]
            self._changed_pods.discard(number)
            self._gone_pods.add(number)

    def _read_namespace(self, key: str) -> None:
        """Its labels are those of pods that lack them."""
        namespace = self._store.namespaces.get(key)
        labels = {} if namespace is None else namespace.metadata.labels
        if labels == self._namespaces.get(key, {}):
            return
        self._changed_namespaces.add(key)
        if labels:
            self._namespaces[key] = labels
        else:
            del self._namespaces[key]

    # -- documents -----------------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """All nodes and pools; pods are read in parts, since there are so many."""
        return {
            "epoch": self.epoch,
            "number": self.number,
            "time": _now(),
            "nodeFields": NODE_FIELDS,
            "podFields": POD_FIELDS,
            "nodes": list(self._nodes.values()),
            "podCount": max(len(self._pods), len(self._store.pods)),
            "pools": self._pool_rows(),
            "namespaces": self._namespaces,
            **self._tables.since((0, 0)),
        }

    def pods_after(self, number: int, most: int, known_tables: tuple[int, int]) -> bytes:
        """The next pods in order of their numbers, and where to go on; null at the end."""
        rows: list[Row] = []
        for known, row in self._pods.items():
            if known > number:
                rows.append(row)
                if len(rows) == most:
                    break
        following = rows[-1][0] if len(rows) == most else None
        return _encode({"pods": rows, "next": following, **self._tables.since(known_tables)})

    def _pool_rows(self) -> list[dict[str, Any]]:
        return [pool_row(pool) for pool in self._store.pools.listed()]

    def nodes_known(self) -> None:
        """From now on documents have all nodes: only what changes in them from now on is a change."""
        self._changed_nodes.clear()
        self._gone_nodes.clear()
        self._changed_namespaces.clear()
        self._pools_changed = False

    def pods_known(self) -> None:
        """From now on parts have all pods."""
        self._changed_pods.clear()
        self._gone_pods.clear()
        self._sizes = self._tables.sizes()

    def change(self) -> tuple[int, bytes] | None:
        """What has changed since the last call, numbered and encoded; None if nothing has."""
        changes: dict[str, Any] = {
            "nodes": [self._nodes[number] for number in self._changed_nodes],
            "goneNodes": list(self._gone_nodes),
            "pods": [self._pods[number] for number in self._changed_pods],
            "gonePods": list(self._gone_pods),
            "namespaces": {name: self._namespaces.get(name) for name in self._changed_namespaces},
        }
        if not self._pools_changed and not any(changes.values()):
            return None
        if self._pools_changed:
            changes["pools"] = self._pool_rows()
        self.number += 1
        encoded = _encode({"number": self.number, "time": _now(), **changes, **self._tables.since(self._sizes)})
        self._sizes = self._tables.sizes()
        self._pools_changed = False
        self._changed_namespaces.clear()
        for part in (self._changed_nodes, self._gone_nodes, self._changed_pods, self._gone_pods):
            part.clear()
        self._kept.append((self.number, encoded))
        return self.number, encoded

    def changes_after(self, number: int) -> list[tuple[int, bytes]] | None:
        """The changes after a number; None if they are not kept any more."""
        if number > self.number or (number < self.number and (not self._kept or self._kept[0][0] > number + 1)):
            return None
        return [entry for entry in self._kept if entry[0] > number]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
