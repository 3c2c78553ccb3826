"""Sealed nodes: something that bears on them cannot be read, so they neither give pods away nor take any.

What each kind bears on is said here, once. Most clusters have nothing unreadable, and pay nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from karpool.cluster.constraints import selects_namespaces
from karpool.cluster.volumes import claims_of
from karpool.model.labels import NODEPOOL
from karpool.model.node import CSINode, Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reading.unreadable import UNKNOWN, unidentified, unreadable_reason
from karpool.model.reasons import Reason
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from karpool.model.workloads import DaemonSet, Namespace
from karpool.wire.objects import Object

if TYPE_CHECKING:
    from karpool.cluster.snapshot import Snapshot

Names = Iterable[str]
_COLLECTIONS: Final = (
    "nodes",
    "node_claims",
    "node_pools",
    "pods",
    "persistent_volume_claims",
    "persistent_volumes",
    "storage_classes",
    "csi_nodes",
    "namespaces",
    "daemon_sets",
)


class UnreadableIndex:
    """The objects of a snapshot that cannot be read."""

    def __init__(self, objects: Objects) -> None:
        self._known: dict[tuple[str, str], Object] = {}
        self.changes = 0
        """Counts additions and removals."""
        self.on_change: Callable[[], None] = lambda: None
        for name in _COLLECTIONS:
            for entry in getattr(objects, name):
                if entry.metadata.unreadable:
                    self._known[type(entry).__name__, entry.key] = entry

    def __bool__(self) -> bool:
        return bool(self._known)

    def __iter__(self) -> Iterator[Object]:
        """Nodes first, then claims, pools and what is on nodes: the first that bears on a node is its reason."""
        ranks = {struct.__name__: rank for rank, struct in enumerate(_BEARS_ON)}
        for _, entry in sorted(self._known.items(), key=lambda item: (ranks[item[0][0]], item[0][1])):
            yield entry

    def note(self, kind: type[Object], key: str, entry: Object | None) -> None:
        """Take note of an object that is new, has changed, or is gone."""
        at = (kind.__name__, key)
        if entry is not None and entry.metadata.unreadable:
            self._known[at] = entry
        elif at in self._known:
            del self._known[at]
        else:
            return
        self.changes += 1
        self.on_change()


class Seals:
    """The sealed nodes of a snapshot, kept until something unreadable, a node or a pod changes."""

    def __init__(self) -> None:
        self.of_rows: dict[int, Reason] = {}
        """By row: why a node is sealed."""
        self._basis = (-1, -1, -1)
        self._withheld: frozenset[str] = frozenset()

    def renew(self, snapshot: "Snapshot") -> None:
        """Let nodes that are sealed now take no pods, and those that are sealed no longer take some again."""
        unreadable, nodes = snapshot.unreadable, snapshot.nodes
        if not unreadable and not self.of_rows:
            return
        if (unreadable.changes, snapshot.version, nodes.changes) == self._basis:
            return
        before, self.of_rows = self.of_rows, _sealed(snapshot)
        rows = [row for row in before.keys() | self.of_rows.keys() if nodes.states[row] is not None]
        changed = [row for row in sorted(rows) if nodes.seal(row, sealed=row in self.of_rows)]
        snapshot.version += bool(changed)
        self._basis = (unreadable.changes, snapshot.version, nodes.changes)

    def withheld(self, snapshot: "Snapshot") -> frozenset[str]:
        """Pools that supply no nodes because one of theirs cannot be read; the same set until it changes."""
        withheld = _withheld_pools(snapshot) if snapshot.unreadable else frozenset()
        if withheld != self._withheld:
            self._withheld = withheld
        return self._withheld


def _sealed(snapshot: "Snapshot") -> dict[int, Reason]:
    sealed: dict[int, Reason] = {}
    rows = snapshot.nodes.rows
    for entry in snapshot.unreadable:
        reason = unreadable_reason(type(entry).__name__, entry)
        names = rows if unidentified(entry) else _BEARS_ON[type(entry)](snapshot, entry)
        for name in names:
            if name in rows:
                sealed.setdefault(rows[name], reason)
    return sealed


def _withheld_pools(snapshot: "Snapshot") -> frozenset[str]:
    """The pools with a node or a claim that cannot be read: what they use of their limits, and wait for, is unknown.

    UNKNOWN among them stands for all pools.
    """
    pools = set[str]()
    for entry in snapshot.unreadable:
        if isinstance(entry, NodeClaim):
            pools.add(entry.metadata.labels.get(NODEPOOL, UNKNOWN))
        elif isinstance(entry, Node) and entry.name in snapshot.nodes.rows:
            state = snapshot.nodes.get(snapshot.nodes.rows[entry.name])
            if state.claim is not None:
                pools.add(state.pool or UNKNOWN)
    return frozenset(pools)


def _node(_snapshot: "Snapshot", node: Node) -> Names:
    return (node.name,)


def _claim(snapshot: "Snapshot", claim: NodeClaim) -> Names:
    states = snapshot.nodes.states
    return [state.name for state in states if state is not None and state.claim and state.claim.name == claim.name]


def _pool(snapshot: "Snapshot", pool: NodePool) -> Names:
    return [state.name for state in snapshot.nodes.states if state is not None and state.pool == pool.name]


def _pod(snapshot: "Snapshot", pod: Pod) -> Names:
    """Its node; one that finished, or waits for a node, concerns none."""
    if pod.terminal:
        return ()
    return snapshot.nodes.rows if pod.spec.node_name == UNKNOWN else (pod.spec.node_name,)


def _volume_claim(snapshot: "Snapshot", claim: PersistentVolumeClaim) -> Names:
    return _nodes_of_claims(snapshot, (claim.key,))


def _volume(snapshot: "Snapshot", volume: PersistentVolume) -> Names:
    return _nodes_of_claims(snapshot, snapshot.pods.volumes.claims_on(volume.name))


def _storage_class(snapshot: "Snapshot", entry: StorageClass) -> Names:
    return _nodes_of_claims(snapshot, snapshot.pods.volumes.unbound_of(entry.name))


def _csi_node(_snapshot: "Snapshot", entry: CSINode) -> Names:
    return (entry.name,)


def _namespace(snapshot: "Snapshot", entry: Namespace) -> Names:
    """The nodes of its pods, and of pods whose affinity selects namespaces by their labels."""
    pods = [pod for pod in snapshot.pods.objects if pod is not None]
    return [pod.spec.node_name for pod in pods if pod.metadata.namespace == entry.name or selects_namespaces(pod)]


def _daemon_set(snapshot: "Snapshot", _entry: DaemonSet) -> Names:
    """Every node: nobody knows what the daemon takes of it."""
    return snapshot.nodes.rows


def _nodes_of_claims(snapshot: "Snapshot", claims: Iterable[str]) -> Names:
    wanted = set(claims)
    pods = [pod for pod in snapshot.pods.objects if pod is not None and pod.spec.volumes]
    return [pod.spec.node_name for pod in pods if not wanted.isdisjoint(claims_of(pod))]


_BEARS_ON: Final[dict[type[Object], Callable[["Snapshot", Any], Names]]] = {
    Node: _node,
    NodeClaim: _claim,
    NodePool: _pool,
    Pod: _pod,
    PersistentVolumeClaim: _volume_claim,
    PersistentVolume: _volume,
    StorageClass: _storage_class,
    CSINode: _csi_node,
    Namespace: _namespace,
    DaemonSet: _daemon_set,
}
