"""A fleet as arrays: what runs, what may go, what can be bought, and the rules between pods that count.

Equal pods are one group: same requests, same rules, same labels. Nodes are kept with all of their pods, or go; pods of
nodes that go ("guests") find room on nodes that stay or on new nodes. A kind is a new node that can be had: pool, type,
capacity type and zone. Capacities are what DaemonSets leave.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from karpool.cluster.arrays import Array

SPREAD: Final = 0
APART: Final = 1
TOGETHER: Final = 2
TAKES_GUESTS: Final = 2
"""What `Nodes.takes` says of a node that takes any guest."""


class Lists(NamedTuple):
    """One list of numbers for each of many rows: row `i` is `items[start[i] : start[i + 1]]`."""

    start: Array
    items: Array

    def row(self, number: int) -> Array:
        """One of the lists."""
        return self.items[self.start[number] : self.start[number + 1]]


@dataclass(frozen=True, slots=True)
class Groups:
    """Equal pods, by group."""

    requests: Array
    """(groups, resources) int64."""
    signature: Array
    """(groups,) what pods demand of a node alone: a row of `suits_shape` and `suits_kind`."""
    loose_signature: Array
    """(groups,) a row that suits whatever pods could do with, preferences given up; a bound has to use these."""
    weight: Array
    """(groups,) what the eviction of one pod counts; 1 is a plain one."""
    exempt: Array
    """(groups,) whether pods may go to nodes whose window is closed."""
    modelled: Array
    """(groups,) whether the arrays say everything about where pods may go; other pods only the engine can place."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Today's nodes."""

    price: Array
    """(nodes,) $/h; 0 where it is not known."""
    movable: Array
    """(nodes,) whether the rules let the node go, if its pods find room."""
    searchable: Array
    """(nodes,) whether a search may take it away: it is movable, and all of its pods are modelled."""
    takes: Array
    """(nodes,) 0: takes no guests; 1: takes exempt guests only; 2: takes guests."""
    free: Array
    """(nodes, resources) int64: room beside all pods that are there."""
    shape: Array
    """(nodes,) a column of `suits_shape`."""
    domain: Array
    """(nodes, keys) the domain of each topology key, -1 if it has none."""
    pool: Array
    """(nodes,) a row of pools, -1 for none."""
    capacity: Array
    """(nodes, resources) what limits count."""
    spot: Array
    """(nodes,) whether it is a spot node."""
    machine: Array
    """(nodes,) the number of its instance type, -1 if the catalogue does not have it."""
    pods: Lists
    """By node: the groups of its pods that need another place if it goes, one entry for each group."""
    pod_count: Array
    """Parallel to `pods.items`: how many pods of the group are on the node."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """New nodes that can be had."""

    price: Array
    """(kinds,) $/h of the cheapest launch."""
    worst: Array
    """(kinds,) $/h of the dearest launch that a claim for it allows."""
    room: Array
    """(kinds, resources) int64."""
    domain: Array
    """(kinds, keys) the domain of each topology key, -1 if it may be any or has none."""
    pool: Array
    """(kinds,) a row of pools."""
    capacity: Array
    """(kinds, resources) what limits count."""
    spot: Array
    """(kinds,) whether it is launched as spot."""
    machine: Array
    """(kinds,) the number of the instance type."""
    most: Array
    """(kinds,) how many can be had at once: what a reservation has left; infinite otherwise."""
    rank: Array
    """(kinds,) the place of its pool by weight: 0 is the heaviest."""


@dataclass(frozen=True, slots=True)
class HostRules:
    """Rules about what one node may hold: spread and anti-affinity by host name.

    A pod of group `g` may come to a node that counts at most `most` in each of its `caps`; being there, it adds one to
    each row of `counts`.
    """

    caps: Lists
    """By group: rows of counts that must not exceed `most`."""
    most: Array
    """Parallel to `caps.items`."""
    required: Array
    """Parallel to `caps.items`: whether the rule holds when all preferences are given up."""
    counts: Lists
    """By group: rows in which its pods count."""
    present: Array
    """(rows, nodes) int32: what each node counts today."""


@dataclass(frozen=True, slots=True)
class SpreadRules:
    """Rules about the domains of a topology key other than host names: spread, anti-affinity and affinity."""

    owned: Lists
    """By group: rules that its pods obey."""
    counts: Lists
    """By group: rules in which its pods count."""
    key: Array
    """(rules,) the topology key: a column of `Nodes.domain`."""
    mode: Array
    """(rules,) SPREAD; APART: the domain must count none; TOGETHER: it must count some, unless no domain does."""
    skew: Array
    """(rules,) for SPREAD: the most that a domain may have above the least."""
    least_domains: Array
    """(rules,) minDomains: with fewer domains the least counts as 0."""
    present: Array
    """(rules, domains) int32: what each domain counts today."""
    eligible: Array
    """(rules, domains) whether the domain is one of those whose least count matters."""
    steady: Array
    """(rules,) whether every pod that counts and may move obeys the rule, whatever preferences are given up, none is
    lost with its node, and the eligible domains stay the same whatever comes and goes."""


@dataclass(frozen=True, slots=True)
class Pools:
    """What pools allow."""

    allowance: Array
    """(pools,) how many nodes may go together."""
    left: Array
    """(pools, resources) float64: what limits leave beside all nodes of today; infinite without limits."""


@dataclass(frozen=True, slots=True)
class FleetProblem:
    """Everything that a search and a bound know of a cluster."""

    groups: Groups
    nodes: Nodes
    kinds: Kinds
    hosts: HostRules
    spreads: SpreadRules
    pools: Pools
    suits_shape: Array
    """(signatures, shapes) uint8."""
    suits_kind: Array
    """(signatures, kinds) uint8."""

    @property
    def price(self) -> float:
        """What all nodes of today cost."""
        return float(self.nodes.price.sum())

    def pods_on(self, node: int) -> dict[int, int]:
        """How many pods of which group would have to move if a node went."""
        start, end = int(self.nodes.pods.start[node]), int(self.nodes.pods.start[node + 1])
        groups = self.nodes.pods.items[start:end].tolist()
        return dict(zip(groups, self.nodes.pod_count[start:end].tolist(), strict=True))

    def pods_of(self, nodes: Array) -> Array:
        """How many pods of each group would have to move if nodes went."""
        moving = np.zeros(len(self.groups.signature), dtype=np.int64)
        pods = self.nodes.pods
        for node in nodes.tolist():
            part = slice(int(pods.start[node]), int(pods.start[node + 1]))
            np.add.at(moving, pods.items[part], self.nodes.pod_count[part])
        return moving
