"""The linear programme of a fleet: how many machines of each kind, and what is on them, with everything divisible.

Rows say that every pod has a place, and that no machine holds more than its room. Pods are taken together in classes,
nodes in clusters, so that it stays small: whatever the duals lose by that, the proof made of them still holds.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.items import Items, Machines, kinds_as_machines, nodes_as_machines
from karpool.optimization.problem import FleetProblem
from karpool.optimization.programme import Programme

_MOST_CLASSES: Final = 500
_CLASS_STEPS: Final = (1.0, 1.1, 1.3, 1.6, 2.2, 4.0)
_MOST_CLUSTERS: Final = 150
_CLUSTER_STEPS: Final = (1.3, 1.6, 2.2, 4.0, 16.0, np.inf)
_ROUNDS: Final = 12
_SLACK: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Duals:
    """What the programme makes of a fleet."""

    value: Array
    """(items,) what one pod is worth."""
    kind_rates: Array
    """(kinds, resources) what kinds charge for their room."""
    node_rates: Array
    """(nodes, resources) what nodes charge for their free room."""
    launched: Array
    """(kinds,) how many of each kind the programme launches ..."""
    placed: tuple[Array, Array, Array]
    """... and what it puts there: items, kinds, and numbers of pods."""


@dataclass(frozen=True, slots=True)
class Classes:
    """Items that the programme does not tell apart: the same needs, and about the same size."""

    of_item: Array
    requests: Array
    count: Array

    @classmethod
    def of(cls, items: Items) -> "Classes":
        """Items as they are if there are not too many; else those that differ the least are taken together."""
        demanded = items.count > 0
        of_item = np.zeros(len(items.count), dtype=np.int64)
        rough = np.column_stack((items.signature, items.exempt, np.minimum(items.cap, items.count)))
        exact = np.column_stack((rough, items.requests, np.arange(len(rough)) * (items.cap < items.count)))
        keys = [exact, np.column_stack((rough[:, :2], items.cap < items.count, items.requests))]
        for step in _CLASS_STEPS[1:]:
            size = np.floor(np.log1p(items.requests) / np.log(step))
            keys.append(np.column_stack((rough[:, :2], items.cap < items.count, size)).astype(np.int64))
        for key in keys:
            distinct, found = np.unique(key[demanded], axis=0, return_inverse=True)
            of_item[demanded] = found.reshape(-1)
            if len(distinct) <= _MOST_CLASSES:
                break
        count = np.bincount(of_item, items.count).astype(np.int64)
        requests = np.column_stack(
            [np.bincount(of_item, items.count * asked) / np.maximum(1, count) for asked in items.requests.T]
        )
        return cls(of_item, requests, count)

    def together(self, by_item: Array) -> Array:
        """(machines, classes) the sums of (machines, items)."""
        summed = np.zeros((len(self.count), len(by_item)), dtype=np.int64)
        np.add.at(summed, self.of_item, by_item.T)
        return summed.T


class Relaxation:
    """The programme of one problem."""

    def __init__(self, problem: FleetProblem, items: Items) -> None:
        self.problem, self.items = problem, items
        self.kinds = kinds_as_machines(problem, items)
        self.nodes = nodes_as_machines(problem, items)
        self._classes = Classes.of(items)
        self._unit = np.maximum(1.0, items.requests.max(axis=0)).astype(np.float64)
        self._chosen = undominated(problem.kinds.price, problem.kinds.most, self.kinds)
        self._stand_in = self._dominating()
        self._listed = np.flatnonzero(~problem.nodes.movable | (self._stand_in < 0))
        takes = problem.nodes.takes > 0
        shape = problem.nodes.shape.astype(np.int64) * 2 + takes
        self._cluster = _clustered(self.nodes.room[self._listed], shape[self._listed])
        self._clusters = int(self._cluster.max(initial=-1)) + 1

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
        whole = self.nodes.room[movable] + own_requests(problem, movable)
        asked = items.count @ items.requests
        for node, room in zip(movable.tolist(), np.minimum(whole, asked), strict=True):
            kinds = kinder[int(nodes.shape[node])]
            better = (problem.kinds.price[kinds] <= nodes.price[node]) & (self.kinds.room[kinds] >= room).all(axis=1)
            # Pods may be where they could not go any more: a taint came, or a label went.
            own = items.of_group[nodes.pods.row(node)]
            better &= (self.kinds.most[kinds][:, own] > 0).all(axis=1)
            if better.any():
                found[node] = kinds[np.argmax(better)]
        return found

    def solve(self) -> Duals:
        """Solve it, with ever more of the rows that say how many copies of a pod one new node can hold."""
        problem, classes = self.problem, self._classes
        width, count, kinds = len(self._unit), len(classes.count), len(self._chosen)
        first_kind, first_cluster = count, count + kinds * width
        rows = first_cluster + self._clusters * width
        room = self.nodes.room[self._listed] / self._unit
        fixed = ~problem.nodes.movable[self._listed]
        lower, upper = np.full(rows, -np.inf), np.zeros(rows)
        lower[:count], upper[:count] = classes.count, np.inf
        np.add.at(upper[first_cluster:].reshape(-1, width), self._cluster[fixed], room[fixed])
        programme = Programme(lower, upper)
        # New nodes: one column for each kind, which opens its room.
        own_rows = first_kind + np.arange(kinds * width).reshape(kinds, width)
        most = problem.kinds.most[self._chosen]
        programme.add(problem.kinds.price[self._chosen], most, own_rows, -self.kinds.room[self._chosen] / self._unit)
        copies = classes.together(self.kinds.part(self._chosen).copies(self.items))
        machine, item = self._add_pods(programme, copies, first_kind, bounded=False)
        # Nodes that are kept hold their own pods, and open their free room.
        kept = self._listed[~fixed]
        in_cluster = first_cluster + self._cluster[~fixed][:, None] * width + np.arange(width)
        programme.add(
            problem.nodes.price[kept],
            np.ones(len(kept)),
            np.concatenate((np.broadcast_to(np.arange(count), (len(kept), count)), in_cluster), axis=1),
            np.concatenate((classes.together(self.items.on(problem, kept)), -room[~fixed]), axis=1),
        )
        on_nodes = np.zeros((self._clusters, count), dtype=np.int64)
        np.add.at(on_nodes, self._cluster, classes.together(self.nodes.part(self._listed).copies(self.items)))
        self._add_pods(programme, on_nodes, first_cluster, bounded=True)
        solved = programme.solve()
        for _ in range(_ROUNDS):
            pods = solved.columns[kinds : kinds + len(machine)]
            over = np.flatnonzero(pods > copies[machine, item] * solved.columns[machine] + _SLACK)
            if not len(over):
                break
            programme.restrict(kinds + over, machine[over], copies[machine, item][over].astype(np.float64))
            solved = programme.solve()
        value = np.maximum(0.0, solved.rows[:count])
        rates = np.maximum(0.0, -solved.rows[count:rows].reshape(-1, width)) / self._unit
        launched, pods = solved.columns[:kinds], solved.columns[kinds : kinds + len(machine)]
        by_item = self._values_of_items(value, rates, np.concatenate((copies, on_nodes)))
        used = pods > _SLACK
        placed = self._spread_out(item[used], self._chosen[machine[used]], pods[used])
        return self._duals(by_item, rates, launched, placed)

    def _add_pods(self, programme: Programme, copies: Array, first: int, *, bounded: bool) -> tuple[Array, Array]:
        """Columns for pods of classes on machines that can hold at least one; the pairs of machine and class."""
        machine, item = np.nonzero(copies)
        rows = np.column_stack((item, first + machine[:, None] * len(self._unit) + np.arange(len(self._unit))))
        values = np.column_stack((np.ones(len(item)), self._classes.requests[item] / self._unit))
        most = copies[machine, item].astype(np.float64) if bounded else np.full(len(item), np.inf)
        programme.add(np.zeros(len(item)), most, rows, values)
        return machine, item

    # -- what it says of items, kinds and nodes ------------------------------------------------------------------

    def _duals(self, value: Array, rates: Array, launched: Array, placed: tuple[Array, Array, Array]) -> Duals:
        kinds = len(self._chosen)
        by_kind = self._rates_of_all(rates[:kinds])
        by_node = np.zeros(self.problem.nodes.free.shape)
        by_node[self._listed] = rates[kinds:][self._cluster]
        alike = self._stand_in >= 0
        by_node[alike] = by_kind[self._stand_in[alike]]
        of_kinds = np.zeros(len(self.problem.kinds.price))
        of_kinds[self._chosen] = launched
        return Duals(value, by_kind, by_node, of_kinds, placed)

    def _values_of_items(self, value: Array, rates: Array, copies: Array) -> Array:
        """What pods are worth: as much as their class; if that has several sizes, what they cost where it is."""
        items, classes = self.items, self._classes
        found = value[classes.of_item]
        if (classes.requests[classes.of_item] == items.requests).all():
            return found
        for number in range(len(classes.count)):
            members = np.flatnonzero(classes.of_item == number)
            machines = np.flatnonzero(copies[:, number])
            if len(members) > 1 and len(machines):
                beyond = np.maximum(0.0, value[number] - rates[machines] @ classes.requests[number])
                found[members] = (rates[machines] @ items.requests[members].T + beyond[:, None]).min(axis=0)
        return found

    def _spread_out(self, class_: Array, kind: Array, pods: Array) -> tuple[Array, Array, Array]:
        """The pods of classes shared out to their items by their number."""
        members = [np.flatnonzero(self._classes.of_item == number) for number in range(len(self._classes.count))]
        lengths = [len(members[number]) for number in class_.tolist()]
        items = np.concatenate([members[number] for number in class_.tolist()]) if lengths else class_
        share = self.items.count[items] / np.repeat(self._classes.count[class_], lengths)
        return items, np.repeat(kind, lengths), np.repeat(pods, lengths) * share

    def _rates_of_all(self, rates: Array) -> Array:
        """Rates of kinds that are not in the programme, after those that stand in for them."""
        problem, kinds = self.problem, self.kinds
        found = np.zeros(problem.kinds.room.shape)
        found[self._chosen] = rates
        for kind in np.setdiff1d(np.arange(len(found)), self._chosen).tolist():
            better = _dominates(problem.kinds.price, problem.kinds.most, kinds, self._chosen, kind)
            found[kind] = found[self._chosen[np.flatnonzero(better)[0]]]
        return found


def own_requests(problem: FleetProblem, nodes: Array) -> Array:
    """(nodes, resources) what the pods of nodes request that would have to move."""
    pods = problem.nodes.pods
    each = problem.groups.requests[pods.items] * problem.nodes.pod_count[:, None]
    sums = np.concatenate((np.zeros((1, each.shape[1]), dtype=np.int64), np.cumsum(each, axis=0)))
    return np.asarray(sums[pods.start[nodes + 1]] - sums[pods.start[nodes]])


def _dominates(price: Array, most: Array, kinds: Machines, others: Array, kind: int) -> Array:
    """Which of other kinds are no dearer, no smaller and no choosier than a kind, and can always be had."""
    larger: Array = (kinds.room[others] >= kinds.room[kind]).all(axis=1)
    kinder: Array = (kinds.most[others] >= kinds.most[kind]).all(axis=1)
    cheaper: Array = (price[others] <= price[kind]) & np.isinf(most[others])
    found: Array = larger & kinder & cheaper
    return found


def undominated(price: Array, most: Array, kinds: Machines) -> Array:
    """Kinds without those that another one makes needless; of equals the first stays."""
    kept: list[int] = []
    order = np.lexsort((np.arange(len(price)), -kinds.most.sum(axis=1), -kinds.room.sum(axis=1), -most, price))
    for kind in order.tolist():
        if not _dominates(price, most, kinds, np.array(kept, dtype=np.int64), kind).any():
            kept.append(kind)
    return np.array(sorted(kept), dtype=np.int64)


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
