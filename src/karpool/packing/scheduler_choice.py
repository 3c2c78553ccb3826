"""Where kube-scheduler puts pods that come back when nodes go: the nodes it likes best, one pod after the other.

The engine finds places in which pods fit, and a plan that is carried out gets these places only if the scheduler likes
them, too. What it likes is known well enough to foresee it: see `kernels/fullness.py` for the scores. Pods come in the
order in which they are listed here.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.codes import EXPECTED, PRESENT
from karpool.cluster.node_table import ForeseenNode
from karpool.cluster.nodes import StateNode
from karpool.cluster.pod_classes import NO_CLASS
from karpool.cluster.pod_table import NO_WORKLOAD
from karpool.cluster.snapshot import Snapshot
from karpool.model.labels import HOSTNAME
from karpool.packing.kernels.choice import NumberLists, PodKinds, ScoredNodes, SpreadWorkloads, TopologyGroups, choose
from karpool.packing.kernels.fullness import best

Kind = tuple[int, int, int]
"""A class, a set of labels and a workload: pods that are equal to a scheduler."""


class SchedulerChoice:
    """What a scheduler would do with some pods once some nodes are gone and others have come.

    Rows of new nodes follow those of the snapshot, in their order. `avoided` are rows of nodes that ask pods to stay
    away. Any number of orders may be tried, each from the same beginning.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        pods: Sequence[int],
        *,
        without: Collection[int] = (),
        new: Sequence[StateNode] = (),
        avoided: Collection[int] = (),
    ) -> None:
        self._snapshot = snapshot
        self.first_new = len(snapshot.nodes.states)
        """The row of the first new node."""
        foreseen = [snapshot.foresee(state) for state in new]
        self._nodes = self._columns(foreseen, without, avoided)
        kinds: dict[Kind, int] = {}
        table = snapshot.pods
        self._kind_of = {
            row: kinds.setdefault(
                (int(table.class_of[row]), int(table.labels_of[row]), int(table.workload_of[row])), len(kinds)
            )
            for row in pods
        }
        self._kinds, self._groups = _Rules(snapshot, list(kinds), self._nodes).tables()
        self._workloads = self._spread([workload for _, _, workload in kinds])

    def places(self, pods: Sequence[int], *, packs: bool = False) -> list[int]:
        """By pod, as they arrive: the row of the node that it comes to, or NOBODY; `packs`: full nodes are liked."""
        kinds = np.array([self._kind_of[row] for row in pods], dtype=np.int64)
        sources = self._snapshot.pods.node_of[np.array(pods, dtype=np.int64)].astype(np.int64)
        nodes = self._nodes._replace(free=self._nodes.free.copy(), taken=self._nodes.taken.copy())
        counted = {name: getattr(self._groups, name).copy() for name in ("in_domain", "at_host", "total")}
        target = np.zeros(len(pods), dtype=np.int64)
        workloads = self._workloads._replace(on_node=self._workloads.on_node.copy())
        choose(nodes, self._kinds, self._groups._replace(**counted), workloads, kinds, sources, packs, target)
        places: list[int] = target.tolist()
        return places

    def _spread(self, workloads: Sequence[int]) -> SpreadWorkloads:
        """By kind: how many pods of its workload are where."""
        known = [workload for workload in dict.fromkeys(workloads) if workload != NO_WORKLOAD]
        on_node = np.zeros((len(known), len(self._nodes.shape)), dtype=np.int64)
        for at, workload in enumerate(known):
            on_node[at] = pods_alike(self._snapshot, workload, len(self._nodes.shape))
        return SpreadWorkloads(
            np.array([known.index(w) if w in known else -1 for w in workloads], dtype=np.int64), on_node
        )

    def _columns(self, new: Sequence[ForeseenNode], without: Collection[int], avoided: Collection[int]) -> ScoredNodes:
        nodes, size, width = self._snapshot.nodes, self.first_new, len(self._snapshot.resources)
        live = nodes.live[:size]
        usable = ((live == PRESENT) | (live == EXPECTED)).astype(np.uint8)
        usable[list(without)] = 0
        asking = np.zeros(size + len(new), dtype=np.uint8)
        asking[list(avoided)] = 1
        room = _below(nodes.room[:size, :width], [node.room[:width] for node in new])
        taken = _below(nodes.taken[:size, :width], [node.daemons[:width] for node in new])
        free = _below(nodes.free[:size, :width], [(node.room - node.daemons)[:width] for node in new])
        return ScoredNodes(
            order=np.concatenate(
                (nodes.order[live[nodes.order] > 0], np.arange(size, size + len(new), dtype=np.int32))
            ),
            usable=np.concatenate((usable, np.ones(len(new), dtype=np.uint8))),
            avoided=asking,
            shape=np.concatenate((nodes.shape[:size], np.array([node.shape for node in new], dtype=np.int32))),
            zone=np.concatenate((nodes.zone[:size], np.array([node.zone for node in new], dtype=np.int32))),
            domain=_below(nodes.domain[:size], [node.domain for node in new]),
            free=free,
            taken=taken,
            room=room,
        )


