"""One moment of a cluster as decisions see it: its nodes with their pods, prices and costs, and who expects what room.

Pods that wait for a node, and pods of nodes that are on their way out, will take room somewhere. The situation gives
them the room they would find today; those who find none are left out of all decisions.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.pricing import node_price
from karpool.cluster.arrays import Array
from karpool.cluster.nodes import StateNode
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.budgets import UNLIMITED, Allowance, allowed
from karpool.disruption.command import Cause
from karpool.disruption.costs import lifetime_cost, reschedule_cost
from karpool.disruption.drifted import Drift, drift_of
from karpool.disruption.pdbs import Pdbs, currently_reschedulable
from karpool.disruption.pods import blocks_until
from karpool.disruption.policies import Worth
from karpool.disruption.settings import Settings
from karpool.disruption.windows import destination_closed, in_grace
from karpool.model.labels import INSTANCE_TYPE
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.model.wire import condition
from karpool.packing.engine import Engine
from karpool.packing.kernels.columns import UNPLACED


@dataclass(frozen=True, slots=True)
class Standing:
    """A node and everything decisions ask about it alone."""

    row: int
    state: StateNode
    pool: NodePool | None
    entry: InstanceType | None
    price: float | None
    pods: tuple[int, ...]
    movers: tuple[int, ...]
    cost: float
    lifetime_cost: float

    @property
    def name(self) -> str:
        """The node's name."""
        return self.state.name

    @property
    def empty(self) -> bool:
        """Whether no pod on the node needs another place."""
        return not self.pods


