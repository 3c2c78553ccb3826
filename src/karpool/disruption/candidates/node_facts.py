"""Facts about nodes and their pools, pods aside: prices, windows, drift, and whether a node may be disrupted at all.

Facts are kept by row, partly as columns. They are written again for nodes whose row the snapshot has stamped since.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import numpy as np

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.pricing import node_price
from karpool.cluster.arrays import Array, grown
from karpool.cluster.changes import conditions_read
from karpool.cluster.node_table import NodeTable
from karpool.cluster.nodes import StateNode
from karpool.disruption.candidates.drift_detection import TYPE_CHECKED_AFTER, Drift, drift_of, with_node_labels
from karpool.disruption.candidates.node_checks import node_refusal
from karpool.disruption.candidates.windows import closed_until, settled_at
from karpool.disruption.repair.breaker import PoolHealth
from karpool.disruption.repair.diagnosis import UnhealthyCondition, findings
from karpool.disruption.repair.policies import RepairPolicies
from karpool.model.labels import INSTANCE_TYPE, NODEPOOL
from karpool.model.nodepool import NodePool
from karpool.wire.objects import condition

DRIFT_REFRESH: Final = timedelta(minutes=5)
"""How long it may go unnoticed that a node drifts by its age alone."""


class NodeFacts(NamedTuple):
    """A node, its pool, and what it costs."""

    name: str
    state: StateNode
    pool: NodePool | None
    pool_name: str
    entry: InstanceType | None
    price: float | None


class PoolCensus(NamedTuple):
    """How many nodes a pool has, how many of them are not ready or on their way out, and how many are on their way."""

    nodes: int = 0
    busy: int = 0
    leaving: int = 0


class _Columns:
    """One value a node, by row."""

    def __init__(self) -> None:
        self.opens: Array = np.zeros(0)
        self.settles: Array = np.zeros(0)
        self.unready: Array = np.zeros(0, dtype=np.uint8)
        self.pool: Array = np.zeros(0, dtype=np.int32)
        self.busy: Array = np.zeros(0, dtype=np.uint8)
        self.leaving: Array = np.zeros(0, dtype=np.uint8)
        self.sick: Array = np.zeros(0, dtype=np.uint8)
        self.refused: Array = np.zeros(0, dtype=np.uint8)
        self.drifted: Array = np.zeros(0, dtype=np.uint8)
        self.limited: Array = np.zeros(0, dtype=np.uint8)
        self.deleting: Array = np.zeros(0, dtype=np.uint8)

    def grow(self, size: int) -> None:
        """Make room for so many rows."""
        for name, column in vars(self).items():
            setattr(self, name, grown(column, (size,)))

    def write(self, row: int, **values: float) -> None:
        """Set the values of a row; what is not named becomes zero."""
        for name, column in vars(self).items():
            column[row] = values.get(name, 0)


class NodeFactsCache:
    """The facts of all nodes of a snapshot, as of the moment of the last `refresh`."""

    def __init__(
        self,
        nodes: NodeTable,
        pools: Mapping[str, NodePool],
        catalog: Catalog,
        *,
        complete: bool,
        repair: RepairPolicies | None = None,
    ) -> None:
        """`complete`: whether the catalogue lists every type of the provider, so that a missing one has gone."""
        self._repair = repair
        self._findings: dict[int, tuple[UnhealthyCondition, ...]] = {}
        self._nodes = nodes
        self._pools = pools
        self._catalog = catalog
        self._drift_catalog = catalog if complete else None
        self._facts: dict[int, NodeFacts] = {}
        self._drifts: dict[int, Drift | None] = {}
        self._basis: dict[int, tuple[object, ...]] = {}
        """What all but the windows of a node were worked out from."""
        self._written: dict[int, StateNode] = {}
        """The node that each row was last written from."""
        self._pool_numbers: dict[str, int] = {}
        self._columns = _Columns()
        self._seen = -1
        self._drift_checked = datetime.min.replace(tzinfo=UTC)

    def refresh(self, now: datetime) -> None:
        """Take note of every node that changed since the last time."""
        nodes, columns = self._nodes, self._columns
        if len(nodes.live) > len(columns.opens):
            columns.grow(len(nodes.live))
        if now - self._drift_checked >= DRIFT_REFRESH:
            self._check_drift_again(now)
        for row in np.flatnonzero(nodes.changed[: len(nodes.states)] > self._seen).tolist():
            state = nodes.states[row]
            if state is None or self._written.get(row) is not state or row not in self._basis:
                self._write(row, state, now)  # of all others only their pods changed
        self._seen = nodes.changes

    def of(self, row: int) -> NodeFacts:
        """The facts of a node."""
        facts, state = self._facts.get(row), self._nodes.get(row)
        if facts is not None and facts.state is not state and _same_labels(facts.state, state):
            facts = self._facts[row] = facts._replace(state=state)
        if facts is None or facts.state is not state:
            entry = self._catalog.by_name.get(state.labels.get(INSTANCE_TYPE, ""))
            price = node_price(self._catalog, state.labels)
            facts = NodeFacts(state.name, state, self._pools.get(state.pool), state.pool, entry, price)
            self._facts[row] = facts
        return facts

    def closed(self, now: datetime) -> Array:
        """Which nodes take no pods that consolidation would move there at a moment."""
        shut: Array = (self._columns.opens > now.timestamp()).astype(np.uint8)
        return shut

    def settled(self, now: datetime) -> Array:
        """Which nodes consolidation may empty at a moment, as far as their window and grace period go."""
        open_: Array = self._columns.settles <= now.timestamp()
        return open_

    def next_opening(self, now: datetime) -> datetime | None:
        """When the next node whose window is closed at a moment takes part in consolidation again."""
        later = self._columns.settles[self._columns.settles > now.timestamp()]
        return datetime.fromtimestamp(float(later.min()), UTC) if len(later) else None

    def unready(self) -> Array:
        """Which nodes are not initialized yet."""
        return self._columns.unready.copy()

    def permitted(self) -> Array:
        """Which nodes no rule about the node itself keeps from being disrupted."""
        allowed: Array = self._columns.refused == 0
        allowed[len(self._nodes.states) :] = False
        return allowed

    def deleting(self) -> list[int]:
        """Rows of nodes that are being deleted."""
        return np.flatnonzero(self._columns.deleting).tolist()

    def limited(self) -> Array:
        """Which nodes have a termination grace period, after which their pods leave whatever they say."""
        return self._columns.limited

    def drifted(self) -> Array:
        """Which nodes have drifted from their pools."""
        return self._columns.drifted

    def drift(self, row: int) -> Drift | None:
        """How a node has drifted from its pool, if it has; moving pods does not change that."""
        return self._drifts[row]

    def sick(self) -> list[int]:
        """Rows of nodes with a condition that repair policies name."""
        return np.flatnonzero(self._columns.sick).tolist()

    def findings(self, row: int) -> tuple[UnhealthyCondition, ...]:
        """What repair policies say of a node."""
        return self._findings.get(row, ())

    def health(self) -> dict[str, PoolHealth]:
        """How many Nodes have the label of each pool, and how many of them a condition that repair policies name."""
        health: dict[str, PoolHealth] = {}
        for row in self._nodes.rows.values():
            node = self._nodes.get(row).node
            if node is not None:
                known = health.get(pool := node.metadata.labels.get(NODEPOOL, ""), PoolHealth())
                health[pool] = PoolHealth(known.nodes + 1, known.unhealthy + int(self._columns.sick[row]))
        return health

    def census(self, in_command: Collection[str]) -> dict[str, PoolCensus]:
        """How many nodes each pool has, and what they are up to."""
        pool, counted, most = self._columns.pool - 1, self._columns.pool > 0, len(self._pool_numbers)
        going = [self._nodes.rows[name] for name in in_command if name in self._nodes.rows]
        nodes, busy, leaving = (
            np.bincount(pool[counted & (column != 0)], minlength=most).tolist()
            for column in (self._columns.pool, _with(self._columns.busy, going), _with(self._columns.leaving, going))
        )
        return {
            name: PoolCensus(nodes[number], busy[number], leaving[number])
            for name, number in self._pool_numbers.items()
        }

    def _write(self, row: int, state: StateNode | None, now: datetime) -> None:
        if state is None:
            self._columns.write(row, refused=1)
            self._basis.pop(row, None)
            self._findings.pop(row, None)
            self._written.pop(row, None)
            return
        self._written[row] = state
        facts, claim = self.of(row), state.claim
        # Most updates of a claim are about its last pod event, which only the windows depend on.
        basis = (
            state.node,
            None if claim is None else (claim.metadata, claim.spec, conditions_read(claim.status.conditions)),
        )
        if self._basis.get(row) != basis:
            self._basis[row] = basis
            self._write_all(row, facts, now)
        if claim is not None:
            opening = closed_until(claim, facts.pool)
            self._columns.opens[row] = opening.timestamp()
            self._columns.settles[row] = settled_at(claim, facts.pool, opening).timestamp()

    def _write_all(self, row: int, facts: NodeFacts, now: datetime) -> None:
        state, claim = facts.state, facts.state.claim
        up = state.initialized or state.rebooting
        counts = claim is not None and up and not claim.is_true("InstanceTerminating")
        number = self._pool_numbers.setdefault(state.pool, len(self._pool_numbers)) if counts else -1
        self._drifts[row] = self._detect_drift(facts, now)
        self._findings[row] = () if self._repair is None or state.group else findings(self._repair, state)
        leaving = state.deleting or state.rebooting
        self._columns.write(
            row,
            unready=not state.initialized,
            pool=number + 1,
            busy=leaving or not _ready(state),
            leaving=leaving,
            sick=bool(self._findings[row]),
            refused=node_refusal(facts, self._catalog) is not None,
            drifted=self._drifts[row] is not None,
            limited=claim is not None and claim.spec.termination_grace_period is not None,
            deleting=state.deleting,
        )

    def _check_drift_again(self, now: datetime) -> None:
        """Judge nodes again that have drifted, or that were too young for their type to count the last time."""
        before, self._drift_checked = self._drift_checked, now
        for row, written in self._written.items():
            state = self._nodes.states[row]
            if state is None or row not in self._basis:
                continue
            created = None if written.claim is None else written.claim.metadata.creation_timestamp
            young = created is not None and before - created <= TYPE_CHECKED_AFTER
            if self._drifts[row] is not None or (young and self._drift_catalog is not None):
                self._drifts[row] = self._detect_drift(self.of(row), now)
                self._columns.drifted[row] = self._drifts[row] is not None

    def _detect_drift(self, facts: NodeFacts, now: datetime) -> Drift | None:
        claim, node = facts.state.claim, facts.state.node
        if claim is None or facts.state.group:
            return None
        with_labels = claim if node is None else with_node_labels(claim, node.metadata.labels)
        return drift_of(with_labels, facts.pool, self._drift_catalog, now)


def _same_labels(old: StateNode, new: StateNode) -> bool:
    """Whether two versions of a node are seen to have the same labels, and to be of the same pool or group."""
    return old.node is new.node and old.registered and new.registered and old.group == new.group


def _with(column: Array, rows: list[int]) -> Array:
    """A column in which these rows are set as well."""
    changed: Array = column.copy()
    changed[rows] = 1
    return changed


def _ready(state: StateNode) -> bool:
    """Whether a node is ready; one without a Ready condition counts as ready."""
    ready = condition(state.node.status.conditions, "Ready") if state.node else None
    return ready is None or ready.status == "True"
