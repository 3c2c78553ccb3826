"""A cluster as the arrays that a search and a bound work on, and the way back from their numbers to nodes and pods."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.codes import EXPECTED, PRESENT, GroupKind
from karpool.cluster.pod_classes import NO_CLASS
from karpool.cluster.topology import HOST_KEY
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.costs import eviction_weight
from karpool.disruption.command import Cause
from karpool.disruption.context import DecisionContext
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.kinds import KindTable, kinds_of
from karpool.disruption.policies import HAIR
from karpool.model.node_group import NodeGroup
from karpool.optimization.problem import (
    APART,
    SPREAD,
    TOGETHER,
    FleetProblem,
    Groups,
    HostRules,
    Lists,
    Nodes,
    Pools,
    SpreadRules,
)
from karpool.wire.quantity import ZERO

_MODES: Final = {
    GroupKind.SPREAD: SPREAD,
    GroupKind.AFFINITY: TOGETHER,
    GroupKind.ANTI: APART,
    GroupKind.INVERSE: APART,
}
_CORE: Final = 0.03
_GIBIBYTE: Final = 0.004
"""About what clouds ask for a core and for a GiB, in $/h."""
GroupKey = tuple[int, int, bool, float]
"""Class, labels, whether exempt from closed windows, and the weight of an eviction."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """A problem, and what its numbers mean in the snapshot that it was made from."""

    problem: FleetProblem
    rows: Array
    """By node of the problem: its row in the snapshot."""
    names: tuple[str, ...]
    """By node: its name."""
    group_of: dict[int, int]
    """By row of a pod that may move: its group."""
    kinds: KindTable
    columns: Array
    """By resource of the problem: its column in the snapshot."""
    unions: tuple[frozenset[int], ...]
    """Sets of signatures that are alternatives: what one of them suits, a further row of what signatures suit does."""
    groups: tuple[GroupKey, ...]
    """By group: what its pods have in common."""


def fleet_of(decision_pass: DecisionPass, *, lifted: Collection[int] = (), by_size: bool = False) -> Fleet:
    """The cluster of a pass as a problem; `lifted`: rows of nodes that may go as if nothing kept them.

    `by_size`: where no price at all is known, nodes count by their size, so that a search finds which to do without.
    """
    return _Builder(decision_pass, lifted, by_size=by_size).build()


class _Builder:
    def __init__(self, decision_pass: DecisionPass, lifted: Collection[int], *, by_size: bool) -> None:
        self._by_size = by_size
        self._pass = decision_pass
        self._lifted = lifted
        self._context: DecisionContext = decision_pass.context
        self._snapshot = self._context.snapshot
        self._numbers: dict[GroupKey, int] = {}
        self._group_of: dict[int, int] = {}
        self._unions: dict[frozenset[int], int] = {}

    def build(self) -> Fleet:
        context, snapshot = self._context, self._snapshot
        context.engine.refresh()
        rows = np.array(context.rows(), dtype=np.int64)
        nodes = context.candidates(rows.tolist())
        prices = self._prices(nodes)
        priced = np.array([price is not None for price in prices], dtype=np.bool_)
        movable = self._movable(rows) & priced
        for node, may_go in zip(nodes, movable.tolist(), strict=True):
            if may_go:
                self._number_pods(node)
        classes = np.array([key[0] for key in self._numbers], dtype=np.int64)
        requests = snapshot.classes.requests[classes][:, : len(snapshot.resources)]
        columns = np.flatnonzero(requests.any(axis=0)) if len(classes) else np.array([0])
        kinds = kinds_of(context.engine, snapshot.classes.signatures, columns)
        groups = self._groups(classes, requests[:, columns])
        unions = tuple(self._unions)
        problem = FleetProblem(
            groups=groups,
            nodes=self._nodes(rows, nodes, prices, movable=movable, columns=columns, modelled=groups.modelled),
            kinds=kinds.kinds,
            hosts=self._hosts(rows),
            spreads=self._spreads([node for node, may_go in zip(nodes, movable.tolist(), strict=True) if may_go]),
            pools=self._pools(columns),
            suits_shape=with_unions(snapshot.shapes.suits[: len(snapshot.classes.signatures)], unions),
            suits_kind=with_unions(kinds.suits, unions),
        )
        names = tuple(node.name for node in nodes)
        return Fleet(problem, rows, names, self._group_of, kinds, columns, unions, tuple(self._numbers))

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _movable(self, rows: Array) -> Array:
        """Which nodes some method may remove, now or after other commands."""
        context, decision_pass = self._context, self._pass
        # A budget that is used up now may let nodes go when the pool has grown; one of 0 never does.
        spent = {
            cause: {name for name, pool in context.pools.items() if context.allowance(pool, cause).allowed <= 0}
            for cause in Cause
        }
        movable = {
            node.row for node in decision_pass.consolidatable() if node.pool_name not in spent[Cause.UNDERUTILIZED]
        }
        movable |= {
            node.row for node in decision_pass.candidates() if node.empty and node.pool_name not in spent[Cause.EMPTY]
        }
        movable.update(self._lifted)
        movable |= {node.row for node, _ in decision_pass.drifted() if node.pool_name not in spent[Cause.DRIFTED]}
        # Repair asks for less than other methods, and its budget may be another.
        movable |= {node.candidate.row for node in decision_pass.repairs() if node.diagnosis is not None}
        # Their pool launches another in the place of each.
        movable -= {
            node.row for node in context.candidates(sorted(movable)) if node.pool is not None and node.pool.static
        }
        moving: Array = np.isin(rows, sorted(movable))
        return moving

    def _prices(self, nodes: list[Candidate]) -> list[float | None]:
        """What nodes cost; where nobody knows any price, and no pool gets a node, about what their size would."""
        prices = [node.price for node in nodes]
        if not self._by_size or any(price is not None for price in prices) or self._grows():
            return prices
        return [_price_of_size(node) for node in nodes]

    def _grows(self) -> bool:
        """Whether a pool may get a node, which could be compared with those of today by its price alone."""
        pools = self._context.pools.values()
        return any(not isinstance(pool, NodeGroup) or not pool.fixed for pool in pools)

    def _nodes(
        self,
        rows: Array,
        nodes: list[Candidate],
        prices: list[float | None],
        *,
        movable: Array,
        columns: Array,
        modelled: Array,
    ) -> Nodes:
        context, snapshot = self._context, self._snapshot
        table = snapshot.nodes
        consolidatable = {node.row for node in self._pass.consolidatable()}
        spent = self._pass.exhausted_pools(Cause.UNDERUTILIZED)
        counts: list[Counter[int]] = [
            Counter(self._group_of[pod] for pod in self._movers(node)) if may_go else Counter()
            for node, may_go in zip(nodes, movable.tolist(), strict=True)
        ]
        searchable = [
            may_go
            and node.row in consolidatable
            and node.pool_name not in spent
            and all(modelled[group] for group in groups)
            for node, may_go, groups in zip(nodes, movable.tolist(), counts, strict=True)
        ]
        templates = {template.name: at for at, template in enumerate(context.engine.tables.pools.templates)}
        types = {entry.name: at for at, entry in enumerate(context.catalog.types)}
        free = table.free[rows][:, : len(snapshot.resources)]
        present = np.isin(rows, table.order) & np.isin(table.live[rows], (EXPECTED, PRESENT))
        # Room on a node that is still coming counts: pods wait for it instead of moving to a new node, and then again.
        open_ = present & (free >= 0).all(axis=1)
        ordered = [sorted(groups.items()) for groups in counts]
        return Nodes(
            price=np.array([price or 0.0 for price in prices], dtype=np.float64),
            movable=movable,
            searchable=np.array(searchable, dtype=np.bool_),
            takes=np.where(open_, np.where(context.closed[rows] != 0, 1, 2), 0).astype(np.int8),
            free=np.ascontiguousarray(free[:, columns]),
            shape=table.shape[rows].astype(np.int32),
            domain=np.ascontiguousarray(table.domain[rows][:, : len(snapshot.topology.domains.values)]),
            pool=np.array([templates.get(node.pool_name, -1) for node in nodes], dtype=np.int32),
            capacity=np.array(
                [snapshot.resources.room(node.state.capacity)[columns] for node in nodes], dtype=np.int64
            ).reshape(len(nodes), len(columns)),
            spot=np.array([node.spot for node in nodes], dtype=np.bool_),
            machine=np.array(
                [-1 if node.entry is None else types.get(node.entry.name, -1) for node in nodes], dtype=np.int32
            ),
            pods=_lists([[group for group, _ in entries] for entries in ordered]),
            pod_count=np.array([count for entries in ordered for _, count in entries], dtype=np.int32),
        )

    # -- pods ----------------------------------------------------------------------------------------------------

    def _movers(self, node: Candidate) -> Sequence[int]:
        """The pods of a node that need another place when it goes."""
        return node.pods if node.row in self._lifted else self._context.movers(node)

    def _number_pods(self, node: Candidate) -> None:
        pods, context = self._snapshot.pods, self._context
        told = context.settings.by_deletion_cost
        for row in self._movers(node):
            pod = pods.get(row)
            weight = 0.0 if context.expected(pod) else eviction_weight(pod, by_deletion_cost=told)
            key = (int(pods.class_of[row]), int(pods.labels_of[row]), context.exempt(pod), weight)
            self._group_of[row] = self._numbers.setdefault(key, len(self._numbers))

    def _groups(self, classes: Array, requests: Array) -> Groups:
        table = self._snapshot.classes
        loose = [frozenset(table.signature[self._levels(number)].tolist()) for number in classes.tolist()]
        return Groups(
            requests=np.ascontiguousarray(requests, dtype=np.int64),
            signature=table.signature[classes].astype(np.int32),
            loose_signature=np.array([self._any_of(signatures) for signatures in loose], dtype=np.int32),
            weight=np.array([key[3] for key in self._numbers], dtype=np.float64),
            exempt=np.array([key[2] for key in self._numbers], dtype=np.bool_),
            modelled=np.array([self._modelled(key[0], key[1]) for key in self._numbers], dtype=np.bool_),
        )

    def _levels(self, number: int) -> list[int]:
        """A class, and those that it becomes as preferences and alternatives are given up."""
        levels = [number]
        while (number := int(self._snapshot.classes.next[number])) != NO_CLASS:
            levels.append(number)
        return levels

    def _any_of(self, signatures: frozenset[int]) -> int:
        """The signature that takes whatever one of several does: one of them, or a further one."""
        if len(signatures) == 1:
            return next(iter(signatures))
        return len(self._snapshot.classes.signatures) + self._unions.setdefault(signatures, len(self._unions))

    def _modelled(self, number: int, labels: int) -> bool:
        """Whether arrays say all about where pods may go: no host affinity, ports, devices, shared volumes, names."""
        classes, topology = self._snapshot.classes, self._snapshot.topology
        if classes.refused[number] or classes.ports_id[number] or len(classes.shared_rows.row(number)):
            return False
        if classes.constraints[number].devices:
            return False
        if self._context.engine.tables.host[classes.signature[number]] >= 0:
            return False
        for group in self._rules(number, labels):
            if topology.key[group] == HOST_KEY and topology.kind[group] == GroupKind.AFFINITY:
                return False
        return True

    def _rules(self, number: int, labels: int) -> list[int]:
        """The groups that say where pods may go: their own rules, and those of pods that keep them off."""
        return [*self._snapshot.classes.owned.row(number), *self._snapshot.topology.kept_off_by.row(labels)]

    def _required(self, number: int, labels: int) -> set[int]:
        """The groups that hold whatever preferences are given up."""
        levels = [set(self._snapshot.classes.owned.row(level)) for level in self._levels(number)]
        return set.intersection(*levels).union(self._snapshot.topology.kept_off_by.row(labels))

    def _counting(self, number: int, labels: int) -> list[int]:
        """The groups in which pods count."""
        return [*self._snapshot.topology.counted_by.row(labels), *self._snapshot.classes.declared.row(number)]

    def _hosts(self, rows: Array) -> HostRules:
        topology = self._snapshot.topology
        caps: list[list[int]] = []
        most: list[int] = []
        required: list[bool] = []
        counts: list[list[int]] = []
        numbers: dict[int, int] = {}
        for class_, labels, _, _ in self._numbers:
            counted = set(topology.counted_by.row(labels))
            always = self._required(class_, labels)
            caps.append([])
            for group in self._rules(class_, labels):
                if topology.key[group] == HOST_KEY and topology.kind[group] != GroupKind.AFFINITY:
                    spread = topology.kind[group] == GroupKind.SPREAD
                    caps[-1].append(numbers.setdefault(int(topology.row[group]), len(numbers)))
                    most.append(int(topology.skew[group]) - (group in counted) if spread else 0)
                    required.append(group in always)
        for class_, labels, _, _ in self._numbers:
            by_host = [int(topology.row[g]) for g in self._counting(class_, labels) if topology.key[g] == HOST_KEY]
            counts.append([numbers[row] for row in by_host if row in numbers])
        present = topology.by_host[np.array(list(numbers), dtype=np.int64)][:, rows]
        return HostRules(
            caps=_lists(caps),
            most=np.array(most, dtype=np.int32),
            required=np.array(required, dtype=np.bool_),
            counts=_lists(counts),
            present=present.astype(np.int32),
        )

    def _spreads(self, movable: list[Candidate]) -> SpreadRules:
        topology, tables = self._snapshot.topology, self._context.engine.tables
        rules: dict[int, int] = {}
        owned = [
            [
                rules.setdefault(group, len(rules))
                for group in self._rules(class_, labels)
                if topology.key[group] != HOST_KEY
            ]
            for class_, labels, _, _ in self._numbers
        ]
        counts = [
            [rules[group] for group in self._counting(class_, labels) if group in rules]
            for class_, labels, _, _ in self._numbers
        ]
        groups = np.array(list(rules), dtype=np.int64)
        width = min(topology.by_domain.shape[1], tables.pool_known.shape[1])
        present = topology.by_domain[groups][:, :width].astype(np.int32)
        seen = topology.nodes_seen[topology.filter[groups], topology.key[groups]][:, :width] > 0
        known = (tables.pool_known[groups][:, :width] != 0) | (present > 0) | seen
        return SpreadRules(
            owned=_lists(owned),
            counts=_lists(counts),
            key=topology.key[groups].astype(np.int32),
            mode=np.array([_MODES[GroupKind(int(kind))] for kind in topology.kind[groups]], dtype=np.int8),
            skew=topology.skew[groups].astype(np.int32),
            least_domains=topology.min_domains[groups].astype(np.int32),
            present=np.ascontiguousarray(present),
            eligible=known & (tables.group_admits[groups][:, :width] != 0),
            steady=self._steady(groups, movable) & (~known | (tables.pool_known[groups][:, :width] != 0)).all(axis=1),
        )

    def _steady(self, groups: Array, movable: list[Candidate]) -> Array:
        """(rules,) whether the pods that count and may move all obey the rule, and none of them is lost or not seen."""
        snapshot, topology = self._snapshot, self._snapshot.topology
        pods, shapes = snapshot.pods, snapshot.shapes
        if self._context.engine.tables.pools.types.reserved:  # a zone may be gone when its reservation is used up
            return np.zeros(len(groups), dtype=np.bool_)
        unsteady: set[int] = set()
        for class_, labels, _, _ in self._numbers:
            unsteady.update(set(self._counting(class_, labels)) - self._required(class_, labels))
        for node in movable:
            moving = set(self._movers(node))
            shape, domain = int(snapshot.nodes.shape[node.row]), snapshot.nodes.domain[node.row]
            lost = [row for row in snapshot.pods_on(node.row) if row not in moving or not pods.counted[row]]
            kinds = {(int(pods.class_of[row]), int(pods.labels_of[row])) for row in lost}
            unsteady.update(group for kind in kinds for group in self._counting(*kind))
            kinds = {(int(pods.class_of[row]), int(pods.labels_of[row])) for row in moving}
            for group in {group for kind in kinds for group in self._counting(*kind)}:
                if domain[topology.key[group]] < 0 or not shapes.seen_by[topology.filter[group], shape]:
                    unsteady.add(group)
        return np.array([group not in unsteady for group in groups.tolist()], dtype=np.bool_)

    def _pools(self, columns: Array) -> Pools:
        context, engine = self._context, self._context.engine
        templates = engine.tables.pools.templates
        allowance = [context.allowance(template.pool, Cause.UNDERUTILIZED).remaining for template in templates]
        return Pools(
            allowance=np.array(allowance, dtype=np.int64),
            left=np.where(engine.limits >= 2**61, np.inf, engine.limits.astype(np.float64))[:, columns],
        )


def with_unions(suits: Array, unions: Sequence[frozenset[int]]) -> Array:
    """What signatures suit, and below it what one of several suits."""
    further = [suits[sorted(signatures)].max(axis=0) for signatures in unions]
    added = np.array(further, dtype=suits.dtype).reshape(len(further), suits.shape[1])
    return np.ascontiguousarray(np.concatenate((suits, added)))


def _lists(rows: list[list[int]]) -> Lists:
    start = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=start[1:]) if rows else None
    return Lists(start, np.array([item for row in rows for item in row], dtype=np.int32))


def _price_of_size(node: Candidate) -> float:
    """About what a machine of a node's size costs in $/h; that of a node that does not say its size is small."""
    capacity = node.state.capacity
    cores, memory = capacity.get("cpu", ZERO).milli / 1000, capacity.get("memory", ZERO).units / 2**30
    return max(HAIR, _CORE * cores + _GIBIBYTE * memory)
