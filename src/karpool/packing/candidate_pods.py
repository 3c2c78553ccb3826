"""The pods that would move from each candidate, all in one array, so that scans of single nodes copy nothing."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from karpool.cluster.arrays import Array, grown

_LEAST: Final = 16
"""Room for pods that even a node with fewer gets."""


class CandidateSets(NamedTuple):
    """Sets of nodes that would go together, each with the pods that would move, in the order in which they are placed.

    `flags` has one entry for each pod (see `kernels/scan.py`). A set may be replaced by at most `most_new_nodes` whose
    prices together stay below `below`, which is infinite where the price alone does not decide. The fields are in the
    order of that kernel's parameters.
    """

    node_start: Array
    nodes: Array
    pod_start: Array
    pod_count: Array
    pods: Array
    flags: Array
    most_new_nodes: Array
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

    def alone(self, nodes: Sequence[int], most_new_nodes: int = 1) -> CandidateSets:
        """A set of each node, which so many new nodes may replace."""
        rows = np.array(nodes, dtype=np.int64)
        return CandidateSets(
            nodes=rows,
            node_start=np.arange(len(rows) + 1),
            pods=self._pods,
            flags=self._flags,
            pod_start=self._start[rows],
            pod_count=self._count[rows],
            most_new_nodes=np.full(len(rows), most_new_nodes, dtype=np.int64),
            below=self._below[rows],
        )

    def sets(
        self,
        groups: Sequence[Sequence[int]],
        below: Sequence[float],
        most_new_nodes: Sequence[int],
        order: Callable[[Array], Array],
    ) -> CandidateSets:
        """A set of each group of nodes; `order` gives the places that put pods in order."""
        lengths = np.array([len(group) for group in groups], dtype=np.int64)
        rows = np.array([node for group in groups for node in group], dtype=np.int64)
        counts = self._count[rows]
        ends = np.cumsum(counts)
        places = np.arange(counts.sum()) + np.repeat(self._start[rows] - ends + counts, counts)
        set_of = np.repeat(np.repeat(np.arange(len(groups)), lengths), counts)
        ordered = order(self._pods[places])
        places = places[ordered[np.argsort(set_of[ordered], kind="stable")]]
        pod_count = np.bincount(set_of, minlength=len(groups))
        return CandidateSets(
            nodes=rows,
            node_start=np.concatenate(([0], np.cumsum(lengths))),
            pods=self._pods[places],
            flags=self._flags[places],
            pod_start=np.cumsum(pod_count) - pod_count,
            pod_count=pod_count,
            most_new_nodes=np.array(most_new_nodes, dtype=np.int64),
            below=np.array(below, dtype=np.float64),
        )
