"""What a bound tells apart: items (pods that need the same of any machine) and how many of each a machine can hold."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.problem import FleetProblem
from karpool.optimization.spread import Spreading

_AT_ONCE: Final = 4_000_000
"""How many pairs of a machine and an item are worked out together: a matter of memory."""
_EXACT: Final = 2.0**53
NO_LIMIT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Items:
    """Groups whose pods need the same of a machine, taken together; those with rules about other pods stay apart."""

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
    cap: Array
    """(items,) int64: how many pods an empty machine may hold by the rules about one host."""
    ruled: Array
    """Items with such rules, ..."""
    node_cap: Array
    """... and (nodes, these items) int32: how many more of their pods today's nodes may hold."""
    rule: Array
    """(items,) the place of their rule in `spreading`; -1 for those without."""
    spreading: Spreading

    @classmethod
    def of(cls, problem: FleetProblem) -> "Items":
        """The items of a problem."""
        groups = problem.groups
        demanded = problem.pods_of(np.flatnonzero(problem.nodes.movable))
        caps = [_caps(problem, group) if demanded[group] else None for group in range(len(groups.signature))]
        spreading = Spreading.of(problem, demanded)
        capped = np.array([limits is not None for limits in caps], dtype=np.bool_)
        alone = capped | (spreading.of_group >= 0)
        apart = np.where(alone, np.arange(len(caps)), -1)
        key = np.column_stack((groups.requests, groups.loose_signature, groups.exempt, apart)).astype(np.int64)
        distinct, of_group = np.unique(key, axis=0, return_inverse=True)
        of_group = of_group.reshape(-1)
        width = groups.requests.shape[1]
        count = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(count, of_group, demanded)
        group = distinct[:, width + 2]
        ruled = np.array([item for item, at in enumerate(group.tolist()) if at >= 0 and caps[at]], dtype=np.int64)
        cap = np.full(len(distinct), NO_LIMIT, dtype=np.int64)
        node_cap = np.full((len(problem.nodes.price), len(ruled)), NO_LIMIT, dtype=np.int32)
        for at, item in enumerate(ruled.tolist()):
            limits = caps[int(group[item])]
            if limits is not None:
                cap[item], node_cap[:, at] = limits
        return cls(
            of_group=of_group,
            requests=distinct[:, :width],
            signature=distinct[:, width],
            exempt=distinct[:, width + 1] != 0,
            count=count,
            cap=cap,
            ruled=ruled,
            node_cap=node_cap,
            rule=np.where(group >= 0, spreading.of_group[group], -1) if caps else group,
            spreading=spreading,
        )

    def on(self, problem: FleetProblem, nodes: Array) -> Array:
        """(nodes, items) how many pods of each item are on nodes that may go."""
        pods = problem.nodes.pods
        length = np.diff(pods.start)
        of_node = np.repeat(np.arange(len(length)), length)
        row = np.full(len(length), -1)
        row[nodes] = np.arange(len(nodes))
        wanted = row[of_node] >= 0
        here = np.zeros((len(nodes), len(self.count)), dtype=np.int32)
        np.add.at(here, (row[of_node[wanted]], self.of_group[pods.items[wanted]]), problem.nodes.pod_count[wanted])
        return here


def _caps(problem: FleetProblem, group: int) -> tuple[int, Array] | None:
    """How many pods of a group an empty machine may hold, and how many more each node; None without such rules."""
    hosts = problem.hosts
    part = slice(int(hosts.caps.start[group]), int(hosts.caps.start[group + 1]))
    rules = [
        (int(row), int(most))
        for row, most, required in zip(hosts.caps.items[part], hosts.most[part], hosts.required[part], strict=True)
        if required
    ]
    if not rules:
        return None
    own = set(hosts.counts.row(group).tolist())
    empty = NO_LIMIT
    more = np.full(len(problem.nodes.price), NO_LIMIT, dtype=np.int32)
    for row, most in rules:
        # A pod may come where at most so many count; if it counts itself, that ends after a number of copies.
        left = np.maximum(0, most + 1 - hosts.present[row])
        more = np.minimum(more, left if row in own else np.where(left > 0, NO_LIMIT, 0))
        empty = min(empty, max(0, most + 1)) if row in own or most < 0 else empty
    return empty, more


