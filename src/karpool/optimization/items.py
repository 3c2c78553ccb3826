"""What a bound tells apart: items (pods that need the same of any machine) and how many of each a machine can hold."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.problem import FleetProblem

_AT_ONCE: Final = 4_000_000
"""How many pairs of a machine and an item are worked out together: a matter of memory."""


@dataclass(frozen=True, slots=True)
class Items:
    """Groups whose pods need the same of a machine, taken together."""

    of_group: Array
    """(groups,) the item of each group."""
    requests: Array
    """(items, resources) int64."""
    signature: Array
    """(items,) what pods demand of a node when all preferences are given up."""
    exempt: Array
    """(items,)"""
    count: Array
    """(items,) int64: pods on nodes that may go."""

    @classmethod
    def of(cls, problem: FleetProblem) -> "Items":
        """The items of a problem."""
        groups = problem.groups
        demanded = problem.pods_of(np.flatnonzero(problem.nodes.movable))
        key = np.column_stack((groups.requests, groups.loose_signature, groups.exempt)).astype(np.int64)
        if not len(key):
            empty = np.zeros(0, dtype=np.int64)
            return cls(empty, groups.requests, empty, np.zeros(0, dtype=np.bool_), empty)
        distinct, of_group = np.unique(key, axis=0, return_inverse=True)
        of_group = of_group.reshape(-1)
        width = groups.requests.shape[1]
        count = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(count, of_group, demanded)
        return cls(of_group, distinct[:, :width], distinct[:, width], distinct[:, width + 1] != 0, count)

    @property
    def asked(self) -> Array:
        """(resources,) what all pods ask for together."""
        return np.asarray(self.count @ self.requests)

    def on(self, problem: FleetProblem, nodes: Array) -> Array:
        """(nodes, items) how many pods of each item are on nodes."""
        here = np.zeros((len(nodes), len(self.count)), dtype=np.int64)
        pods = problem.nodes.pods
        for row, node in enumerate(nodes.tolist()):
            part = slice(int(pods.start[node]), int(pods.start[node + 1]))
            np.add.at(here[row], self.of_group[pods.items[part]], problem.nodes.pod_count[part])
        return here


@dataclass(frozen=True, slots=True)
class Machines:
    """Places for pods: room, and which items could be there."""

    room: Array
    """(machines, resources) int64: not below 0, and not above what all pods ask for together."""
    suits: Array
    """(machines, items) whether the machine takes pods of the item, if there is room."""

    def copies(self, items: Items, part: slice | Array) -> Array:
        """(machines of a part, items) the most pods of an item alone that machines hold, and never more than all."""
        room, most = self.room[part], np.where(self.suits[part], items.count, 0)
        for resource in range(room.shape[1]):
            asked = items.requests[:, resource]
            asking = asked > 0
            fitting = room[:, resource, None] // asked[asking]
            most[:, asking] = np.minimum(most[:, asking], fitting)
        return most

    def worth(self, items: Items, value: Array, rates: Array) -> Array:
        """(machines,) the most that pods on a machine can be worth, as far as `rates` for its room show.

        Pods of value `value` pay `rates` for what they take, which is all of the room at most; what they are worth
        beyond that counts for as many copies as fit.
        """
        found: Array = (rates * self.room).sum(axis=1)
        step = max(1, _AT_ONCE // max(1, len(items.count)))
        for start in range(0, len(found), step):
            part = slice(start, start + step)
            beyond = np.maximum(0.0, value[None, :] - rates[part] @ items.requests.T)
            found[part] += (beyond * self.copies(items, part)).sum(axis=1)
        return found


def kinds_as_machines(problem: FleetProblem, items: Items) -> Machines:
    """New nodes as places for pods."""
    return Machines(np.minimum(problem.kinds.room, items.asked), problem.suits_kind[items.signature].T != 0)


def nodes_as_machines(problem: FleetProblem, items: Items) -> Machines:
    """What is free on today's nodes as places for pods.

    Drift sends pods to nodes whose window is closed, too, and pods that are only expected may go to nodes that are not
    ready yet: such nodes are no obstacle in a bound.
    """
    nodes = problem.nodes
    suits = problem.suits_shape[items.signature][:, nodes.shape].T != 0
    room = np.clip(nodes.free, 0, items.asked)
    return Machines(room, suits & ((nodes.takes > 0)[:, None] | items.exempt[None, :]))
