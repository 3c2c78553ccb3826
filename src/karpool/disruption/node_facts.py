"""What follows from nodes and their pools alone, their pods aside; worked out anew for nodes that changed."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.pricing import node_price
from karpool.cluster.arrays import Array, grown
from karpool.cluster.node_table import NodeTable
from karpool.cluster.nodes import StateNode
from karpool.disruption.windows import closed_until, settled_at
from karpool.model.labels import INSTANCE_TYPE
from karpool.model.nodepool import NodePool
from karpool.wire.objects import condition


class NodeFacts(NamedTuple):
    """A node, its pool, and what it costs."""

    state: StateNode
    pool: NodePool | None
    pool_name: str
    entry: InstanceType | None
    price: float | None


class NodeFactsCache:
    """Facts of nodes by row, some of them as columns."""

    def __init__(self, nodes: NodeTable, pools: Mapping[str, NodePool], catalog: Catalog) -> None:
        self._nodes = nodes
        self._pools = pools
        self._catalog = catalog
        self._held: dict[int, NodeFacts] = {}
        self._stale: set[int] = set(nodes.rows.values())
        self._written: list[StateNode | None] = []
        self._numbers: dict[str, int] = {}
        self._opens: Array = np.zeros(0)
        self._settles: Array = np.zeros(0)
        self._unready: Array = np.zeros(0, dtype=np.uint8)
        self._pool_of: Array = np.zeros(0, dtype=np.int32)
        self._busy: Array = np.zeros(0, dtype=np.uint8)
        self._drifted: Array = np.zeros(0, dtype=np.uint8)
        self._deleting: set[int] = set()
        self._limited: set[int] = set()

    def fits(self, pools: Mapping[str, NodePool], catalog: Catalog) -> bool:
        """Whether these are the pools and the catalogue that facts were worked out with."""
        same = self._catalog is catalog and self._pools.keys() == pools.keys()
        return same and all(pool is self._pools[name] for name, pool in pools.items())

    def forget(self, rows: Collection[int]) -> None:
        """Nodes may have changed, come or gone."""
        self._stale.update(rows)

    def of(self, row: int) -> NodeFacts:
        """The facts of a node."""
        found, state = self._held.get(row), self._nodes.get(row)
        if found is None or found.state is not state:
            entry = self._catalog.by_name.get(state.labels.get(INSTANCE_TYPE, ""))
            price = node_price(self._catalog, state.labels)
            found = self._held[row] = NodeFacts(state, self._pools.get(state.pool), state.pool, entry, price)
        return found

    def closed(self, now: datetime) -> Array:
        """Which nodes take no pods that consolidation would move there at a moment."""
        self._catch_up()
        shut: Array = (self._opens > now.timestamp()).astype(np.uint8)
        return shut

    def next_opening(self, now: datetime) -> datetime | None:
        """When the next node whose window is shut at a moment takes part in consolidation again."""
        self._catch_up()
        later = self._settles[self._settles > now.timestamp()]
        return datetime.fromtimestamp(float(later.min()), UTC) if len(later) else None

    def unready(self) -> Array:
        """Which nodes are not up yet."""
        self._catch_up()
        return self._unready.copy()

    def drifted(self) -> Array:
        """Which nodes say themselves that they have drifted."""
        self._catch_up()
        return self._drifted

    def deleting(self) -> set[int]:
        """Rows of nodes that are being deleted."""
        self._catch_up()
        return self._deleting

    def limited(self) -> set[int]:
        """Rows of nodes whose pods can be made to leave in the end, whatever they say."""
        self._catch_up()
        return self._limited

    def census(self, leaving: Collection[str]) -> dict[str, tuple[int, int]]:
        """How many nodes each pool has, and how many of them are busy: not ready, or on their way out."""
        self._catch_up()
        busy = self._busy.copy()
        busy[[self._nodes.rows[name] for name in leaving if name in self._nodes.rows]] = 1
        counted = self._pool_of >= 0
        most = len(self._numbers)
        nodes = np.bincount(self._pool_of[counted], minlength=most).tolist()
        gone = np.bincount(self._pool_of[counted & (busy != 0)], minlength=most).tolist()
        return {name: (nodes[number], gone[number]) for name, number in self._numbers.items()}

    def _catch_up(self) -> None:
        """Write the columns of nodes that changed."""
        if not self._stale:
            return
        states, size = self._nodes.states, len(self._nodes.live)
        if size > len(self._opens):
            self._opens, self._unready = grown(self._opens, (size,)), grown(self._unready, (size,))
            self._pool_of, self._busy = grown(self._pool_of, (size,), -1), grown(self._busy, (size,))
            self._settles, self._drifted = grown(self._settles, (size,)), grown(self._drifted, (size,))
        self._written.extend([None] * (len(states) - len(self._written)))
        stale, self._stale = self._stale, set()
        for row in stale:
            state = states[row]
            if state is not self._written[row]:
                self._written[row] = state
                self._write(row, state)

    def _write(self, row: int, state: StateNode | None) -> None:
        columns = (self._opens, self._settles, self._unready, self._pool_of, self._busy, self._drifted)
        found = (0.0, 0.0, 0, -1, 0, 0) if state is None else self._columns(state)
        for column, value in zip(columns, found, strict=True):
            column[row] = value
        for rows, applies in (
            (self._deleting, state is not None and state.deleting),
            (self._limited, state is not None and drain_is_limited(state)),
        ):
            if applies:
                rows.add(row)
            else:
                rows.discard(row)

    def _columns(self, state: StateNode) -> tuple[float, float, bool, int, bool, bool]:
        claim, pool = state.claim, self._pools.get(state.pool)
        opens = settles = 0.0
        if claim is not None:
            opening = closed_until(claim, pool)
            opens, settles = opening.timestamp(), settled_at(claim, pool, opening).timestamp()
        counts = claim is not None and state.initialized and not claim.is_true("InstanceTerminating")
        number = self._numbers.setdefault(state.pool, len(self._numbers)) if counts else -1
        drifted = claim is not None and claim.is_true("Drifted")
        return opens, settles, not state.initialized, number, state.deleting or not _ready(state), drifted


def drain_is_limited(state: StateNode) -> bool:
    """Whether the pods of a node can be made to leave in the end, whatever they say."""
    return state.claim is not None and state.claim.spec.termination_grace_period is not None


def _ready(state: StateNode) -> bool:
    """A node that says nothing about being ready counts as ready; one that says anything but yes does not."""
    said = condition(state.node.status.conditions, "Ready") if state.node else None
    return said is None or said.status == "True"
