"""What nodes use of their pools' limits, in columns that follow the snapshot."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array, grown
from karpool.cluster.nodes import StateNode
from karpool.cluster.resources import UNLIMITED, counted
from karpool.cluster.snapshot import Snapshot
from karpool.packing.templates import NodeTemplate

_NO_POOL: Final = -1


class LimitUsage:
    """By the row of a node: its pool, if that has limits, and what it uses of them; the last column counts nodes."""

    def __init__(self, snapshot: Snapshot, templates: Sequence[NodeTemplate]) -> None:
        self._snapshot = snapshot
        self._templates = templates
        self._limited = {t.name: number for number, t in enumerate(templates) if t.pool.spec.limits}
        self._clear()

    def __bool__(self) -> bool:
        """Whether any pool has limits."""
        return bool(self._limited)

    def _clear(self) -> None:
        self._width = len(self._snapshot.resources)
        self._seen: list[StateNode | None] = []
        self._pool: Array = np.full(16, _NO_POOL, dtype=np.int64)
        self._taken: Array = np.zeros((16, self._width + 1), dtype=np.int64)

    def left(self) -> Array:
        self._sync()
        width = self._width
        left: Array = np.full((max(1, len(self._templates)), width + 1), UNLIMITED, dtype=np.int64)
        used = np.zeros_like(left)
        counts = self._pool >= 0
        np.add.at(used, self._pool[counts], self._taken[counts])
        for number in self._limited.values():
            for name, amount in self._templates[number].pool.spec.limits.items():
                column = width if name == "nodes" else self._snapshot.resources.column(name)
                most = amount.nano // (10**6 if name == "cpu" else 10**9)
                left[number, column] = most - used[number, column]
        return left

    def give_back(self, limits: Array, nodes: Array, sets: Array) -> None:
        """Add what the nodes of each set use to its row of `limits`."""
        pools = self._pool[nodes]
        counts = pools >= 0
        np.add.at(limits, (sets[counts], pools[counts]), self._taken[nodes[counts]])

    def _sync(self) -> None:
        states = self._snapshot.nodes.states if self._limited else []
        if self._width != len(self._snapshot.resources):
            self._clear()
        self._pool = grown(self._pool, (len(states),), _NO_POOL)
        self._taken = grown(self._taken, (len(states), self._width + 1))
        self._seen.extend([None] * (len(states) - len(self._seen)))
        for row, state in enumerate(states):
            if state is not self._seen[row]:
                self._seen[row] = state
                self._write(row, state)

    def _write(self, row: int, state: StateNode | None) -> None:
        if state is None or state.deleting or state.pool not in self._limited:
            self._pool[row] = _NO_POOL
            return
        self._pool[row] = self._limited[state.pool]
        self._taken[row, : self._width] = counted(self._snapshot.resources.room(state.capacity))
        self._taken[row, self._width] = 1
