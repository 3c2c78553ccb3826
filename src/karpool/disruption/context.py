"""One pass's view of a cluster: nodes with their pods, prices and costs, and the room that waiting pods expect.

A context is made for one moment and holds facts. What may be kept for the next one is in the `Memo`, whose entries
carry the number of the last change of their node, so that nobody has to be told what to forget.

While a context is open, pods that expect room have it: `ExpectedPods`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

import numpy as np

from karpool.catalog.instance_types import Catalog
from karpool.cluster.arrays import Array
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.brakes.ledger import evictions_by_namespace
from karpool.disruption.budgets import UNLIMITED, Allowance, allowed
from karpool.disruption.candidates.blocking_pods import BlockingPods
from karpool.disruption.candidates.candidate import Candidate, price_of
from karpool.disruption.candidates.costs import eviction_cost, reschedule_cost, savings_ratio
from karpool.disruption.candidates.drift_detection import Drift
from karpool.disruption.candidates.group_rules import group_allowance
from karpool.disruption.candidates.node_facts import PoolCensus
from karpool.disruption.candidates.pdbs import PdbLimits, currently_reschedulable
from karpool.disruption.command import Cause
from karpool.disruption.expected_pods import ExpectedPods
from karpool.disruption.memo import Memo
from karpool.disruption.policies import HAIR, Worth
from karpool.disruption.policies_in_force import Policies
from karpool.disruption.repair.breaker import PoolHealth
from karpool.disruption.repair.diagnosis import UnhealthyCondition
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import ARCH
from karpool.model.node_group import NodeGroup
from karpool.model.nodepool import NodePool
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.packing.candidate_pods import CandidatePods
from karpool.packing.engine import Engine
from karpool.packing.kernels.scan import EXEMPT, PATIENT


class DecisionContext:
    """A snapshot at a moment, under policies; enter it to give waiting pods their room."""

    def __init__(self, engine: Engine, policies: Policies, now: datetime, memo: Memo | None = None) -> None:
        self.engine = engine
        self.policies = policies
        self.now = now
        if memo is None or not memo.fits(engine, policies):
            before, memo = memo, Memo(engine, policies)
            memo.living_search = None if before is None else before.living_search
        self.memo = memo
        self._room = ExpectedPods(policies.destinations)
        groups = {name: pool for name, pool in policies.pools.items() if isinstance(pool, NodeGroup)}
        self._blocks = BlockingPods(
            engine.snapshot,
            policies.pdbs,
            now,
            self._room.__contains__,
            groups,
            closed_labels=memo.closed_labels,
        )
        self._version = -1
        self._forget()

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as columns."""
        return self.engine.snapshot

    @property
    def catalog(self) -> Catalog:
        """The instance types that can be had."""
        return self.engine.catalog

    @property
    def pools(self) -> Mapping[str, NodePool]:
        """NodePools by name."""
        return self.policies.pools

    @property
    def pdbs(self) -> PdbLimits:
        """PodDisruptionBudgets."""
        return self.policies.pdbs

    @property
    def settings(self) -> DisruptionSettings:
        """What the user chose."""
        return self.policies.settings

    def replace_catalog(self, catalog: Catalog) -> None:
        """Go on with another catalogue, because reservations were used up."""
        self.engine = Engine(self.snapshot, catalog, self.engine.options)
        self.memo = Memo(self.engine, self.policies)
        self._version = -1

    # -- pods that expect room -----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            return self.open()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pending(self) -> set[str]:
        """Keys of pods that wait and are bound to the node where they would find room."""
        return self._room.pending

    @property
    def leaving(self) -> set[str]:
        """Keys of pods of nodes that are being removed, bound to the node where they would find room."""
        return self._room.leaving

    @property
    def unplaced(self) -> list[int]:
        """Rows of pods that wait and find no room."""
        return self._room.unplaced

    @property
    def held_back(self) -> Mapping[int, str]:
        """By row of a pod that finds no room: why its gang does not find room as a whole, if it belongs to one."""
        return self._room.held_back

    def open(self) -> Self:
        """Bind pods that expect room to the nodes where they would find it."""
        pods = self.snapshot.pods
        unbound = np.flatnonzero(pods.node_of[: len(pods.objects)] < 0).tolist()
        waiting = [row for row in unbound if (pod := pods.objects[row]) is not None and pod.waits_for_node]
        leaving = [row for node in self._nodes_being_removed() for row in sorted(self.snapshot.pods_on(node))]
        moving = self.memo.movable.among(leaving, pods, self.pdbs, self.now)
        self.bind_waiting(waiting, moving)
        return self

    def close(self) -> None:
        """Put every pod back where it was."""
        self._room.release(self.snapshot)

    def _nodes_being_removed(self) -> list[int]:
        rows = self.snapshot.nodes.rows
        self.memo.nodes.refresh(self.now)
        in_command = {rows[name] for name in self.policies.in_command if name in rows}
        return sorted(in_command.union(self.memo.nodes.deleting()))

    def bind_waiting(self, waiting: list[int], moving: Collection[int] = ()) -> None:
        """Bind pods to existing nodes with room for them; those that wait and find none are unplaced."""
        self._room.bind(self.engine, waiting, moving)

    def expected(self, pod: Pod) -> bool:
        """Whether a pod is not on its node yet: it is only expected there."""
        return pod in self._room

    # -- facts that hold until the snapshot changes --------------------------------------------------------------

    def _forget(self) -> None:
        self._closed: Array | None = None
        self._unready: Array | None = None
        self._worth: dict[str, Worth] | None = None
        self._census: dict[str, PoolCensus] | None = None
        self._health: dict[str, PoolHealth] | None = None
        self._allowances: dict[tuple[str, Cause], Allowance] = {}
        self._blocks.forget()
        self._sealed: Mapping[int, Reason] | None = None

    def _catch_up(self) -> None:
        """Take note of changes of the snapshot; within a pass there are none, between the steps of a plan there are."""
        self.snapshot.reseal()
        if self._version != self.snapshot.version:
            self._version = self.snapshot.version
            self.memo.nodes.refresh(self.now)
            self._forget()

    @property
    def closed(self) -> Array:
        """Which nodes take no pods that consolidation would move there now."""
        self._catch_up()
        if self._closed is None:
            self._closed = self.memo.nodes.closed(self.now)
        return self._closed

    @property
    def unready(self) -> Array:
        """Which nodes are not initialized yet."""
        self._catch_up()
        if self._unready is None:
            self._unready = self.memo.nodes.unready()
        return self._unready

    def next_opening(self) -> datetime | None:
        """When the next node whose window is closed may take part again, or one is no longer tolerated as it is."""
        self._catch_up()
        nodes = self.memo.nodes
        due = [finding.due for row in nodes.sick() for finding in nodes.findings(row) if finding.due > self.now]
        return min((moment for moment in (nodes.next_opening(self.now), *due) if moment is not None), default=None)

    # -- nodes ---------------------------------------------------------------------------------------------------

    def rows(self) -> list[int]:
        """The rows of all nodes, by name."""
        return [row for _, row in sorted(self.snapshot.nodes.rows.items())]

    def candidate(self, row: int) -> Candidate:
        """A node as decisions see it."""
        return self.candidates((row,))[0]

    def candidates(self, rows: Sequence[int]) -> list[Candidate]:
        """Nodes as decisions see them; made anew only where the node or its pods changed."""
        known = self.memo.candidates
        stamps = self.snapshot.nodes.changed[list(rows)].tolist()
        found = []
        for row, stamp in zip(rows, stamps, strict=True):
            entry = known.get(row)
            if entry is None or entry[0] != stamp:
                entry = known[row] = (stamp, self._candidate(row))
            found.append(entry[1])
        return found

    def _candidate(self, row: int) -> Candidate:
        node, pods = self.memo.nodes.of(row), self.snapshot.pods
        here = [(at, pods.get(at)) for at in sorted(self.snapshot.pods_on(row))]
        told = self.settings.by_deletion_cost
        costs = [0.0 if pod.is_headroom else eviction_cost(pod, by_deletion_cost=told) for _, pod in here]
        moving = [(at, cost) for (at, pod), cost in zip(here, costs, strict=True) if pod.reschedulable]
        cost = reschedule_cost([cost for _, cost in moving])
        return Candidate(
            row=row,
            name=node.name,
            state=node.state,
            pool=node.pool,
            pool_name=node.pool_name,
            entry=node.entry,
            price=node.price,
            pods=tuple([at for at, _ in moving]),
            cost=cost,
            eviction_cost=sum(costs),
            by_ratio=(-savings_ratio(node.price, cost), node.name),
            arch=node.state.labels.get(ARCH, ""),
        )

    def movers(self, candidate: Candidate) -> list[int]:
        """The pods of a node that are given another place when it goes; the others may not be moved yet."""
        pods = self.snapshot.pods
        blocked = {pod.key for pod, _ in self.blocking_pods(candidate.row)}
        if not blocked:
            return list(candidate.pods)
        return [
            row
            for row in candidate.pods
            if (pod := pods.get(row)).key not in blocked or currently_reschedulable(pod, self.pdbs, self.now)
        ]

    def exempt(self, pod: Pod) -> bool:
        """Whether a pod may go to a closed node: it has not started yet, or its node goes anyway."""
        return pod.status.phase == "Pending" or self.expected(pod)

    # -- who may be disrupted ------------------------------------------------------------------------------------

    def eligible_rows(self, *, open_only: bool = False, eventual: bool = False) -> list[int]:
        """The rows of nodes that no rule keeps from being disrupted, as `candidates.refusal` says it one by one.

        `open_only`: without nodes whose window is closed, which only drift takes. `eventual`: only the nodes on which
        pods block, but have to give way when the termination grace period is over.
        """
        self._catch_up()
        rows, permitted = self.snapshot.nodes.rows, self.memo.nodes.permitted()
        taken = self.policies.in_command | self.policies.nominated
        permitted[[rows[name] for name in taken if name in rows]] = False
        permitted[self._stopped_rows()] = False
        permitted[list(self._seals())] = False
        permitted[self._rows_over_rate()] = False
        blocked = np.zeros_like(permitted)
        blocked[list(self._blocks.by_node())] = True
        permitted &= (blocked & (self.memo.nodes.limited() != 0)) if eventual else ~blocked
        if open_only:
            permitted &= self.memo.nodes.settled(self.now)
        return np.flatnonzero(permitted).tolist()

    def _stopped_rows(self) -> list[int]:
        """Rows of nodes that a brake keeps."""
        nodes, stops = self.snapshot.nodes, self.policies.stops
        if not stops:
            return []
        held = [(row, stop) for name, row in nodes.rows.items() if (stop := stops.of(nodes.get(row).pool, name))]
        return [row for row, stop in held if not stop.spares_empty or self._stopped_though_empty(row)]

    def _stopped_though_empty(self, row: int) -> bool:
        """Whether what stops a node does so though others like it, which leave nothing behind, may go."""
        node = self.candidate(row)
        return self.policies.stops.of(node.pool_name, node.name, empty=node.leaves_nothing) is not None

    def seal(self, row: int) -> Reason | None:
        """What bears on a node and cannot be read, if anything."""
        self._catch_up()
        return self._seals().get(row)

    def _seals(self) -> Mapping[int, Reason]:
        if self._sealed is None:
            self._sealed = {**self._covered_by_unreadable_pdbs(), **self.snapshot.seals}
        return self._sealed

    def _covered_by_unreadable_pdbs(self) -> dict[int, Reason]:
        """By row: why a node with pods that a PodDisruptionBudget may protect is kept even by drift."""
        pods, covered = self.snapshot.pods, dict[int, Reason]()
        if not self.pdbs.unreadable:
            return covered
        for row in np.flatnonzero(pods.node_of[: len(pods.objects)] >= 0).tolist():
            pod = pods.get(row)
            reason = self.pdbs.unreadable_over(pod) if pod.active and not pod.is_mirror else None
            if reason is not None:
                covered.setdefault(int(pods.node_of[row]), reason)
        return covered

    def _rows_over_rate(self) -> list[int]:
        """Rows of nodes that have more pods than rates let go now."""
        return (
            [row for row in self.snapshot.nodes.rows.values() if self.over_rate((row,))] if self.policies.rates else []
        )

    def evictions(self, rows: Iterable[int]) -> dict[str, int]:
        """How many pods are evicted when nodes go, by namespace."""
        pods = self.snapshot.pods
        here = (pods.get(at) for row in rows for at in self.snapshot.pods_on(row))
        return evictions_by_namespace(pod for pod in here if not self.expected(pod))

    def over_rate(self, rows: Collection[int]) -> Reason | None:
        """Why rates do not let nodes go together, if they do not."""
        rates = self.policies.rates
        return rates.refusal(len(rows), self.evictions(rows)) if rates else None

    def blocking_pods(self, row: int) -> list[tuple[Pod, Reason]]:
        """The pods on a node that must not be disrupted now, and why; those only expected there do not block."""
        self._catch_up()
        return self._blocks.by_node().get(row, [])

    def drifted_rows(self) -> Array:
        """Which nodes have drifted from their pools."""
        self._catch_up()
        drifted: Array = self.memo.nodes.drifted() != 0
        return drifted

    def drift(self, candidate: Candidate) -> Drift | None:
        """How a node has drifted from its pool, if it has."""
        self._catch_up()
        return self.memo.nodes.drift(candidate.row)

    # -- unhealthy nodes -----------------------------------------------------------------------------------------

    def sick(self) -> list[Candidate]:
        """Nodes with a condition that repair policies name, by name."""
        self._catch_up()
        return sorted(self.candidates(self.memo.nodes.sick()), key=lambda node: node.name)

    def findings(self, candidate: Candidate) -> tuple[UnhealthyCondition, ...]:
        """What repair policies say of a node."""
        self._catch_up()
        return self.memo.nodes.findings(candidate.row)

    def health(self, pool: str) -> PoolHealth:
        """How much of a pool is unhealthy."""
        self._catch_up()
        if self._health is None:
            self._health = self.memo.nodes.health()
        return self._health.get(pool, PoolHealth())

    # -- scans ---------------------------------------------------------------------------------------------------

    def candidate_pods(self, candidates: Sequence[Candidate]) -> CandidatePods:
        """The pods that would move from nodes, as a scan reads them."""
        pods, memo = self.snapshot.pods, self.memo
        for candidate in candidates:
            if memo.enlisted.get(candidate.row) is not candidate:
                memo.enlisted[candidate.row] = candidate
                rows = np.array(candidate.pods, dtype=np.int32)
                rows = rows[pods.ranking.order(rows)]
                flags = [self._flags(pods.get(row)) for row in rows.tolist()]
                memo.candidate_pods.put(candidate.row, rows, flags, self.ceiling((candidate,)))
        return memo.candidate_pods

    def _flags(self, pod: Pod) -> int:
        if self.expected(pod):
            return EXEMPT | PATIENT
        return EXEMPT if pod.status.phase == "Pending" else 0

    def ceiling(self, candidates: Sequence[Candidate]) -> float:
        """What new nodes in the place of nodes have to stay below; infinite where that is not all there is to it."""
        if self.settings.spot_to_spot and all(node.spot for node in candidates):
            return np.inf
        return price_of(candidates) - HAIR

    # -- pools ---------------------------------------------------------------------------------------------------

    def allowance(self, pool: NodePool, cause: Cause) -> Allowance:
        """How many nodes of a pool may go for a cause now, as its budgets and rates have it."""
        allowance, most = self.budgeted(pool, cause), self.policies.rates.most_nodes
        if most is None or most >= allowance.remaining:
            return allowance
        return Allowance(allowance.allowed, most, self.policies.rates.refusal(most + 1, {}))

    def budgeted(self, pool: NodePool, cause: Cause) -> Allowance:
        """How many nodes of a pool its budgets let go for a cause now."""
        counts = self.pool_census(pool.name)
        if isinstance(pool, NodeGroup):
            return group_allowance(pool, counts.nodes, counts.leaving)
        if self.settings.ignore_budgets:
            return Allowance(UNLIMITED, UNLIMITED)
        key = (pool.name, cause)
        if key not in self._allowances:
            annotated = self.settings.annotated_budgets
            # A node that is not ready is what repair is for, so it does not stand in the way of repair.
            busy = counts.leaving if cause is Cause.UNHEALTHY else counts.busy
            later = self.policies.uncertainty
            self._allowances[key] = allowed(
                pool, cause, counts.nodes, busy, self.now, uncertainty=later, annotated=annotated
            )
        return self._allowances[key]

    def pool_size(self, pool: str) -> int:
        """How many nodes of a pool budgets count."""
        return self.pool_census(pool).nodes

    def pool_census(self, pool: str) -> PoolCensus:
        """How many nodes of a pool budgets count, and how many of them are busy."""
        self._catch_up()
        if self._census is None:
            self._census = self.memo.nodes.census(self.policies.in_command)
        return self._census.get(pool, PoolCensus())

    def worth(self, pool: str) -> Worth:
        """What all nodes of a pool cost, in money and in disruption."""
        self._catch_up()
        if self._worth is None:
            self._worth = {}
            for row in self.snapshot.nodes.rows.values():
                node = self.candidate(row)
                known = self._worth.get(node.pool_name, Worth(0.0, 0.0))
                self._worth[node.pool_name] = Worth(known.price + (node.price or 0.0), known.disruption + node.cost)
        return self._worth.get(pool, Worth(0.0, 0.0))
