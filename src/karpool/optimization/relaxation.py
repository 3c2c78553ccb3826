"""The linear programme of a fleet: how many machines of each kind, and what is on them, with everything divisible.

Rows say that every pod has a place, and that no machine holds more than its room. Pods are taken together in classes,
nodes in clusters, so that it stays small: whatever the duals lose by that, the proof made of them still holds.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.classes import Classes
from karpool.optimization.items import Items, kinds_as_machines, nodes_as_machines
from karpool.optimization.problem import FleetProblem
from karpool.optimization.programme import Programme, Solved
from karpool.optimization.proof import PodWorth

_MOST_CLUSTERS: Final = 150
_CLUSTER_STEPS: Final = (1.3, 1.6, 2.2, 4.0, 16.0, np.inf)
_ROUNDS: Final = 12
_SLACK: Final = 1e-6
_WORTH_A_ROUND: Final = 1e-4
_TOLERANCE: Final = 1e-6
"""To what part of a cost the solver is exact."""


@dataclass(frozen=True, slots=True)
class Duals:
    """What the programme makes of a fleet."""

    worth: PodWorth
    kind_rates: Array
    """(kinds, resources) what kinds charge for their room."""
    node_rates: Array
    """(nodes, resources) what nodes charge for their free room."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Numbers of rows; those of classes come first."""

    kinds: Array
    """(kinds, resources)"""
    clusters: Array
    """(clusters, resources)"""
    domains: Array
    """(classes, domains), -1 for classes that are not spread."""
    count: int

    @classmethod
    def of(cls, classes: Classes, kinds: int, clusters: int, width: int) -> "_Rows":
        first = len(classes.count)
        by_kind = first + np.arange(kinds * width).reshape(kinds, width)
        by_cluster = first + kinds * width + np.arange(clusters * width).reshape(clusters, width)
        domains = np.full(classes.least.shape, -1, dtype=np.int64)
        spread = classes.key >= 0
        first += (kinds + clusters) * width
        domains[spread] = first + np.arange(domains[spread].size).reshape(domains[spread].shape)
        return cls(by_kind, by_cluster, domains, first + domains[spread].size)

    def counting(self, class_: Array, domain: Array) -> Array:
        """The rows in which pods of classes in domains count; -1 where there is none."""
        if not self.domains.size:
            return np.full(domain.shape, -1, dtype=np.int64)
        return np.where(domain >= 0, self.domains[class_, domain], -1)