class _Rules:
    """The rules of some kinds of pods, and the counts that they depend on, renumbered from zero."""

    def __init__(self, snapshot: Snapshot, kinds: Sequence[Kind], nodes: ScoredNodes) -> None:
        self._snapshot = snapshot
        self._kinds = kinds
        self._nodes = nodes
        self._groups: dict[int, int] = {}
        self._rows: dict[int, int] = {}

    def tables(self) -> tuple[PodKinds, TopologyGroups]:
        """All of it as kernels read it."""
        classes, topology = self._snapshot.classes, self._snapshot.topology
        levels = [_levels(self._snapshot, number) for number, _, _ in self._kinds]
        flat = [(level, labels) for (_, labels, _), own in zip(self._kinds, levels, strict=True) for level in own]
        numbers = np.array([level for level, _ in flat], dtype=np.int64)
        owned = [[*classes.owned.row(level), *topology.kept_off_by.row(labels)] for level, labels in flat]
        counts = [
            [*topology.counted_by.row(labels), *classes.declared.row(number)] for number, labels, _ in self._kinds
        ]
        counted_by = [set(topology.counted_by.row(labels)) for _, labels in flat]
        itself = [group in own for groups, own in zip(owned, counted_by, strict=True) for group in groups]
        named, host_ok = self._hosts(numbers.tolist())
        kinds = PodKinds(
            levels=np.concatenate(([0], np.cumsum([len(own) for own in levels], dtype=np.int64))),
            signature=classes.signature[numbers].astype(np.int64),
            requests=np.ascontiguousarray(classes.requests[numbers, : len(self._snapshot.resources)]),
            refused=classes.refused[numbers],
            hosts=named,
            host_ok=host_ok,
            suits=self._snapshot.shapes.suits,
            groups=_lists([self._numbered(groups) for groups in owned]),
            itself=np.array(itself, dtype=np.uint8),
            blocked=_lists([self._host_rows(classes.blocked_rows.row(level)) for level, _ in flat]),
            shared=_lists([self._host_rows(classes.shared_rows.row(level)) for level, _ in flat]),
            shared_column=np.array(
                [column for level, _ in flat for column in classes.shared_columns.row(level)], dtype=np.int64
            ),
            counting=_lists([self._numbered(groups) for groups in counts]),
            held=_lists([self._host_rows(classes.taken_rows.row(number)) for number, _, _ in self._kinds]),
        )
        return kinds, self._counted()

    def _numbered(self, groups: Iterable[int]) -> list[int]:
        return [self._groups.setdefault(group, len(self._groups)) for group in groups]

    def _host_rows(self, rows: Iterable[int]) -> list[int]:
        return [self._rows.setdefault(row, len(self._rows)) for row in rows]

    def _counted(self) -> TopologyGroups:
        topology, shapes, size = self._snapshot.topology, self._snapshot.shapes, len(self._snapshot.nodes.states)
        groups = np.array(list(self._groups), dtype=np.int64)
        by_host = np.array([topology.groups[group].by_host for group in self._groups], dtype=np.uint8)
        row = np.array(
            [
                self._host_rows([int(topology.row[group])])[0] if own else 0
                for group, own in zip(self._groups, by_host, strict=True)
            ],
            dtype=np.int64,
        )
        rows = np.array(list(self._rows), dtype=np.int64)
        new = len(self._nodes.shape) - size
        at_host = np.zeros((len(rows), size + new), dtype=np.int64)
        at_host[:, :size] = topology.by_host[rows, :size]
        seen_by, key = shapes.seen_by[topology.filter[groups]], topology.key[groups].astype(np.int64)
        known = topology.nodes_seen[topology.filter[groups], key] > 0
        for node in range(size, size + new):
            domains = self._nodes.domain[node, key]
            there = (domains >= 0) & (seen_by[:, self._nodes.shape[node]] == 1) & (by_host == 0)
            known[np.flatnonzero(there), domains[there]] = True
        return TopologyGroups(
            kind=topology.kind[groups].astype(np.int64),
            key=key,
            skew=topology.skew[groups].astype(np.int64),
            least_domains=topology.min_domains[groups].astype(np.int64),
            by_host=by_host,
            row=row,
            seen_by=seen_by,
            known=known,
            in_domain=topology.by_domain[groups].astype(np.int64),
            at_host=at_host,
            total=topology.total[groups].astype(np.int64),
        )

    def _hosts(self, levels: Sequence[int]) -> tuple[Array, Array]:
        """By level: which row says what nodes it names, if it names any; and these rows."""
        classes, states = self._snapshot.classes, self._snapshot.nodes.states
        named, rows = np.full(len(levels), -1, dtype=np.int64), list[list[bool]]()
        for at, level in enumerate(levels):
            hosts = classes.levels[level].requirements.get(HOSTNAME)
            if hosts is not None:
                named[at] = len(rows)
                rows.append([state is not None and hosts.has(state.labels[HOSTNAME]) for state in states])
        ok = np.zeros((len(rows), len(self._nodes.shape)), dtype=np.uint8)
        for at, row in enumerate(rows):
            ok[at, : len(row)] = row
        return named, ok