class Situation:
    """A snapshot at a moment, with the settings of a run; answers are worked out once and kept until a node changes.

    The snapshot is the situation's own from then on: pods that wait are bound there to the room they would find.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        catalog: Catalog,
        engine: Engine,
        *,
        now: datetime,
        settings: Settings | None = None,
        in_command: Collection[str] = (),
        nominated: Collection[str] = (),
    ) -> None:
        self.snapshot = snapshot
        self.catalog = catalog
        self.engine = engine
        self.now = now
        self.settings = settings or Settings()
        self.in_command = frozenset(in_command)
        self.nominated = frozenset(nominated)
        self.pools = {pool.name: pool for pool in snapshot.objects.node_pools}
        self.pdbs = Pdbs(snapshot.objects.pod_disruption_budgets)
        self.pending: set[str] = set()
        self.leaving: set[str] = set()
        self.stranded: list[int] = []
        self._standings: dict[int, Standing] = {}
        self._known: dict[int, dict[object, Reason | None]] = {}
        self._drifts: dict[str, Drift | None] = {}
        self._holds: dict[str, Reason | None] = {}
        self._closed: Array | None = None
        self._worth: dict[str, Worth] | None = None
        self._counted: dict[str, tuple[int, int]] | None = None
        self._allowances: dict[tuple[str, Cause], Allowance] = {}
        self._seat_waiting_pods()

    # -- pods that will take room --------------------------------------------------------------------------------

    def _seat_waiting_pods(self) -> None:
        """Give waiting pods, and those of nodes that are on their way out, the room they would find on other nodes."""
        pods, nodes = self.snapshot.pods, self.snapshot.nodes
        homeless = np.flatnonzero(pods.node_of[: len(pods.objects)] < 0).tolist()
        leaving = [row for name, row in nodes.rows.items() if nodes.get(row).deleting or name in self.in_command]
        waiting = [row for row in homeless if (pod := pods.objects[row]) is not None and pod.waits_for_node]
        moving = [
            row
            for node in leaving
            for row in sorted(self.snapshot.pods_on(node))
            if currently_reschedulable(pods.get(row), self.pdbs, self.now)
        ]
        self.seat(waiting, moving)

    def seat(self, waiting: list[int], moving: Collection[int] = ()) -> None:
        """Give pods the room they find on nodes that exist; those that wait and find none are stranded."""
        pods, nodes = self.snapshot.pods, self.snapshot.nodes
        rows = [*waiting, *moving]
        if not rows:
            return
        with self.engine.what_if() as trial:
            trial.uncount(list(moving))
            found = trial.place(rows, exempt=[True] * len(rows), existing_only=True)
            targets = dict(zip(found.pods, found.targets, strict=True))
        self.stranded += [row for row in waiting if targets[row] == UNPLACED]
        for listed, held in ((waiting, self.pending), (moving, self.leaving)):
            for row in listed:
                if targets[row] != UNPLACED:
                    held.add(pods.get(row).key)
                    self.snapshot.move(row, nodes.get(targets[row]).name)

    def expected(self, pod: Pod) -> bool:
        """Whether a pod only waits for the room it has here."""
        return pod.key in self.pending or pod.key in self.leaving

    # -- nodes ---------------------------------------------------------------------------------------------------

    def rows(self) -> list[int]:
        """The rows of all nodes, by name."""
        return [row for _, row in sorted(self.snapshot.nodes.rows.items())]

    def standing(self, row: int) -> Standing:
        """What is to be known of a node alone."""
        found = self._standings.get(row)
        if found is None:
            found = self._standings[row] = self._look_at(row)
        return found

    def _look_at(self, row: int) -> Standing:
        state = self.snapshot.nodes.get(row)
        on_node = sorted(self.snapshot.pods_on(row))
        objects = {at: self.snapshot.pods.get(at) for at in on_node}
        moving = [at for at in on_node if objects[at].reschedulable]
        claim = state.claim
        return Standing(
            row=row,
            state=state,
            pool=self.pools.get(state.pool),
            entry=self.catalog.by_name.get(state.labels.get(INSTANCE_TYPE, "")),
            price=node_price(self.catalog, state.labels),
            pods=tuple(moving),
            movers=tuple(
                at
                for at in moving
                if self.expected(objects[at]) or currently_reschedulable(objects[at], self.pdbs, self.now)
            ),
            cost=reschedule_cost(objects[at] for at in moving),
            lifetime_cost=lifetime_cost(objects.values(), claim, self.now) if claim else 0.0,
        )

    def forget(self, rows: Collection[int]) -> None:
        """Nodes have changed: look at them again when asked."""
        for row in rows:
            self._standings.pop(row, None)
            self._known.pop(row, None)
        self._closed = self._worth = self._counted = None
        self._allowances.clear()

    def restock(self, catalog: Catalog) -> None:
        """There is less to be had than before."""
        self.catalog = catalog
        self.engine = Engine(self.snapshot, catalog, self.engine.options)

    def once(self, row: int, question: Callable[..., Reason | None], *details: object) -> Reason | None:
        """The answer to a question about a node alone, worked out once until the node changes."""
        answers = self._known.setdefault(row, {})
        key = (question, *details)
        if key not in answers:
            answers[key] = question(self, self.standing(row), *details)
        return answers[key]

    def hold(self, pod: Pod) -> Reason | None:
        """Why a pod must not be disturbed now, if it must not."""
        if pod.key not in self._holds:
            self._holds[pod.key] = blocks_until(pod, self.now) or self.pdbs.eviction_blocked(pod, self.now)
        return self._holds[pod.key]

    def drift(self, standing: Standing) -> Drift | None:
        """How a node has drifted from its pool, if it has; moving pods does not change that."""
        if standing.name not in self._drifts:
            claim = _with_node_labels(standing.state)
            catalog = self.catalog if self.settings.complete_catalog else None
            found = None if claim is None else drift_of(claim, standing.pool, catalog, self.now)
            self._drifts[standing.name] = found
        return self._drifts[standing.name]

    @property
    def closed(self) -> Array:
        """Which nodes take no pods that consolidation would move there now."""
        if self._closed is None or len(self._closed) < len(self.snapshot.nodes.live):
            self._closed = np.zeros(len(self.snapshot.nodes.live), dtype=np.uint8)
            for row in self.snapshot.nodes.rows.values():
                state = self.snapshot.nodes.get(row)
                if state.claim is not None:
                    pool = self.pools.get(state.pool)
                    self._closed[row] = bool(
                        destination_closed(state.claim, pool, self.now) or in_grace(state.claim, pool, self.now)
                    )
        return self._closed

    def exempt(self, pod: Pod) -> bool:
        """Whether a pod may go to a closed node: it has not started yet, or its node goes anyway."""
        return pod.status.phase == "Pending" or self.expected(pod)

    # -- pools ---------------------------------------------------------------------------------------------------

    def allowance(self, pool: NodePool, cause: Cause) -> Allowance:
        """How many nodes of a pool may go for a cause now."""
        if self.settings.ignore_budgets:
            return Allowance(UNLIMITED, UNLIMITED)
        key = (pool.name, cause)
        if key not in self._allowances:
            nodes, busy = self._census().get(pool.name, (0, 0))
            annotated = self.settings.annotated_budgets
            self._allowances[key] = allowed(pool, cause, nodes, busy, self.now, annotated=annotated)
        return self._allowances[key]

    def pool_size(self, pool: str) -> int:
        """How many nodes of a pool budgets count."""
        return self._census().get(pool, (0, 0))[0]

    def _census(self) -> dict[str, tuple[int, int]]:
        """How many nodes each pool has, and how many of them are busy: not ready, or on their way out."""
        if self._counted is None:
            self._counted = {}
            for row in self.snapshot.nodes.rows.values():
                state = self.snapshot.nodes.get(row)
                claim = state.claim
                if claim is None or not state.initialized or claim.is_true("InstanceTerminating"):
                    continue
                nodes, busy = self._counted.get(state.pool, (0, 0))
                self._counted[state.pool] = (nodes + 1, busy + self._is_busy(state))
        return self._counted

    def _is_busy(self, state: StateNode) -> bool:
        return state.deleting or state.name in self.in_command or not _ready(state)

    def worth(self, pool: str) -> Worth:
        """What all nodes of a pool cost, in money and in trouble."""
        if self._worth is None:
            self._worth = {}
            for row in self.snapshot.nodes.rows.values():
                standing = self.standing(row)
                held = self._worth.get(standing.state.pool, Worth(0.0, 0.0))
                self._worth[standing.state.pool] = Worth(
                    held.price + (standing.price or 0.0), held.disruption + standing.cost
                )
        return self._worth.get(pool, Worth(0.0, 0.0))


def _with_node_labels(state: StateNode) -> NodeClaim | None:
    """A claim that also has what only its node says of itself: a label that one of them has is no label missing."""
    if state.claim is None or state.node is None:
        return state.claim
    labels = {**state.node.metadata.labels, **state.claim.metadata.labels}
    return replace(state.claim, metadata=replace(state.claim.metadata, labels=labels))


def _ready(state: StateNode) -> bool:
    """A node that says nothing about being ready counts as ready; one that says anything but yes does not."""
    said = condition(state.node.status.conditions, "Ready") if state.node else None
    return said is None or said.status == "True"
