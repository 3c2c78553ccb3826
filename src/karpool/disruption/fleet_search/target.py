"""A target fleet by names, which means the same when the cluster has changed; and the search that finds one.

A search works on arrays that nobody changes, so it can run beside decisions. Its answer is in names of nodes, pools and
instance types. Pods are told apart by what they have in common, as those of a workload are replaced by others.
"""

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.fleet import Fleet
from karpool.disruption.fleet_search.global_search import affordable, find_fleet, moves_of, of_heaviest_pools
from karpool.disruption.policies import HAIR
from karpool.disruption.settings import DisruptionSettings, Weights
from karpool.optimization.problem import FleetProblem
from karpool.optimization.search import TargetFleet, Wish

Guest = tuple[int, int]
"""Pods that are alike: their class and their labels, as numbers of a snapshot."""


class Purchase(NamedTuple):
    """What a new node is."""

    pool: str
    instance_type: str
    capacity_type: str
    zone: str


@dataclass(slots=True)
class ComingNode:
    """A new node of a target, and the pods that are still to come to it."""

    purchase: Purchase
    guests: Counter[Guest]


class Terms(NamedTuple):
    """Under which terms a fleet was searched."""

    heaviest: bool
    """Only the heaviest pools that pods may use are bought from."""
    near: bool
    """All nodes that go can do so in one command, with the budgets that there were."""


@dataclass(slots=True)
class NamedTarget:
    """A fleet that is wanted, as far as it is not there yet."""

    found: datetime
    promised: float
    """$/h that the fleet was to save when it was found."""
    price: float
    """$/h of the whole fleet, as it was last worked out."""
    terms: Terms
    snapshot: Snapshot
    """Whose numbers guests have."""
    known: frozenset[str]
    """The nodes that there were when this was last worked out."""
    going: set[str]
    hosts: dict[str, Counter[Guest]]
    """By node that stays: the pods that are still to come to it."""
    coming: list[ComingNode]
    opened: list[ComingNode] = field(default_factory=list)
    """New nodes that a command has asked for."""
    begun: bool = False
    """Whether one of its commands has begun."""


@dataclass(frozen=True, slots=True)
class FleetNames:
    """A fleet, and the names behind its numbers: everything that turns numbers of a search into a target."""

    fleet: Fleet
    snapshot: Snapshot
    pools: tuple[str, ...]
    types: tuple[str, ...]

    def purchase(self, kind: int) -> Purchase:
        """A kind by its names."""
        kinds = self.fleet.kinds
        market = kinds.markets[int(kinds.market_of[kind])]
        machine = int(self.fleet.problem.kinds.machine[kind])
        return Purchase(self.pools[market.template], self.types[machine], market.capacity_type, market.zone)

    def guests(self, guests: dict[int, int]) -> Counter[Guest]:
        """Pods by what they have in common."""
        counted: Counter[Guest] = Counter()
        for group, count in guests.items():
            counted[self.fleet.groups[group][:2]] += count
        return counted

    def usable(self, *, heaviest: bool) -> Array:
        """(signatures, kinds) what may be bought for whom."""
        problem = self.fleet.problem
        return affordable(problem, of_heaviest_pools(problem) if heaviest else problem.suits_kind)

    def successor(self, target: NamedTarget, found: TargetFleet) -> NamedTarget:
        """What has become of a target, by names."""
        after = self.target(found, target.found, target.promised, target.terms)
        # Nodes that may not go right now are still to go.
        after.going |= target.going
        after.begun = target.begun
        return after

    def target(self, found: TargetFleet, now: datetime, promised: float, terms: Terms) -> NamedTarget:
        """A fleet that was found, by names."""
        names = self.fleet.names
        return NamedTarget(
            found=now,
            promised=promised,
            price=found.price,
            terms=terms,
            snapshot=self.snapshot,
            known=frozenset(names),
            going={names[node] for node in found.gone},
            hosts={names[machine.number]: self.guests(machine.guests) for machine in found.hosts},
            coming=[ComingNode(self.purchase(machine.number), self.guests(machine.guests)) for machine in found.new],
        )

    def wish(self, target: NamedTarget) -> Wish:
        """As much of a target as there can be of it now."""
        fleet = self.fleet
        nodes = {name: number for number, name in enumerate(fleet.names)}
        going = sorted(nodes[name] for name in target.going if name in nodes and self._may_go(nodes[name]))
        kinds = {self.purchase(kind): kind for kind in range(len(fleet.problem.kinds.price))}
        coming = [new for new in target.coming if new.purchase in kinds]
        wanted = [(len(nodes) + number, new.guests) for number, new in enumerate(coming)]
        if target.snapshot is self.snapshot:
            wanted += [(nodes[name], guests) for name, guests in target.hosts.items() if name in nodes]
            wanted += self._arrived(target, nodes)
        else:
            wanted = []
        leaving = np.array(going, dtype=np.int64)
        guests = self._shared_out(wanted, fleet.problem.pods_of(leaving))
        return Wish(
            going=leaving,
            kinds=np.array([kinds[new.purchase] for new in coming], dtype=np.int64),
            guests=np.array(guests, dtype=np.int64).reshape(len(guests), 3),
        )

    def _shared_out(self, wanted: list[tuple[int, Counter[Guest]]], pods: Array) -> list[tuple[int, int, int]]:
        """Machine, group and count: guests as pods of their groups, each as often as it is among those that leave."""
        left = pods.copy()
        groups: dict[Guest, list[int]] = {}
        for group, key in enumerate(self.fleet.groups):
            groups.setdefault(key[:2], []).append(group)
        shared = []
        for machine, counted in wanted:
            for guest, count in sorted(counted.items()):
                missing = count
                for group in groups.get(guest, ()):
                    share = min(missing, int(left[group]))
                    if share > 0:
                        shared.append((machine, group, share))
                    left[group] -= share
                    missing -= share
        return shared

    def _may_go(self, node: int) -> bool:
        return bool(self.fleet.problem.nodes.searchable[node])

    def _arrived(self, target: NamedTarget, nodes: dict[str, int]) -> list[tuple[int, Counter[Guest]]]:
        """New nodes that are there by now, with the pods that are still to come to them."""
        problem = self.fleet.problem
        unknown: dict[tuple[str, str], list[int]] = {}
        for name, number in nodes.items():
            pool, machine = int(problem.nodes.pool[number]), int(problem.nodes.machine[number])
            if name not in target.known and pool >= 0 and machine >= 0:
                unknown.setdefault((self.pools[pool], self.types[machine]), []).append(number)
        found = []
        for new in target.opened:
            same = unknown.get(new.purchase[:2])
            if same:
                found.append((same.pop(0), new.guests))
        return found


