"""What changed in a snapshot between two passes, as far as remembered refusals depend on it."""

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.refusal_cache import SnapshotChange


class SnapshotDiff:
    """Copies of the columns that refusals depend on, to compare with what is there later."""

    def __init__(self) -> None:
        self._before: dict[str, Array] = {}
        self._seen = -1

    def change(self, snapshot: Snapshot, closed: Array, *, limited: bool) -> SnapshotChange | None:
        """What changed since the last call; None if everything may have. `limited`: whether a pool has limits."""
        now, nodes = _columns(snapshot, closed), snapshot.nodes
        before, self._before = self._before, {name: column.copy() for name, column in now.items()}
        changed = np.flatnonzero(nodes.changed[: len(nodes.states)] > self._seen).tolist()
        self._seen = nodes.changes
        if any(name not in before or before[name].shape != column.shape for name, column in now.items()):
            return None
        opened = (before["closed"] != 0) & (now["closed"] == 0)
        roomier = (now["free"] > before["free"]).any(axis=1) | opened | (now["shape"] != before["shape"])
        # A host port or a volume that was let go makes room for pods that ask for it.
        roomier |= (now["live"] != before["live"]) | (now["by_host"] < before["by_host"]).any(axis=0)
        groups = (now["by_domain"] != before["by_domain"]).any(axis=1) | (now["total"] != before["total"])
        if (now["seen"] != before["seen"]).any() or (now["by_host"] != before["by_host"]).any():
            groups[:] = True
        return SnapshotChange(
            nodes=frozenset(changed),
            roomier=frozenset(np.flatnonzero(roomier).tolist()),
            groups=frozenset(np.flatnonzero(groups).tolist()),
            limits=limited,
        )


def _columns(snapshot: Snapshot, closed: Array) -> dict[str, Array]:
    nodes, topology = snapshot.nodes, snapshot.topology
    size, groups = len(nodes.states), len(topology.groups)
    return {
        "free": nodes.free[:size],
        "shape": nodes.shape[:size],
        "live": nodes.live[:size],
        "closed": closed[:size],
        "by_domain": topology.by_domain[:groups],
        "total": topology.total[:groups],
        "by_host": topology.by_host[:, :size],
        "seen": topology.nodes_seen > 0,
    }
