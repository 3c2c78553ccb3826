"""The pods that would move from each node, all in one array, so that any nodes are looked at without copying them."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from karpool.cluster.arrays import Array, grown

_LEAST: Final = 16
"""Room for pods that even a node with fewer gets."""


class CandidateSets(NamedTuple):
    """Sets of nodes that would go together, each with the pods that would move, in the order in which they are placed.

    `flags` has one entry for each pod (see the kernel); one new node in the place of a set has to cost less than its
    `below`, which is infinite where a price alone does not decide.
    """

    nodes: Array
    node_start: Array
    pods: Array
    flags: Array
    pod_start: Array
    pod_count: Array
    below: Array


class CandidatePods:
    """By the row of a node: its pods that would move, in order, with their flags, and what a new node may cost."""

    def __init__(self) -> None:
        self._pods: Array = np.zeros(256, dtype=np.int32)
        self._flags: Array = np.zeros(256, dtype=np.uint8)
        self._start: Array = np.zeros(16, dtype=np.int64)
        self._count: Array = np.zeros(16, dtype=np.int64)
        self._below: Array = np.zeros(16, dtype=np.float64)
        self._room: list[int] = []
        self._used = 0

    def put(self, node: int, pods: Array, flags: Sequence[int], below: float) -> None:
        """Write what is known of a node."""
        if node >= len(self._room):
            self._room.extend([0] * (node + 1 - len(self._room)))
            self._start, self._count = grown(self._start, (node + 1,)), grown(self._count, (node + 1,))
            self._below = grown(self._below, (node + 1,))
        count = len(pods)
        if count > self._room[node]:
            self._move(node, max(_LEAST, 2 * count))
        start = int(self._start[node])
        self._pods[start : start + count] = pods
        self._flags[start : start + count] = flags
        self._count[node], self._below[node] = count, below

    def _move(self, node: int, room: int) -> None:
        """Give a node a larger place at the end; what it leaves behind is never more than what it gets."""
        self._start[node], self._room[node] = self._used, room
        self._used += room
        self._pods, self._flags = grown(self._pods, (self._used,)), grown(self._flags, (self._used,))

    def alone(self, nodes: Sequence[int]) -> CandidateSets:
        """A set of each node."""
        rows = np.array(nodes, dtype=np.int64)
        starts = np.arange(len(rows) + 1)
        return CandidateSets(
            rows, starts, self._pods, self._flags, self._start[rows], self._count[rows], self._below[rows]
        )

    def prefixes(
        self,
        nodes: Sequence[int],
        lengths: Sequence[int],
        below: Sequence[float],
        order: Callable[[Array], Array],
    ) -> CandidateSets:
        """A set of the first so many nodes for each length; `order` gives the places that put pods in order."""
        rows = np.array(nodes[: max(lengths)], dtype=np.int64)
        counts = self._count[rows]
        ends = np.cumsum(counts)
        at = np.arange(ends[-1]) + np.repeat(self._start[rows] - ends + counts, counts)
        member = np.repeat(np.arange(len(rows)), counts)
        ordered = order(self._pods[at])
        at, member = at[ordered], member[ordered]
        chosen = [at[member < length] for length in lengths]
        pod_counts = np.array([len(one) for one in chosen])
        together = np.concatenate(chosen)
        return CandidateSets(
            nodes=np.concatenate([rows[:length] for length in lengths]),
            node_start=np.array([0, *np.cumsum(lengths)]),
            pods=self._pods[together],
            flags=self._flags[together],
            pod_start=np.cumsum(pod_counts) - pod_counts,
            pod_count=pod_counts,
            below=np.array(below, dtype=np.float64),
        )
