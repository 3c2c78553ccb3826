"""A lower bound: what any fleet costs at least that commands can reach from here.

Any fleet means: nodes that may not go stay, with what is free on them; nodes that may go stay with all of their pods,
or go; what is new is of one of the kinds; and every pod of a node that went has room on a machine that suits it. A
linear programme finds the duals. What counts is not its accuracy, but the `Proof` made of them, which anybody can
check.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.items import Items, Machines, kinds_as_machines, nodes_as_machines
from karpool.optimization.problem import FleetProblem
from karpool.optimization.programme import Programme
from karpool.optimization.proof import Proof, repaired, total

_MOST_CLUSTERS: Final = 150
_COARSENESS: Final = (1.3, 1.6, 2.2, 4.0, 16.0, np.inf)
_UNBOUNDED: Final = np.inf


@dataclass(frozen=True, slots=True)
class Launches:
    """The fleet of the linear programme: a place to start a search from, with parts of nodes and of pods."""

    kinds: Array
    """(kinds,) how many of each kind."""
    group: Array
    """(entries,) pods of this group ..."""
    kind: Array
    """(entries,) ... on new nodes of this kind: ..."""
    pods: Array
    """(entries,) ... so many."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A price that no fleet is below, how it was found, and its proof."""

    price: float
    method: str
    proof: Proof
    launches: Launches


def lower_bound(problem: FleetProblem) -> Bound:
    """The price that no sequence of commands can bring a fleet below."""
    items = Items.of(problem)
    return _Relaxation(problem, items).bound() if items.count.any() else _nothing_to_move(problem, items)


def _nothing_to_move(problem: FleetProblem, items: Items) -> Bound:
    """Only empty nodes may go, if any."""
    zero = Proof(
        np.zeros(len(problem.groups.signature)), np.zeros(problem.kinds.room.shape), np.zeros(problem.nodes.free.shape)
    )
    empty = np.zeros(0, dtype=np.int64)
    nobody = Launches(np.zeros(len(problem.kinds.price)), empty, empty, np.zeros(0))
    price = total(problem, items, np.zeros(len(items.count)), zero.node_rates, -problem.kinds.price)
    return Bound(price, "LP", zero, nobody)


