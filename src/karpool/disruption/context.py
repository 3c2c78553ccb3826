"""One moment of a cluster as decisions see it: its nodes with their pods, prices and costs, and who expects what room.

Pods that wait for a node, and pods of nodes that are on their way out, will take room somewhere. The situation gives
them the room they would find today; those who find none are left out of all decisions.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.cluster.arrays import Array
from karpool.cluster.nodes import StateNode
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.budgets import UNLIMITED, Allowance, allowed
from karpool.disruption.command import Cause
from karpool.disruption.costs import reschedule_cost, savings_ratio
from karpool.disruption.drift_detection import Drift, drift_of
from karpool.disruption.node_facts import NodeFactsCache
from karpool.disruption.pdbs import PdbLimits, currently_reschedulable
from karpool.disruption.pod_facts import PodFacts, PodFactsCache
from karpool.disruption.pods import blocks_until
from karpool.disruption.policies import HAIR, Worth
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import CAPACITY_TYPE, SPOT
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.packing.candidate_pods import CandidatePods
from karpool.packing.engine import Engine
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.kernels.scan import EXEMPT, PATIENT

# Refusals that time, other nodes or budgets of pods may lift while the node itself stays as it is.
FLEETING: Final = frozenset(
    {
        ReasonCode.CONSOLIDATE_AFTER_WINDOW,
        ReasonCode.GRACE_PERIOD,
        ReasonCode.POD_DO_NOT_DISRUPT,
        ReasonCode.POD_DISRUPTION_BUDGET,
        ReasonCode.MULTIPLE_POD_DISRUPTION_BUDGETS,
        ReasonCode.IN_COMMAND,
        ReasonCode.NODE_NOMINATED,
    }
)


class Candidate(NamedTuple):
    """A node and everything decisions ask about it alone; `cost` and `eviction_cost` are trouble, not money.

    `by_ratio` sorts nodes: the one that saves most money for the trouble first, then by name.
    """

    row: int
    name: str
    state: StateNode
    pool: NodePool | None
    pool_name: str
    entry: InstanceType | None
    price: float | None
    pods: tuple[int, ...]
    movers: tuple[int, ...]
    cost: float
    eviction_cost: float
    by_ratio: tuple[float, str]

    @property
    def empty(self) -> bool:
        """Whether no pod on the node needs another place."""
        return not self.pods


class DecisionContext:
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
        settings: DisruptionSettings | None = None,
        in_command: Collection[str] = (),
        nominated: Collection[str] = (),
    ) -> None:
        self.snapshot = snapshot
        self.catalog = catalog
        self.engine = engine
        self.now = now
        self.settings = settings or DisruptionSettings()
        self.in_command = frozenset(in_command)
        self.nominated = frozenset(nominated)
        self.pools = {pool.name: pool for pool in snapshot.objects.node_pools}
        self.pdbs = PdbLimits(snapshot.objects.pod_disruption_budgets)
        self.pending: set[str] = set()
        self.leaving: set[str] = set()
        self.stranded: list[int] = []
        self._candidates: dict[int, Candidate] = {}
        self._guarded: set[int] = set()
        self._answers: dict[tuple[object, ...], dict[int, Reason | None]] = {}
        self._fleeting: list[tuple[dict[int, Reason | None], int]] = []
        self._drifts: dict[str, Drift | None] = {}
        self._holds: dict[str, Reason | None] = {}
        self._open_to: dict[int, bool] = {}
        self._pod_facts = PodFactsCache(snapshot.pods)
        self._node_facts = NodeFactsCache(snapshot.nodes, self.pools, catalog)
        self._candidate_pods = CandidatePods()
        self._enlisted: dict[int, Candidate] = {}
        self._by_name: tuple[int, list[int]] = (-1, [])
        self._closed: Array | None = None
        self._unready: Array | None = None
        self._worth: dict[str, Worth] | None = None
        self._counted: dict[str, tuple[int, int]] | None = None
        self._allowances: dict[tuple[str, Cause], Allowance] = {}
        self._seat_waiting_pods()

    # -- pods that will take room --------------------------------------------------------------------------------

    def _seat_waiting_pods(self) -> None:
        """Give waiting pods, and those of nodes that are on their way out, the room they would find on other nodes."""
        pods = self.snapshot.pods
        homeless = np.flatnonzero(pods.node_of[: len(pods.objects)] < 0).tolist()
        waiting = [row for row in homeless if (pod := pods.objects[row]) is not None and pod.waits_for_node]
        moving = [
            row
            for node in sorted(self._leaving_rows())
            for row in sorted(self.snapshot.pods_on(node))
            if currently_reschedulable(pods.get(row), self.pdbs, self.now)
        ]
        self.seat(waiting, moving)

    def _leaving_rows(self) -> set[int]:
        """The rows of nodes that are on their way out."""
        rows = self.snapshot.nodes.rows
        return self._node_facts.deleting() | {rows[name] for name in self.in_command if name in rows}

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
        if self._by_name[0] != self.snapshot.version:
            self._by_name = (self.snapshot.version, [row for _, row in sorted(self.snapshot.nodes.rows.items())])
        return self._by_name[1]

    def with_termination_grace_period(self) -> list[int]:
        """The rows of nodes whose pods can be made to leave in the end, whatever they say."""
        limited = self._node_facts.limited()
        return [row for row in self.rows() if row in limited] if limited else []

    def candidate(self, row: int) -> Candidate:
        """What is to be known of a node alone."""
        found = self._candidates.get(row)
        if found is None:
            found = self._candidates[row] = self._look_at(row)
        return found

    def _look_at(self, row: int) -> Candidate:
        node = self._node_facts.of(row)
        here = self._pod_facts.of(sorted(self.snapshot.pods_on(row)))
        pods = [pod for pod in here if pod.reschedulable]
        movers = [pod for pod in pods if self._moves(pod)]
        if len(movers) < len(pods) and any(pod.guarded for pod in pods):
            self._guarded.add(row)
        cost = reschedule_cost([pod.cost for pod in pods])
        return Candidate(
            row=row,
            name=node.state.name,
            state=node.state,
            pool=node.pool,
            pool_name=node.pool_name,
            entry=node.entry,
            price=node.price,
            pods=tuple([pod.row for pod in pods]),
            movers=tuple([pod.row for pod in movers]),
            cost=cost,
            eviction_cost=sum([pod.cost for pod in here]),
            by_ratio=(-savings_ratio(node.price, cost), node.state.name),
        )

    def _moves(self, pod: PodFacts) -> bool:
        """Whether a pod that needs another place when its node goes is given one."""
        return self._unhindered(pod) or currently_reschedulable(pod.pod, self.pdbs, self.now)

    def _unhindered(self, pod: PodFacts) -> bool:
        """Whether it is plain that nothing keeps a pod where it is, or that it is not there yet."""
        if not pod.guarded:
            found = self._open_to.get(pod.labels)
            if found is None:
                found = self._open_to[pod.labels] = self.pdbs.open_to_all(pod.pod)
            if found:
                return True
        return pod.key in self.pending or pod.key in self.leaving

    def candidate_pods(self, candidates: Sequence[Candidate]) -> CandidatePods:
        """Who would move from nodes, as a scan looks at it."""
        for one in candidates:
            if self._enlisted.get(one.row) is not one:
                self._enlisted[one.row] = one
                pods = np.array(one.movers, dtype=np.int32)
                pods = pods[self.snapshot.pods.ranking.order(pods)]
                flags = [self._flags(pod) for pod in self._pod_facts.of(pods.tolist())]
                self._candidate_pods.put(one.row, pods, flags, self.ceiling((one,)))
        return self._candidate_pods

    def ceiling(self, candidates: Sequence[Candidate]) -> float:
        """What a new node in the place of nodes has to stay below; infinite where that is not all there is to it."""
        if self.settings.spot_to_spot and all(one.state.labels.get(CAPACITY_TYPE) == SPOT for one in candidates):
            return np.inf
        return price_of(candidates) - HAIR

    def _flags(self, pod: PodFacts) -> int:
        if pod.key in self.pending or pod.key in self.leaving:
            return EXEMPT | PATIENT
        return EXEMPT if pod.starting else 0

    def forget(self, rows: Collection[int]) -> None:
        """Nodes have changed: look at them again when asked."""
        for row in rows:
            self._candidates.pop(row, None)
        self._guarded.difference_update(rows)
        self.ask_again(rows)
        self._node_facts.forget(rows)
        self._closed = self._unready = self._worth = self._counted = None
        self._allowances.clear()

    def ask_again(self, rows: Collection[int]) -> None:
        """Answers about nodes may be others now."""
        for answers in self._answers.values():
            for row in rows:
                answers.pop(row, None)

    def restock(self, catalog: Catalog) -> None:
        """There is less to be had than before."""
        self.catalog = catalog
        self._node_facts = NodeFactsCache(self.snapshot.nodes, self.pools, catalog)
        self.engine = Engine(self.snapshot, catalog, self.engine.options)

    def unopposed(self, rows: Iterable[int], question: Callable[..., Reason | None], *details: object) -> list[int]:
        """The rows of nodes for which a question gets no reason; each is asked once until the node changes."""
        answers = self._answers.setdefault((question, *details), {})
        listed = list(rows)
        for row in [row for row in listed if row not in answers]:
            found = answers[row] = question(self, self.candidate(row), *details)
            if found is not None and found.code in FLEETING:
                self._fleeting.append((answers, row))
        return [row for row in listed if answers[row] is None]

    def once(self, row: int, question: Callable[..., Reason | None], *details: object) -> Reason | None:
        """The answer to a question about a node alone, worked out once until the node changes."""
        self.unopposed((row,), question, *details)
        return self._answers[question, *details][row]

    def holds(self, row: int) -> list[tuple[Pod, Reason]]:
        """The pods on a node that must not be disturbed now, and why; one that only waits for its room is not held."""
        here = self._pod_facts.of(self.snapshot.pods_on(row))
        return [(pod.pod, why) for pod in here if (why := self._hold(pod)) is not None]

    def _hold(self, pod: PodFacts) -> Reason | None:
        if self._unhindered(pod):
            return None
        if pod.key not in self._holds:
            self._holds[pod.key] = blocks_until(pod.pod, self.now) or self.pdbs.eviction_blocked(pod.pod, self.now)
        return self._holds[pod.key]

    def drift(self, candidate: Candidate) -> Drift | None:
        """How a node has drifted from its pool, if it has; moving pods does not change that."""
        self.drifting((candidate,))
        return self._drifts[candidate.name]

    def drifting(self, candidates: Collection[Candidate]) -> list[tuple[Candidate, Drift]]:
        """The nodes that have drifted from their pools, each with how it has."""
        drifts = self._drifts
        for one in candidates:
            if one.name not in drifts:
                claim = _with_node_labels(one.state)
                catalog = self.catalog if self.settings.complete_catalog else None
                drifts[one.name] = None if claim is None else drift_of(claim, one.pool, catalog, self.now)
        return [(one, how) for one in candidates if (how := drifts[one.name]) is not None]

    @property
    def closed(self) -> Array:
        """Which nodes take no pods that consolidation would move there now."""
        if self._closed is None or len(self._closed) < len(self.snapshot.nodes.live):
            self._closed = self._node_facts.closed(self.now)
        return self._closed

    @property
    def unready(self) -> Array:
        """Which nodes are not up yet."""
        if self._unready is None or len(self._unready) < len(self.snapshot.nodes.live):
            self._unready = self._node_facts.unready()
        return self._unready

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
            self._counted = self._node_facts.census(self.in_command)
        return self._counted

    def worth(self, pool: str) -> Worth:
        """What all nodes of a pool cost, in money and in trouble."""
        if self._worth is None:
            self._worth = {}
            for row in self.snapshot.nodes.rows.values():
                candidate = self.candidate(row)
                held = self._worth.get(candidate.state.pool, Worth(0.0, 0.0))
                self._worth[candidate.state.pool] = Worth(
                    held.price + (candidate.price or 0.0), held.disruption + candidate.cost
                )
        return self._worth.get(pool, Worth(0.0, 0.0))


def price_of(candidates: Sequence[Candidate]) -> float:
    """What nodes cost together, as far as that is known."""
    return sum(candidate.price or 0.0 for candidate in candidates)


def _with_node_labels(state: StateNode) -> NodeClaim | None:
    """A claim that also has what only its node says of itself: a label that one of them has is no label missing."""
    if state.claim is None or state.node is None:
        return state.claim
    labels = {**state.node.metadata.labels, **state.claim.metadata.labels}
    return replace(state.claim, metadata=replace(state.claim.metadata, labels=labels))
