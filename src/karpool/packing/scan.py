"""Sets of nodes looked at in one go: which of them have to stay for sure, and which may be worth a closer look."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from karpool.cluster.arrays import Array
from karpool.packing.kernels import columns as c
from karpool.packing.kernels.scan import scan

if TYPE_CHECKING:
    from karpool.packing.engine import Engine


class NodeSet(NamedTuple):
    """Nodes that would go together: the pods that would move, in the order in which they are placed.

    `flags` has one entry for each pod (see the kernel); one new node in their place has to cost less than `below`,
    which is infinite where a price alone does not decide.
    """

    nodes: Sequence[int]
    pods: Array
    flags: Array
    below: float


class Scan:
    """One look at many sets; what each answer rests on is kept as rows of bits."""

    def __init__(self, engine: "Engine", sets: Sequence[NodeSet], *, closed: Array, unready: Array) -> None:
        engine.refresh()
        self.engine = engine
        self.closed = closed
        self.unready = unready
        self.nodes = np.array([row for one in sets for row in one.nodes], dtype=np.int64)
        self.node_start = _starts([len(one.nodes) for one in sets])
        self.pods = _joined([one.pods for one in sets], np.int32)
        counts = [len(one.pods) for one in sets]
        self.pod_start = _starts(counts)
        self.most_pods = max(counts, default=0)
        self.flags = _joined([one.flags for one in sets], np.uint8)
        self.below = np.array([one.below for one in sets], dtype=np.float64)
        self.limits = self._limits(sets)
        self.progress = np.zeros(2, dtype=np.int64)
        self.targets = np.full(len(self.pods), c.UNPLACED, dtype=np.int32)
        self.opened = np.zeros(len(sets), dtype=np.uint8)
        snapshot = engine.snapshot
        self.on_nodes = _bits(len(sets), len(snapshot.nodes.states))
        self.on_classes = _bits(len(sets), snapshot.classes.size)
        self.on_groups = _bits(len(sets), len(snapshot.topology.groups))

    def _limits(self, sets: Sequence[NodeSet]) -> Array:
        """What is left of pools' limits without each set; the same for all where no pool has any."""
        engine = self.engine
        if not engine.keeper.pools.has_limits:
            return engine.limits[None]
        return np.stack([engine.limits_without(one.nodes) for one in sets])

    def promising(self) -> Iterator[int]:
        """The sets that may go, one by one as they are found; those passed over have to stay."""
        engine = self.engine
        while self.progress[0] < len(self.below):
            # Others may have used the engine since the last find.
            engine.space.lend(self.most_pods, self.closed, self.limits[0])
            engine.space.set_modes(engine.options, existing_only=False, strict_reserved=False)
            while (answer := self._go_on()) not in (c.DONE, c.YES):
                engine.supply(answer)
            if answer == c.YES:
                yield int(self.progress[0]) - 1

    def _go_on(self) -> int:
        return int(
            scan(
                self.engine.memory.table,
                self.progress,
                self.node_start,
                self.nodes,
                self.pod_start,
                self.pods,
                self.flags,
                self.below,
                self.limits,
                self.engine.space.reservations,
                self.unready,
                self.targets,
                self.opened,
                self.on_nodes,
                self.on_classes,
                self.on_groups,
            )
        )


def _starts(lengths: Sequence[int]) -> Array:
    return np.array([0, *accumulate(lengths)], dtype=np.int64)


def _joined(parts: Sequence[Array], dtype: type[np.generic]) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)


def _bits(rows: int, size: int) -> Array:
    return np.zeros((rows, (size >> 3) + 1), dtype=np.uint8)