@dataclass(frozen=True, slots=True)
class Machines:
    """Places for pods: room, and which items could be there."""

    room: Array
    """(machines, resources) int64: not below 0, and not above what all pods that may be there ask for together."""
    most: Array
    """(machines, items) how many pods of the item rules allow there; 0 where the machine does not suit them."""
    domain: Array
    """(machines, keys) the domain of each topology key, -1 if it has none."""

    def part(self, machines: Array) -> "Machines":
        """Some of the machines."""
        return Machines(self.room[machines], self.most[machines], self.domain[machines])

    def copies(self, items: Items) -> Array:
        """(machines, items) the most pods of an item alone that machines hold."""
        most = self.most.copy()
        for resource in range(self.room.shape[1]):
            asked = items.requests[:, resource]
            asking = asked > 0
            fitting = self.room[:, resource, None] // asked[asking]
            most[:, asking] = np.minimum(most[:, asking], fitting)
        return most

    def worth(self, items: Items, value: Array, premium: Array, rates: Array) -> Array:
        """(machines,) the most that pods on a machine can be worth, as far as `rates` for its room show.

        Pods of value `value`, and with a spread rule `premium` for their domain, pay `rates` for what they take, which
        is all of the room at most; what they are worth beyond that counts for as many copies as fit.
        """
        found: Array = (rates * self.room).sum(axis=1)
        step = max(1, _AT_ONCE // max(1, len(items.count)))
        for start in range(0, len(found), step):
            part = np.arange(start, min(start + step, len(found)))
            beyond = np.maximum(0.0, self._values(items, value, premium, part) - rates[part] @ items.requests.T)
            found[part] += (beyond * self.part(part).copies(items)).sum(axis=1)
        return found

    def _values(self, items: Items, value: Array, premium: Array, part: Array) -> Array:
        values = np.repeat(value[None, :], len(part), axis=0)
        spread = np.flatnonzero(items.rule >= 0)
        if len(spread):
            rule = items.rule[spread]
            values[:, spread] += in_domain(premium)[rule, self.domain[part][:, items.spreading.key[rule]]]
        return values


def in_domain(premium: Array) -> Array:
    """(used, domains and one more) premiums by domain; what has no domain, -1, finds the highest."""
    return np.column_stack((premium, premium.max(axis=1))) if premium.size else premium


def _asked(most: Array, items: Items) -> Array:
    """(machines, resources) what all pods that may be on machines ask for together, or more."""
    # Products of floats are many times faster, and exact as long as no sum passes the last bit.
    asked = most.astype(np.float64) @ items.requests.astype(np.float64)
    return np.where(asked < _EXACT, asked, np.ceil(asked * (1.0 + 1e-9))).astype(np.int64)


def kinds_as_machines(problem: FleetProblem, items: Items) -> Machines:
    """New nodes as places for pods."""
    suits = problem.suits_kind[items.signature].T != 0
    most = np.where(suits, np.minimum(items.count, items.cap), 0).astype(np.int32)
    return Machines(np.minimum(problem.kinds.room, _asked(most, items)), most, problem.kinds.domain)


def nodes_as_machines(problem: FleetProblem, items: Items) -> Machines:
    """What is free on today's nodes as places for pods.

    Drift sends pods to nodes whose window is closed, too, and pods that are only expected may go to nodes that are not
    ready yet: such nodes are no obstacle in a bound.
    """
    nodes = problem.nodes
    suits = (problem.suits_shape.T[:, items.signature] != 0)[nodes.shape]
    open_ = suits & ((nodes.takes > 0)[:, None] | items.exempt[None, :])
    # A node's own pods are no guests.
    most = np.repeat(items.count.astype(np.int32)[None, :], len(nodes.price), axis=0)
    movable = np.flatnonzero(nodes.movable)
    most[movable] -= items.on(problem, movable)
    most[~open_] = 0
    most[:, items.ruled] = np.minimum(most[:, items.ruled], items.node_cap)
    return Machines(np.clip(nodes.free, 0, _asked(most, items)), most, nodes.domain)