class Relaxation:
    """The programme of one problem."""

    def __init__(self, problem: FleetProblem, items: Items) -> None:
        self.problem, self.items = problem, items
        self.kinds = kinds_as_machines(problem, items)
        self.nodes = nodes_as_machines(problem, items)
        self._classes = Classes.of(items)
        self._unit = np.maximum(1.0, items.requests.max(axis=0)).astype(np.float64)
        self._keys = np.unique(items.spreading.key)
        self._chosen = self._undominated()
        self._stand_in = self._dominating()
        self._listed = np.flatnonzero(~problem.nodes.movable | (self._stand_in < 0))
        alike = np.column_stack((problem.nodes.shape, problem.nodes.takes > 0, self.nodes.domain[:, self._keys]))
        self._cluster = _clustered(self.nodes.room[self._listed], alike[self._listed])
        self._clusters = int(self._cluster.max(initial=-1)) + 1
        self._solved: Programme | None = None
        self._rows = _Rows.of(self._classes, len(self._chosen), self._clusters, len(self._unit))

    def _undominated(self) -> Array:
        """Kinds without those that another one makes needless; of equals the first stays."""
        price, most, kinds = self.problem.kinds.price, self.problem.kinds.most, self.kinds
        kept: list[int] = []
        order = np.lexsort((np.arange(len(price)), -kinds.most.sum(axis=1), -kinds.room.sum(axis=1), -most, price))
        for kind in order.tolist():
            if not self._dominates(np.array(kept, dtype=np.int64), kind).any():
                kept.append(kind)
        return np.array(sorted(kept), dtype=np.int64)

    def _dominates(self, others: Array, kind: int) -> Array:
        """Which of other kinds are no dearer, no smaller and no choosier, in the same domains, and never run out."""
        price, most, kinds = self.problem.kinds.price, self.problem.kinds.most, self.kinds
        larger: Array = (kinds.room[others] >= kinds.room[kind]).all(axis=1)
        kinder: Array = (kinds.most[others] >= kinds.most[kind]).all(axis=1)
        there: Array = (kinds.domain[others][:, self._keys] == kinds.domain[kind, self._keys]).all(axis=1)
        found: Array = larger & kinder & there & (price[others] <= price[kind]) & np.isinf(most[others])
        return found

    def _dominating(self) -> Array:
        """(nodes,) a kind that is no dearer, no smaller and no choosier than a node with all of its pods; else -1."""
        problem, nodes, items = self.problem, self.problem.nodes, self.items
        found = np.full(len(nodes.price), -1, dtype=np.int64)
        unlimited = self._chosen[np.isinf(problem.kinds.most[self._chosen])]
        suits = problem.suits_shape[items.signature].T != 0
        kinder = {
            shape: unlimited[((self.kinds.most[unlimited] > 0) >= suits[shape]).all(axis=1)]
            for shape in np.unique(nodes.shape).tolist()
        }
        movable = np.flatnonzero(nodes.movable)
        held = dict(zip(movable.tolist(), items.on(problem, movable), strict=True))
        whole = self.nodes.room[movable] + own_requests(problem, movable)
        asked = items.count @ items.requests
        for node, room in zip(movable.tolist(), np.minimum(whole, asked), strict=True):
            kinds = kinder[int(nodes.shape[node])]
            better = (problem.kinds.price[kinds] <= nodes.price[node]) & (self.kinds.room[kinds] >= room).all(axis=1)
            # Pods may be where they could not go any more: a taint came, or a label went.
            own = held[node]
            there = np.flatnonzero(own)
            better &= (self.kinds.most[kinds][:, there] >= (self.nodes.most[node] + own)[there]).all(axis=1)
            better &= (self.kinds.domain[kinds][:, self._keys] == self.nodes.domain[node, self._keys]).all(axis=1)
            if better.any():
                found[node] = kinds[np.argmax(better)]
        return found

    def solve(self) -> Duals:
        """Solve it, with ever more of the rows that say how many copies of a pod one new node can hold."""
        problem, classes, rows = self.problem, self._classes, self._rows
        count = len(classes.count)
        programme = self._programme()
        # New nodes: one column for each kind, which opens its room.
        most = problem.kinds.most[self._chosen]
        room = -self.kinds.room[self._chosen] / self._unit
        programme.add(problem.kinds.price[self._chosen], most, rows.kinds, room)
        copies = classes.together(self.kinds.part(self._chosen).copies(self.items))
        domain = self.kinds.domain[self._chosen]
        machine, item = self._add_pods(programme, copies, rows.kinds, domain, bounded=False)
        self._add_kept(programme)
        on_nodes = np.zeros((self._clusters, count), dtype=np.int64)
        np.add.at(on_nodes, self._cluster, classes.together(self.nodes.part(self._listed).copies(self.items)))
        in_cluster = np.full((self._clusters, problem.nodes.domain.shape[1]), -1)
        in_cluster[self._cluster] = problem.nodes.domain[self._listed]
        self._add_pods(programme, on_nodes, rows.clusters, in_cluster, bounded=True)
        solved = self._with_copies(programme, machine, item, copies)
        self._solved = programme
        value = np.maximum(0.0, solved.rows[:count])
        premium = np.where(rows.domains >= 0, solved.rows[rows.domains], 0.0)
        rates = np.maximum(0.0, -solved.rows[np.concatenate((rows.kinds, rows.clusters))]) / self._unit
        where = classes.domains(np.concatenate((domain, in_cluster)))
        more = np.where(where >= 0, premium[np.arange(count), where], 0.0) if premium.size else np.zeros(where.shape)
        by_item = self._values_of_items(value, rates, np.concatenate((copies, on_nodes)), more)
        rules = [np.argmax(self.items.rule == rule) for rule in range(len(self.items.spreading.rules))]
        worth = PodWorth(by_item, premium[classes.of_item[np.array(rules, dtype=np.int64)]])
        return Duals(worth, *self._rates(rates))

    def whole(self, branches: int, most_columns: int) -> float | None:
        """What the fleet costs at least if machines and pods are whole; None if that would take too long.

        Nodes that stay are paid for, too.
        """
        programme = self._solved
        if programme is None or programme.size > most_columns or not self._classes.exact(self.items):
            return None
        cost = programme.whole(branches)
        fixed = float(self.problem.nodes.price[~self.problem.nodes.movable].sum())
        return fixed + cost - _TOLERANCE * (fixed + abs(cost)) if np.isfinite(cost) else None

    def _with_copies(self, programme: Programme, machine: Array, item: Array, copies: Array) -> Solved:
        """Solve a programme, again and again with the rows about copies that the solution breaks."""
        kinds, most = len(self._chosen), copies[machine, item]
        loose = np.ones(len(item), dtype=np.bool_)
        solved = programme.solve()
        for _ in range(_ROUNDS):
            pods = solved.columns[kinds : kinds + len(item)]
            over = pods > most * solved.columns[machine] + _SLACK
            if not over.any():
                break
            # Pods that may not be here go to the next kind then: better to say so at once.
            added = np.flatnonzero(loose & np.isin(item, np.unique(item[over])))
            loose[added] = False
            programme.restrict(kinds + added, machine[added], most[added].astype(np.float64))
            before, solved = solved, programme.solve()
            if solved.cost <= before.cost * (1.0 + _WORTH_A_ROUND):
                break
        return solved

    def _programme(self) -> Programme:
        """The rows: pods of each class, room of each kind and cluster, and pods of each spread class in each domain."""
        classes, rows = self._classes, self._rows
        lower, upper = np.full(rows.count, -np.inf), np.zeros(rows.count)
        lower[: len(classes.count)], upper[: len(classes.count)] = classes.count, np.inf
        spread = rows.domains >= 0
        lower[rows.domains[spread]], upper[rows.domains[spread]] = classes.least[spread], classes.most[spread]
        fixed = ~self.problem.nodes.movable[self._listed]
        room = self.nodes.room[self._listed] / self._unit
        np.add.at(upper, rows.clusters[self._cluster[fixed]], room[fixed])
        return Programme(lower, upper)

    def _add_kept(self, programme: Programme) -> None:
        """Columns for nodes that are kept: they hold their own pods, and open their free room."""
        problem, classes, rows = self.problem, self._classes, self._rows
        movable = problem.nodes.movable[self._listed]
        kept = self._listed[movable]
        own = classes.together(self.items.on(problem, kept))
        every = np.broadcast_to(np.arange(len(classes.count)), own.shape)
        counted = rows.counting(every, classes.domains(problem.nodes.domain[kept]))
        programme.add(
            problem.nodes.price[kept],
            np.ones(len(kept)),
            np.concatenate((every, counted, rows.clusters[self._cluster[movable]]), axis=1),
            np.concatenate((own, np.where(counted >= 0, own, 0), -self.nodes.room[kept] / self._unit), axis=1),
        )

    def _add_pods(
        self, programme: Programme, copies: Array, room: Array, domain: Array, *, bounded: bool
    ) -> tuple[Array, Array]:
        """Columns for pods of classes on machines that can hold at least one; the pairs of machine and class."""
        classes = self._classes
        machine, item = np.nonzero(copies)
        counted = self._rows.counting(item, classes.domains(domain)[machine, item])
        rows = np.column_stack((item, counted, room[machine]))
        values = np.column_stack((np.ones(len(item)), counted >= 0, classes.requests[item] / self._unit))
        most = copies[machine, item].astype(np.float64) if bounded else np.full(len(item), np.inf)
        # Where a spread pod would count nowhere, it cannot be.
        most[(classes.key[item] >= 0) & (counted < 0)] = 0.0
        programme.add(np.zeros(len(item)), most, rows, values)
        return machine, item

    # -- what it says of items, kinds and nodes ------------------------------------------------------------------

    def _rates(self, rates: Array) -> tuple[Array, Array]:
        """What all kinds and all nodes charge: those that are not in the programme as those that stand in for them."""
        problem = self.problem
        by_kind = np.zeros(problem.kinds.room.shape)
        by_kind[self._chosen] = rates[: len(self._chosen)]
        for kind in np.setdiff1d(np.arange(len(by_kind)), self._chosen).tolist():
            by_kind[kind] = by_kind[self._chosen[np.flatnonzero(self._dominates(self._chosen, kind))[0]]]
        by_node = np.zeros(problem.nodes.free.shape)
        by_node[self._listed] = rates[len(self._chosen) :][self._cluster]
        alike = self._stand_in >= 0
        by_node[alike] = by_kind[self._stand_in[alike]]
        return by_kind, by_node

    def _values_of_items(self, value: Array, rates: Array, copies: Array, premium: Array) -> Array:
        """What pods are worth: as much as their class; if that has several sizes, what they cost where it is."""
        items, classes = self.items, self._classes
        found = value[classes.of_item]
        if classes.exact(items):
            return found
        for number in range(len(classes.count)):
            members = np.flatnonzero(classes.of_item == number)
            machines = np.flatnonzero(copies[:, number])
            if len(members) > 1 and len(machines):
                more = premium[machines, number]
                beyond = np.maximum(0.0, value[number] + more - rates[machines] @ classes.requests[number])
                charged = rates[machines] @ items.requests[members].T + (beyond - more)[:, None]
                found[members] = np.maximum(0.0, charged.min(axis=0))
        return found


def own_requests(problem: FleetProblem, nodes: Array) -> Array:
    """(nodes, resources) what the pods of nodes request that would have to move."""
    pods = problem.nodes.pods
    each = problem.groups.requests[pods.items] * problem.nodes.pod_count[:, None]
    sums = np.concatenate((np.zeros((1, each.shape[1]), dtype=np.int64), np.cumsum(each, axis=0)))
    return np.asarray(sums[pods.start[nodes + 1]] - sums[pods.start[nodes]])


def _clustered(room: Array, shape: Array) -> Array:
    """Numbers of clusters of nodes with the same shape and about as much room, not too many of them."""
    numbers = np.zeros(len(room), dtype=np.int64)
    for step in _CLUSTER_STEPS if len(room) else ():
        sizes = np.zeros(room.shape) if np.isinf(step) else np.floor(np.log1p(room) / np.log(step))
        key = np.column_stack((shape, sizes)).astype(np.int64)
        distinct, numbers = np.unique(key, axis=0, return_inverse=True)
        if len(distinct) <= _MOST_CLUSTERS:
            break
    return numbers.reshape(-1)
