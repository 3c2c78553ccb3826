"""What changed in a snapshot since the last look, as far as refusals that are remembered rest on it."""

from collections.abc import Collection

import numpy as np

from karpool.cluster.arrays import Array
from karpool.disruption.context import DecisionContext
from karpool.disruption.refusal_cache import SnapshotChange


class SnapshotDiff:
    """Copies of the columns that refusals rest on, to compare with what is there later."""

    def __init__(self, context: DecisionContext) -> None:
        self.context = context
        self._held: dict[str, Array] = {}

    def change(self, touched: Collection[int]) -> SnapshotChange | None:
        """What changed since the last call; None if that cannot be told, and everything may have."""
        now = self._columns()
        before, self._held = self._held, {name: column.copy() for name, column in now.items()}
        if any(name not in before or before[name].shape != column.shape for name, column in now.items()):
            return None
        opened = (before["closed"] != 0) & (now["closed"] == 0)
        roomier = (now["free"] > before["free"]).any(axis=1) | opened | (now["shape"] != before["shape"])
        roomier |= now["live"] != before["live"]
        groups = (now["by_domain"] != before["by_domain"]).any(axis=1) | (now["total"] != before["total"])
        if (now["seen"] != before["seen"]).any() or (now["by_host"] != before["by_host"]).any():
            groups[:] = True
        limited = any(pool.spec.limits for pool in self.context.pools.values())
        return SnapshotChange(
            nodes=frozenset(touched),
            roomier=frozenset(np.flatnonzero(roomier).tolist()),
            groups=frozenset(np.flatnonzero(groups).tolist()),
            limits=limited,
        )

    def _columns(self) -> dict[str, Array]:
        nodes, topology = self.context.snapshot.nodes, self.context.snapshot.topology
        size, groups = len(nodes.states), len(topology.groups)
        return {
            "free": nodes.free[:size],
            "shape": nodes.shape[:size],
            "live": nodes.live[:size],
            "closed": self.context.closed[:size],
            "by_domain": topology.by_domain[:groups],
            "total": topology.total[:groups],
            "by_host": topology.by_host[:, :size],
            "seen": topology.nodes_seen > 0,
        }