class _Relaxation:
    """The linear programme of a problem: rows for items, and for each resource of each machine."""

    def __init__(self, problem: FleetProblem, items: Items) -> None:
        self._problem, self._items = problem, items
        self._kinds = kinds_as_machines(problem, items)
        self._nodes = nodes_as_machines(problem, items)
        self._unit = np.maximum(1.0, items.requests.max(axis=0)).astype(np.float64)
        self._chosen = _undominated(problem.kinds.price, problem.kinds.most, self._kinds)
        self._stand_in = self._dominating()
        self._kept = np.flatnonzero(problem.nodes.movable & (self._stand_in < 0))
        self._listed = np.flatnonzero(~problem.nodes.movable | (self._stand_in < 0))
        self._cluster = _clustered(self._nodes.room[self._listed], self._shape_key()[self._listed])
        self._clusters = int(self._cluster.max(initial=-1)) + 1

    def _shape_key(self) -> Array:
        nodes = self._problem.nodes
        return nodes.shape.astype(np.int64) * 2 + (nodes.takes > 0)

    def _dominating(self) -> Array:
        """(nodes,) a kind that is no dearer, no smaller and no choosier than a node with all of its pods; else -1."""
        problem, nodes, kinds = self._problem, self._problem.nodes, self._kinds
        found = np.full(len(nodes.price), -1, dtype=np.int64)
        requests = self._items.requests
        suits = problem.suits_shape[self._items.signature].T != 0
        for node in np.flatnonzero(nodes.movable).tolist():
            own = self._items.on(problem, np.array([node]))[0]
            whole = self._nodes.room[node] + own @ requests
            fits = (problem.kinds.price[self._chosen] <= nodes.price[node]) & (kinds.room[self._chosen] >= whole).all(
                axis=1
            )
            for kind in self._chosen[fits & np.isinf(problem.kinds.most[self._chosen])].tolist():
                # Pods may be where they could not go any more: a taint came, or a label went.
                if (kinds.suits[kind] >= (suits[nodes.shape[node]] | (own > 0))).all():
                    found[node] = kind
                    break
        return found

    # -- the programme -------------------------------------------------------------------------------------------

    def bound(self) -> Bound:
        """Solve it, and make a proof of its duals."""
        problem, items = self._problem, self._items
        width = items.requests.shape[1]
        count, kinds = len(items.count), len(self._chosen)
        first_kind, first_cluster = count, count + kinds * width
        rows = first_cluster + self._clusters * width
        room = self._nodes.room[self._listed] / self._unit
        fixed = ~problem.nodes.movable[self._listed]
        upper = np.zeros(rows)
        np.add.at(upper[first_cluster:].reshape(-1, width), self._cluster[fixed], room[fixed])
        upper[:count] = np.inf
        lower = np.full(rows, -np.inf)
        lower[:count] = items.count
        programme = Programme(lower, upper)
        # New nodes: one column for each kind, which opens its room.
        own_rows = first_kind + np.arange(kinds * width).reshape(kinds, width)
        programme.add(
            problem.kinds.price[self._chosen],
            problem.kinds.most[self._chosen],
            own_rows,
            -self._kinds.room[self._chosen] / self._unit,
        )
        kind_pairs = self._add_pods(programme, self._kinds.copies(items, self._chosen), first_kind, bounded=False)
        # Nodes that are kept hold their own pods, and open their free room.
        in_cluster = first_cluster + self._cluster[:, None] * width + np.arange(width)
        movable = np.flatnonzero(~fixed)
        programme.add(
            problem.nodes.price[self._kept],
            np.ones(len(self._kept)),
            np.concatenate((np.broadcast_to(np.arange(count), (len(movable), count)), in_cluster[movable]), axis=1),
            np.concatenate((items.on(problem, self._kept), -room[movable]), axis=1),
        )
        copies = np.zeros((self._clusters, count), dtype=np.int64)
        np.add.at(copies, self._cluster, self._nodes.copies(items, self._listed))
        self._add_pods(programme, copies, first_cluster, bounded=True)
        solved = programme.solve()
        duals = np.maximum(0.0, solved.rows[:count])
        rates = np.maximum(0.0, -solved.rows[count:].reshape(-1, width)) / self._unit
        return self._proven(duals, rates[:kinds], rates[kinds:], self._launches(solved.columns, kind_pairs))

    def _add_pods(self, programme: Programme, copies: Array, first: int, *, bounded: bool) -> tuple[Array, Array]:
        """Columns for pods of items on machines that can hold at least one; the pairs of machine and item."""
        width = self._items.requests.shape[1]
        machine, item = np.nonzero(copies)
        rows = np.column_stack((item, first + machine[:, None] * width + np.arange(width)))
        values = np.column_stack((np.ones(len(item)), self._items.requests[item] / self._unit))
        most = copies[machine, item].astype(np.float64) if bounded else np.full(len(item), _UNBOUNDED)
        programme.add(np.zeros(len(item)), most, rows, values)
        return machine, item

    def _launches(self, columns: Array, pairs: tuple[Array, Array]) -> Launches:
        """How many of each kind, and the groups on them: an item's pods are shared out by the size of its groups."""
        problem, items = self._problem, self._items
        launched = np.zeros(len(problem.kinds.price))
        launched[self._chosen] = columns[: len(self._chosen)]
        machine, item = pairs
        pods = columns[len(self._chosen) : len(self._chosen) + len(machine)]
        used = pods > 1e-9  # noqa: PLR2004
        machine, item, pods = machine[used], item[used], pods[used]
        demanded = problem.pods_of(np.flatnonzero(problem.nodes.movable))
        entries = [
            (group, int(self._chosen[at]), amount * demanded[group] / items.count[which])
            for at, which, amount in zip(machine.tolist(), item.tolist(), pods.tolist(), strict=True)
            for group in np.flatnonzero(items.of_group == which).tolist()
        ]
        group, kind, amounts = zip(*entries, strict=True) if entries else ((), (), ())
        return Launches(
            launched, np.array(group, dtype=np.int64), np.array(kind, dtype=np.int64), np.array(amounts, dtype=float)
        )

    # -- the proof -----------------------------------------------------------------------------------------------

    def _proven(self, value: Array, kind_rates: Array, cluster_rates: Array, launches: Launches) -> Bound:
        problem, items = self._problem, self._items
        by_kind = self._rates_of_all(kind_rates)
        value, by_kind = repaired(problem, items, self._kinds, value, by_kind)
        by_node = np.zeros(problem.nodes.free.shape)
        by_node[self._listed] = cluster_rates[self._cluster]
        alike = self._stand_in >= 0
        by_node[alike] = by_kind[self._stand_in[alike]]
        gain = self._kinds.worth(items, value, by_kind) - problem.kinds.price
        price = total(problem, items, value, by_node, gain)
        return Bound(price, "LP", Proof(value[items.of_group], by_kind, by_node), launches)

    def _rates_of_all(self, rates: Array) -> Array:
        """Rates of kinds that are not in the programme, after those that stand in for them."""
        problem, kinds = self._problem, self._kinds
        found = np.zeros(problem.kinds.room.shape)
        found[self._chosen] = rates
        for kind in np.setdiff1d(np.arange(len(found)), self._chosen).tolist():
            better = _dominates(problem.kinds.price, problem.kinds.most, kinds, self._chosen, kind)
            found[kind] = found[self._chosen[np.flatnonzero(better)[0]]]
        return found


def _dominates(price: Array, most: Array, kinds: Machines, others: Array, kind: int) -> Array:
    """Which of other kinds are no dearer, no smaller and no choosier than a kind, and can always be had."""
    larger: Array = (kinds.room[others] >= kinds.room[kind]).all(axis=1)
    kinder: Array = (kinds.suits[others] >= kinds.suits[kind]).all(axis=1)
    cheaper: Array = (price[others] <= price[kind]) & np.isinf(most[others])
    found: Array = larger & kinder & cheaper
    return found


def _undominated(price: Array, most: Array, kinds: Machines) -> Array:
    """Kinds without those that another one makes needless; of equals the first stays."""
    kept: list[int] = []
    order = np.lexsort((np.arange(len(price)), -kinds.suits.sum(axis=1), -kinds.room.sum(axis=1), -most, price))
    for kind in order.tolist():
        if not _dominates(price, most, kinds, np.array(kept, dtype=np.int64), kind).any():
            kept.append(kind)
    return np.array(sorted(kept), dtype=np.int64)


def _clustered(room: Array, shape: Array) -> Array:
    """Numbers of clusters of nodes with the same shape and about as much room, not too many of them."""
    if not len(room):
        return np.zeros(0, dtype=np.int64)
    numbers = np.zeros(len(room), dtype=np.int64)
    for base in _COARSENESS:
        sizes = np.zeros(room.shape) if np.isinf(base) else np.floor(np.log1p(room) / np.log(base))
        key = np.column_stack((shape, sizes)).astype(np.int64)
        distinct, numbers = np.unique(key, axis=0, return_inverse=True)
        if len(distinct) <= _MOST_CLUSTERS:
            break
    return numbers.reshape(-1)