def names_of(decision_pass: DecisionPass, fleet: Fleet) -> FleetNames:
    """The names of a fleet of a pass."""
    context = decision_pass.context
    pools = context.engine.tables.pools
    return FleetNames(
        fleet=fleet,
        snapshot=context.snapshot,
        pools=tuple(template.name for template in pools.templates),
        types=tuple(pools.types.names.tolist()),
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search found; no target if nothing is worth its evictions."""

    request: "SearchRequest"
    target: NamedTarget | None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search that is wanted, with everything that it needs."""

    names: FleetNames
    settings: DisruptionSettings
    number: int
    """How many searches there were before."""
    asked: datetime
    fingerprint: str

    near: bool
    """Whether one command is to be found, and not the way to a fleet that takes many."""

    def run(self, alive: Callable[[], bool] = lambda: True) -> Answer:
        """Search, as long as somebody wants the answer; pools that are not the heaviest for pods come second."""
        problem = self.names.fleet.problem
        relaxed = self.settings.weights is Weights.PREFER and not _one_rank(problem)
        ways = [
            Terms(heaviest, near)
            for heaviest in ((True, False) if relaxed else (True,))
            for near in ((True,) if self.near else (False, True))
        ]
        for terms in ways:
            found = self._search(terms, alive)
            if found.cost < problem.price - HAIR:
                promised = problem.price - found.price
                return Answer(self, self.names.target(found, self.asked, promised, terms))
        return Answer(self, None)

    def _search(self, terms: Terms, alive: Callable[[], bool]) -> TargetFleet:
        problem = self.names.fleet.problem
        nodes = int(problem.nodes.searchable.sum())
        return find_fleet(
            problem,
            self.settings,
            near=terms.near,
            usable=self.names.usable(heaviest=terms.heaviest),
            seed=self.settings.seed + self.number,
            moves=moves_of(self.settings.effort, nodes, None if terms.near else 0),
            watch=lambda _done, _price: alive(),
        )


def _one_rank(problem: FleetProblem) -> bool:
    """Whether no weight keeps pods from a kind that they could use."""
    return np.array_equal(of_heaviest_pools(problem), problem.suits_kind)


def fingerprint(problem: FleetProblem) -> str:
    """A hash of everything that a search looks at."""
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, problem)
    return digest.hexdigest()


def _feed(digest: "hashlib.blake2b", value: object) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape};".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value):
        for part in fields(value):
            _feed(digest, getattr(value, part.name))
    elif isinstance(value, tuple):
        for part in value:
            _feed(digest, part)
