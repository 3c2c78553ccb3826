"""Nodes as rows: shape, domains, and how much room each has left."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

import numpy as np

from karpool.cluster.arrays import Array, ColumnTable, column
from karpool.cluster.attach_limits import AttachLimits
from karpool.cluster.codes import EXPECTED, GONE, PRESENT, SEALED
from karpool.cluster.daemons import Daemon
from karpool.cluster.node_shapes import ShapeTable
from karpool.cluster.nodes import StateNode
from karpool.cluster.pod_classes import ClassTable
from karpool.cluster.pod_table import END, NOWHERE
from karpool.cluster.resources import ATTACH, UNLIMITED, ResourceTable
from karpool.cluster.topology import HOST_KEY, Topology
from karpool.model.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from karpool.model.managers import takes_no_pods


class ForeseenNode(NamedTuple):
    """What the columns of a node would say that is not there yet."""

    shape: int
    zone: int
    domain: Array
    room: Array
    daemons: Array
    """What DaemonSets take of its room."""


class NodeTable(ColumnTable):
    """State nodes in columns; a node keeps its row until it goes."""

    live: Annotated[Array, column(np.uint8, "nodes")]
    changed: Annotated[Array, column(np.int64, "nodes")]
    """The number of the last change of each node or its pods: caches compare it, so that nobody has to tell them."""
    shape: Annotated[Array, column(np.int32, "nodes")]
    zone: Annotated[Array, column(np.int32, "nodes", fill=NOWHERE)]
    """The number of a node's zone."""
    head: Annotated[Array, column(np.int32, "nodes", fill=END)]
    domain: Annotated[Array, column(np.int32, "nodes", "keys", fill=NOWHERE)]
    room: Annotated[Array, column(np.int64, "nodes", "resources")]
    taken: Annotated[Array, column(np.int64, "nodes", "resources")]
    daemon_taken: Annotated[Array, column(np.int64, "nodes", "resources")]
    free: Annotated[Array, column(np.int64, "nodes", "resources")]
    overhead: Annotated[Array, column(np.int64, "shapes", "resources")]

    def __init__(
        self,
        resources: ResourceTable,
        topology: Topology,
        classes: ClassTable,
        shapes: ShapeTable,
        *,
        daemons: tuple[Daemon, ...],
        attach_limits: AttachLimits,
    ) -> None:
        super().__init__()
        self.resources = resources
        self.topology = topology
        self.classes = classes
        self.shapes = shapes
        self.daemons = daemons
        self.attach_limits = attach_limits
        self.states: list[StateNode | None] = []
        self.rows: dict[str, int] = {}
        self.pods: list[dict[int, None]] = []
        """The rows of the pods on each node, the latest last; `head` begins the same list the other way round."""
        width = len(resources)
        self.changes = 0
        self.overhead_known = 0
        self._width = width
        self._widened: tuple[int, ...] = ()
        self._vacant: list[int] = []
        self._zones: dict[str, int] = {}
        self._queue: list[tuple[bool, str, int]] = []
        self._order: Array | None = None

    def __len__(self) -> int:
        return len(self.states)

    @property
    def order(self) -> Array:
        """Rows in the order in which nodes are tried: initialized ones first, then by name."""
        if self._order is None:
            self._order = np.array([row for _, _, row in self._queue], dtype=np.int32)
        return self._order

    def get(self, row: int) -> StateNode:
        """The node of a row that is taken."""
        state = self.states[row]
        if state is None:
            raise KeyError(row)
        return state

    def add(self, states: Iterable[StateNode]) -> list[int]:
        """Give nodes rows; no pod is on them yet."""
        coming = list(states)
        for state in coming:
            self._learn_resources(state)
        rows = [self._row() for _ in coming]
        self._grow(len(self.states))
        for row, state in zip(rows, coming, strict=True):
            self.head[row] = END
            self.pods[row].clear()
            self.taken[row] = self.daemon_taken[row] = 0
            self._write(row, state)
        self._derive(rows)
        return rows

    def foresee(self, state: StateNode) -> ForeseenNode:
        """What the columns of a node would say; it gets no row."""
        self._learn_resources(state)
        shape = self.shapes.shape(state)
        self.widen()
        self.judge()
        domain = np.full(self.domain.shape[1], NOWHERE, dtype=np.int32)
        for name, key in self.topology.domains.keys.items():
            value = state.labels.get(name)
            if name != HOSTNAME and value is not None:
                domain[key] = self.topology.domain(key, value)
        room = np.zeros(self.room.shape[1], dtype=np.int64)
        room[list(self.resources.attach)] = UNLIMITED
        own = self.resources.room(state.allocatable)
        room[: len(own)] = own
        return ForeseenNode(shape, self._zone(state), domain, room, self.overhead[shape].copy())

    def replace(self, row: int, state: StateNode) -> None:
        """Put a node in the place of what it was; its pods stay, but must not be counted in domains meanwhile."""
        self._learn_resources(state)
        self.widen()
        self._clear(row)
        self._write(row, state)
        self._derive((row,))

    def _learn_resources(self, state: StateNode) -> None:
        self.resources.learn(state.allocatable)
        self.resources.learn(state.capacity)

    def _derive(self, rows: Iterable[int]) -> None:
        self.judge()
        for row in rows:
            self._measure(row)
            self.enter_domains(row)

    def _row(self) -> int:
        if self._vacant:
            return self._vacant.pop()
        self.states.append(None)
        self.pods.append({})
        return len(self.states) - 1

    def _write(self, row: int, state: StateNode) -> None:
        self.states[row] = state
        self.rows[state.name] = row
        self.attach_limits.forget_types(state.name)
        insort(self._queue, _place_in_queue(state, row))
        self._order = None
        self.live[row] = _live(state)
        self.touch(row)
        self.shape[row] = self.shapes.shape(state)
        self.zone[row] = self._zone(state)

    def _zone(self, state: StateNode) -> int:
        name = state.labels.get(ZONE)
        return NOWHERE if name is None else self._zones.setdefault(name, len(self._zones))

    def judge(self) -> None:
        """Bring what is known about shapes up to date."""
        before = self.overhead_known
        self.shapes.judge(self.classes.signatures, self.topology.filters)
        if before != self.shapes.size:
            self._sum_daemons()

    def touch(self, row: int) -> None:
        """Note that a node or its pods changed."""
        self.changes += 1
        self.changed[row] = self.changes

    def touch_all(self, rows: Array) -> None:
        """Note that nodes or their pods changed."""
        self.changed[rows] = np.arange(self.changes + 1, self.changes + 1 + len(rows))
        self.changes += len(rows)

    def seal(self, row: int, *, sealed: bool) -> bool:
        """Let a node take no pods, or let it take some again; whether that is new."""
        live = _live(self.get(row), sealed=sealed)
        if self.live[row] == live:
            return False
        self.live[row] = live
        self.touch(row)
        return True

    def drop(self, row: int) -> None:
        """Take a node's row away; its pods must be unbound before."""
        self._clear(row)
        self.states[row] = None
        self.live[row] = GONE
        self.touch(row)
        self._vacant.append(row)

    def _clear(self, row: int) -> None:
        state = self.get(row)
        self._see(row, -1)
        del self.rows[state.name]
        self.attach_limits.forget_types(state.name)
        del self._queue[bisect_left(self._queue, _place_in_queue(state, row))]
        self._order = None

    def _grow(self, size: int) -> None:
        self.topology.fit(nodes=size)
        self.widen()

    def widen(self) -> None:
        """Make room for resources, topology keys and nodes that are new."""
        size, width, before = len(self.states), len(self.resources), self._width
        needed = (size, width, len(self.topology.domains.values), self.shapes.size, self.classes.size)
        if needed == self._widened:
            return
        self._widened = needed
        self._width = width
        self.fit(nodes=size, resources=width, keys=len(self.topology.domains.values), shapes=self.shapes.size + 1)
        self.classes.fit(resources=width)
        for attach in range(before, width):
            if attach in self.resources.attach:
                self.room[:, attach] = self.free[:, attach] = UNLIMITED

    def _measure(self, row: int) -> None:
        state = self.get(row)
        self.room[row] = 0
        own = self.resources.room(state.allocatable)
        self.room[row, : len(own)] = own
        for driver, count in self.attach_limits.of(state.name).items():
            self.room[row, self.resources.column(ATTACH + driver)] = count
        self.refresh(row)

    def refresh(self, row: int) -> None:
        """Work out what is free on a node: room less what pods take and what daemons still to come will take."""
        width = len(self.resources)
        waiting = np.maximum(0, self.overhead[self.shape[row], :width] - self.daemon_taken[row, :width])
        self.free[row, :width] = self.room[row, :width] - self.taken[row, :width] - waiting
        self._never_negative(slice(row, row + 1))

    def refresh_all(self) -> None:
        """Work out what is free on every node."""
        self.refresh_some(np.arange(len(self.states)))

    def refresh_some(self, rows: Array) -> None:
        """Work out what is free on nodes."""
        width = len(self.resources)
        waiting = np.maximum(0, self.overhead[self.shape[rows], :width] - self.daemon_taken[rows, :width])
        self.free[rows, :width] = self.room[rows, :width] - self.taken[rows, :width] - waiting
        self._never_negative(rows)

    def _never_negative(self, rows: slice | Array) -> None:
        """Too many volumes on a node keep only volumes away; too much of anything else keeps everybody away."""
        for attach in self.resources.attach:
            self.free[rows, attach] = np.maximum(self.free[rows, attach], 0)

    def set_attach_limits(self, name: str, limits: Mapping[str, int]) -> None:
        """Take note of how many volumes a node can attach, by driver."""
        self.attach_limits.put(name, limits)
        for driver in limits:
            self.resources.column(ATTACH + driver)
        self.widen()
        if name in self.rows:
            self._measure(self.rows[name])

    def attached_by_types(self) -> Mapping[str, Mapping[str, int]]:
        """How many volumes new nodes of a type can attach, as far as its nodes here show."""
        return self.attach_limits.of_types(self._type_of)

    def _type_of(self, name: str) -> str:
        row = self.rows.get(name)
        return "" if row is None else self.get(row).labels.get(INSTANCE_TYPE, "")

    def set_daemons(self, daemons: tuple[Daemon, ...]) -> None:
        """Take note of other daemons; what is free is worked out when shapes are next judged."""
        self.daemons = daemons
        self.overhead_known = 0

    def _sum_daemons(self) -> None:
        size, width = self.shapes.size, len(self.resources)
        self.fit(shapes=size, resources=width)
        self.overhead[:size] = 0
        for daemon in self.daemons:
            runs = self.shapes.runs(daemon).astype(np.int64)
            for resource, amount in self.resources.request(daemon.requests).items():
                self.overhead[:size, resource] += runs * amount
        self.overhead_known = size

    def reshape(self) -> None:
        """Give every node its shape again, because rules mention labels they did not mention before."""
        for row, state in enumerate(self.states):
            if state is not None:
                self.shape[row] = self.shapes.shape(state)
        self.overhead_known = 0
        self.judge()
        self.recount()
        self.refresh_all()

    def recount(self) -> None:
        """Note again which domains all nodes are in."""
        self.widen()
        self.topology.nodes_seen[:] = 0
        for row in self.rows.values():
            self.enter_domains(row)

    def enter_domains(self, row: int) -> None:
        """Note which domains a node is in, and that it is there."""
        state = self.get(row)
        self.domain[row] = NOWHERE
        for name, key in self.topology.domains.keys.items():
            value = state.labels.get(name)
            if name != HOSTNAME and value is not None:
                self.domain[row, key] = self.topology.domain(key, value)
        self._see(row, 1)

    def _see(self, row: int, change: int) -> None:
        if self.live[row] < PRESENT:
            return
        size = len(self.topology.filters)
        seen = self.shapes.seen_by[:size, self.shape[row]].astype(np.int32) * change
        for key in range(HOST_KEY + 1, len(self.topology.domains.values)):
            domain = self.domain[row, key]
            if domain >= 0:
                self.topology.nodes_seen[:size, key, domain] += seen


def _live(state: StateNode, *, sealed: bool = False) -> int:
    if state.deleting:
        return GONE
    unknown = bool((state.node and state.node.unreadable) or (state.claim and state.claim.unreadable))
    if state.node is None:
        return GONE if unknown else EXPECTED
    if takes_no_pods(state.node):
        return SEALED
    # No running pod is sent to a node that is not up. Those that wait have to find it, or more and more are launched.
    return SEALED if sealed and (unknown or state.initialized) else PRESENT


def _place_in_queue(state: StateNode, row: int) -> tuple[bool, str, int]:
    return (not state.initialized, state.name, row)
