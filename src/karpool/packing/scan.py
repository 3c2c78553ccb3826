"""Many sets of nodes judged by one kernel: which of them certainly have to stay, and which may go."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import numpy as np

from karpool.cluster.arrays import Array
from karpool.packing.candidate_pods import CandidateSets
from karpool.packing.kernels import columns as c
from karpool.packing.kernels.scan import scan

if TYPE_CHECKING:
    from karpool.packing.engine import Engine


class Scan:
    """A scan of many sets; what each answer depends on is kept as rows of bits."""

    def __init__(self, engine: "Engine", sets: CandidateSets, *, closed: Array, unready: Array) -> None:
        engine.refresh()
        self.engine = engine
        self.sets = sets
        self.closed = closed
        self.unready = unready
        self.count = len(sets.below)
        self.most_pods = int(sets.pod_count.max()) if self.count else 0
        set_of_node = np.repeat(np.arange(self.count), np.diff(sets.node_start))
        self.limits = engine.limits_without(sets.nodes, set_of_node, self.count)
        self.progress = np.zeros(2, dtype=np.int64)
        self.opened = np.zeros(self.count, dtype=np.uint8)
        snapshot = engine.snapshot
        self.on_nodes = _bits(self.count, len(snapshot.nodes.states))
        self.on_classes = _bits(self.count, snapshot.classes.size)
        self.on_groups = _bits(self.count, len(snapshot.topology.groups))
        self._unjudged = _with_any(sets, snapshot.pods.device_rows)

    def promising(self) -> Iterator[int]:
        """The sets that may go, in order; all others have to stay."""
        for at in self._unjudged:
            yield from self._promising_before(at)
            yield self._left_open(at)
        yield from self._promising_before(self.count)

    def _left_open(self, at: int) -> int:
        """A set that the kernel cannot judge, because pods of it have claims on devices: it depends on everything."""
        self.opened[at] = 1
        for bits in (self.on_nodes, self.on_classes, self.on_groups):
            bits[at] = 0xFF
        self.progress[0] = at + 1
        return at

    def _promising_before(self, end: int) -> Iterator[int]:
        engine = self.engine
        while self.progress[0] < end:
            # The engine may have been used since the last set was yielded.
            engine.space.reset(self.most_pods, self.closed, self.limits[0])
            engine.space.set_modes(engine.options, existing_only=False, strict_reserved=False)
            while (answer := self._continue(end)) not in (c.DONE, c.YES):
                engine.resolve(answer)
            if answer == c.YES:
                yield int(self.progress[0]) - 1

    def _continue(self, end: int) -> int:
        table, reservations = self.engine.memory.table, self.engine.space.reservations
        outcome = (self.opened, self.on_nodes, self.on_classes, self.on_groups)
        sets = self.sets._replace(below=self.sets.below[:end])
        return int(scan(table, self.progress, *sets, self.limits, reservations, self.unready, *outcome))


def _with_any(sets: CandidateSets, pods: AbstractSet[int]) -> list[int]:
    """The sets to which any of some pods belongs."""
    if not pods:
        return []
    bounds = zip(sets.pod_start.tolist(), sets.pod_count.tolist(), strict=True)
    members = (sets.pods[start : start + count].tolist() for start, count in bounds)
    return [at for at, rows in enumerate(members) if not pods.isdisjoint(rows)]


def _bits(rows: int, size: int) -> Array:
    return np.zeros((rows, (size >> 3) + 1), dtype=np.uint8)