def favourite(snapshot: Snapshot, pod: int, mask: Array, avoided: Array, *, packs: bool) -> int:
    """The node of a mask that the scheduler likes best for a pod of the snapshot, or NOBODY."""
    nodes = snapshot.nodes
    wanted = snapshot.classes.requests[snapshot.pods.class_of[pod]]
    alike = pods_alike(snapshot, int(snapshot.pods.workload_of[pod]), len(mask))
    return int(best(nodes.order, mask, nodes.taken, nodes.room, avoided, nodes.zone, wanted, alike, packs))


def pods_alike(snapshot: Snapshot, workload: int, size: int) -> Array:
    """By node: how many pods of a workload are there that stay; empty if the scheduler does not spread them."""
    if workload == NO_WORKLOAD:
        return np.zeros(0, dtype=np.int64)
    pods, count = snapshot.pods, len(snapshot.pods.objects)
    own = np.flatnonzero(pods.workload_of[:count] == workload)
    at = pods.node_of[own]
    return np.bincount(at[(pods.counted[own] == 1) & (at >= 0)], minlength=size)


def _levels(snapshot: Snapshot, number: int) -> list[int]:
    """A class, and those that it becomes as preferences are given up."""
    levels = []
    while number != NO_CLASS:
        levels.append(number)
        number = int(snapshot.classes.next[number])
    return levels


def _below(rows: Array, more: Sequence[Array]) -> Array:
    """A copy of rows, with more rows below."""
    if not more:
        return rows.copy()
    return np.concatenate((rows, np.array(more, dtype=rows.dtype).reshape(len(more), rows.shape[1])))


def _lists(rows: Sequence[Sequence[int]]) -> NumberLists:
    start = np.zeros(len(rows) + 1, dtype=np.int64)
    start[1:] = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return NumberLists(start, np.array([item for row in rows for item in row], dtype=np.int64))
