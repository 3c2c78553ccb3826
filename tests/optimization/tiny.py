"""Fleet problems small enough to try every fleet, and the search that does."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement
from typing import Final

import numpy as np
from hypothesis import strategies as st

from karpool.optimization.problem import (
    APART,
    SPREAD,
    TOGETHER,
    FleetProblem,
    Groups,
    HostRules,
    Kinds,
    Lists,
    Nodes,
    Pools,
    SpreadRules,
)

ZONES: Final = 2


@dataclass(frozen=True)
class Pod:
    """A group of equal pods: its requests, the signatures of machines that it may be on."""

    requests: tuple[int, ...]
    signature: int = 0
    exempt: bool = False


@dataclass(frozen=True)
class Node:
    """A node of today: `pods` are numbers of groups, one for each pod."""

    price: float
    free: tuple[int, ...]
    pods: tuple[int, ...] = ()
    movable: bool = True
    takes: int = 2
    shape: int = 0
    zone: int = 0


@dataclass(frozen=True)
class Kind:
    """A kind of new nodes; `shape` says which signatures it suits."""

    price: float
    room: tuple[int, ...]
    shape: int = 0
    most: float = np.inf
    zone: int = 0


@dataclass(frozen=True)
class ZoneRule:
    """A rule about zones that all pods of some groups obey, and in which they count."""

    groups: frozenset[int]
    mode: int = SPREAD
    skew: int = 1

    def allows(self, stay: Sequence[int], come: Sequence[int]) -> bool:
        """Whether guests can come, one after the other, to zones that count so many of the pods that stay."""
        ends = [here + more for here, more in zip(stay, come, strict=True)]
        visited = [zone for zone, more in enumerate(come) if more]
        if self.mode == APART:
            return all(ends[zone] == 1 for zone in visited)
        if self.mode == TOGETHER:
            return all(stay[zone] for zone in visited) if any(stay) else len(visited) <= 1
        # The last one that came to a zone found the others no fuller than they are in the end.
        return all(ends[zone] - min(ends) <= self.skew for zone in visited)


@dataclass(frozen=True)
class Tiny:
    """A fleet: `suits[signature][shape]` says which machines pods may be on."""

    groups: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    kinds: tuple[Kind, ...]
    suits: tuple[tuple[int, ...], ...] = ((1,),)
    caps: Mapping[int, int] = field(default_factory=dict)
    """By group: how many of its pods a machine may hold."""
    apart: tuple[tuple[int, int], ...] = ()
    """Groups whose pods keep off each other's machines."""
    zone_rules: tuple[ZoneRule, ...] = ()

    def problem(self) -> FleetProblem:
        """The same as arrays."""
        groups, nodes, kinds = self.groups, self.nodes, self.kinds
        width = len(groups[0].requests) if groups else 1
        held = [sorted((group, node.pods.count(group)) for group in set(node.pods)) for node in nodes]
        signature = np.array([pod.signature for pod in groups], dtype=np.int32)
        suits = np.array(self.suits, dtype=np.uint8).reshape(len(self.suits), -1)
        rows, caps = self._host_rows()
        present = np.array([[node.pods.count(group) for node in nodes] for group in rows], dtype=np.int32)
        rules = self.zone_rules
        obeyed = _lists([[at for at, rule in enumerate(rules) if group in rule.groups] for group in range(len(groups))])
        return FleetProblem(
            groups=Groups(
                requests=np.array([pod.requests for pod in groups], dtype=np.int64).reshape(-1, width),
                signature=signature,
                loose_signature=signature,
                weight=np.ones(len(groups)),
                exempt=np.array([pod.exempt for pod in groups], dtype=np.bool_),
                modelled=np.ones(len(groups), dtype=np.bool_),
            ),
            nodes=Nodes(
                price=np.array([node.price for node in nodes], dtype=np.float64),
                movable=np.array([node.movable for node in nodes], dtype=np.bool_),
                searchable=np.array([node.movable for node in nodes], dtype=np.bool_),
                takes=np.array([node.takes for node in nodes], dtype=np.int8),
                free=np.array([node.free for node in nodes], dtype=np.int64).reshape(-1, width),
                shape=np.array([node.shape for node in nodes], dtype=np.int32),
                domain=np.array([[node.zone] for node in nodes], dtype=np.int32).reshape(-1, 1),
                pool=np.zeros(len(nodes), dtype=np.int32),
                capacity=np.zeros((len(nodes), width), dtype=np.int64),
                spot=np.zeros(len(nodes), dtype=np.bool_),
                machine=np.full(len(nodes), -1, dtype=np.int32),
                pods=_lists([[group for group, _ in entries] for entries in held]),
                pod_count=np.array([count for entries in held for _, count in entries], dtype=np.int32),
            ),
            kinds=Kinds(
                price=np.array([kind.price for kind in kinds], dtype=np.float64),
                worst=np.array([kind.price for kind in kinds], dtype=np.float64),
                room=np.array([kind.room for kind in kinds], dtype=np.int64).reshape(-1, width),
                domain=np.array([[kind.zone] for kind in kinds], dtype=np.int32).reshape(-1, 1),
                pool=np.zeros(len(kinds), dtype=np.int32),
                capacity=np.zeros((len(kinds), width), dtype=np.int64),
                spot=np.zeros(len(kinds), dtype=np.bool_),
                machine=np.arange(len(kinds), dtype=np.int32),
                most=np.array([kind.most for kind in kinds], dtype=np.float64),
                rank=np.zeros(len(kinds), dtype=np.int32),
            ),
            hosts=HostRules(
                caps=_lists([[row for row, _ in entries] for entries in caps]),
                most=np.array([most for entries in caps for _, most in entries], dtype=np.int32),
                required=np.ones(sum(map(len, caps)), dtype=np.bool_),
                counts=_lists([[row for row, of in enumerate(rows) if of == group] for group in range(len(groups))]),
                present=present.reshape(len(rows), len(nodes)),
            ),
            spreads=SpreadRules(
                owned=obeyed,
                counts=obeyed,
                key=np.zeros(len(rules), dtype=np.int32),
                mode=np.array([rule.mode for rule in rules], dtype=np.int8),
                skew=np.array([rule.skew for rule in rules], dtype=np.int32),
                least_domains=np.ones(len(rules), dtype=np.int32),
                present=np.array([self.in_zones(rule, nodes) for rule in rules], dtype=np.int32).reshape(-1, ZONES),
                eligible=np.ones((len(rules), ZONES), dtype=np.bool_),
                steady=np.ones(len(rules), dtype=np.bool_),
            ),
            pools=Pools(allowance=np.array([100]), left=np.full((1, width), np.inf)),
            suits_shape=suits,
            suits_kind=np.ascontiguousarray(suits[:, [kind.shape for kind in kinds]]),
        )

    def _host_rows(self) -> tuple[list[int], list[list[tuple[int, int]]]]:
        """The group that each row of counts is about, and by group the rows that it obeys, with the most there."""
        rows: list[int] = []
        caps: list[list[tuple[int, int]]] = [[] for _ in self.groups]
        for group, most in sorted(self.caps.items()):
            caps[group].append((len(rows), most - 1))
            rows.append(group)
        for pair in self.apart:
            for group, other in (pair, pair[::-1]):
                caps[group].append((len(rows), 0))
                rows.append(other)
        return rows, caps

    @staticmethod
    def in_zones(rule: ZoneRule, nodes: Sequence[Node]) -> list[int]:
        """How many pods of nodes a rule counts in each zone."""
        found = [0] * ZONES
        for node in nodes:
            found[node.zone] += sum(group in rule.groups for group in node.pods)
        return found

    def zones_allow(self, kept: Sequence[Node], come: Counter[tuple[int, int]]) -> bool:
        """Whether all rules about zones hold when so many guests, by group and zone, come beside nodes that stay."""
        for rule in self.zone_rules:
            more = [sum(come[group, zone] for group in rule.groups) for zone in range(ZONES)]
            if not rule.allows(self.in_zones(rule, kept), more):
                return False
        return True

    def may_join(self, group: int, there: Sequence[int]) -> bool:
        """Whether the pods on a machine let another one come."""
        enemies = {pair[1 - at] for pair in self.apart for at in (0, 1) if pair[at] == group}
        return there.count(group) < self.caps.get(group, 1000) and enemies.isdisjoint(there)

    def cheapest(self) -> float:
        """The price of the cheapest fleet of all: tries which nodes stay and what is bought."""
        movable = [node for node in self.nodes if node.movable]
        fixed = [node for node in self.nodes if not node.movable]
        best = sum(node.price for node in self.nodes)
        for size in range(len(movable) + 1):
            for kept in combinations(movable, size):
                paid = sum(node.price for node in (*fixed, *kept))
                gone = [node for node in movable if not any(node is stays for stays in kept)]
                guests = sorted(pod for node in gone for pod in node.pods)
                for bought in self._purchases(best - paid, len(guests)):
                    price = paid + sum(kind.price for kind in bought)
                    if price < best and self._fit(guests, [*fixed, *kept], bought):
                        best = price
        return best

    def _purchases(self, money: float, most: int) -> Iterator[tuple[Kind, ...]]:
        for size in range(most + 1):
            for bought in combinations_with_replacement(self.kinds, size):
                scarce = all(sum(kind is other for other in bought) <= kind.most for kind in bought)
                if scarce and sum(kind.price for kind in bought) < money:
                    yield bought

    def _fit(self, guests: Sequence[int], kept: Sequence[Node], bought: Sequence[Kind]) -> bool:
        """Whether all guests, in the order of their groups, find room, by trying all places for one after the other."""
        machines = (*kept, *bought)
        room = [list(node.free) for node in kept] + [list(kind.room) for kind in bought]
        held = [list(node.pods) for node in kept] + [[] for _ in bought]
        takes = [node.takes for node in kept] + [2] * len(bought)
        come: Counter[tuple[int, int]] = Counter()

        def place(number: int, first: int) -> bool:
            if number == len(guests):
                return self.zones_allow(kept, come)
            group = guests[number]
            pod = self.groups[group]
            for at in range(first, len(room)):
                space, place_of = room[at], (group, machines[at].zone)
                allowed = self.suits[pod.signature][machines[at].shape] and (takes[at] or pod.exempt)
                fits = all(f >= r for f, r in zip(space, pod.requests, strict=True))
                if allowed and fits and self.may_join(group, held[at]):
                    room[at] = [f - r for f, r in zip(space, pod.requests, strict=True)]
                    held[at].append(group)
                    come[place_of] += 1
                    # Equal pods change places without a difference.
                    done = place(number + 1, at if guests[number + 1 : number + 2] == [group] else 0)
                    come[place_of] -= 1
                    held[at].pop()
                    room[at] = space
                    if done:
                        return True
            return False

        return place(0, 0)


def _lists(rows: Sequence[Sequence[int]]) -> Lists:
    start = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    return Lists(start, np.array([item for row in rows for item in row], dtype=np.int32))


_SIZES = st.tuples(st.integers(1, 7), st.integers(0, 5))
_PRICES = st.integers(1, 40).map(lambda cents: cents / 10)
_ZONE = st.integers(0, 1)
_MODES = st.sampled_from((SPREAD, SPREAD, APART, TOGETHER))
_ROOMS = st.tuples(st.integers(0, 12), st.integers(0, 10))


@st.composite
def tiny_fleets(draw: st.DrawFn) -> Tiny:
    """Fleets of up to three nodes and up to nine pods that may move."""
    suits = draw(st.sampled_from((((1, 1), (1, 1)), ((1, 0), (1, 1)), ((1, 0), (0, 1)))))
    groups = draw(st.lists(st.builds(Pod, _SIZES, st.integers(0, 1), st.booleans()), min_size=1, max_size=3))
    numbers = st.integers(0, len(groups) - 1)
    node = st.builds(
        Node,
        price=_PRICES,
        free=_ROOMS,
        pods=st.lists(numbers, max_size=3).map(tuple),
        movable=st.sampled_from((True, True, False)),
        takes=st.sampled_from((0, 1, 2, 2)),
        shape=st.integers(0, 1),
        zone=_ZONE,
    )
    nodes = draw(st.lists(node, min_size=1, max_size=3))
    kind = st.builds(Kind, _PRICES, _ROOMS, st.integers(0, 1), st.sampled_from((np.inf, np.inf, 1.0)), _ZONE)
    kinds = draw(st.lists(kind, max_size=3))
    capped = draw(st.dictionaries(numbers, st.integers(1, 2), max_size=2))
    pairs = draw(st.sampled_from([(), *((pair,) for pair in combinations(range(len(groups)), 2))]))
    rule = st.builds(ZoneRule, st.frozensets(numbers, min_size=1, max_size=2), _MODES, st.integers(1, 2))
    rules = draw(st.lists(rule, max_size=2))
    return Tiny(tuple(groups), tuple(nodes), tuple(kinds), suits, capped, pairs, tuple(rules))
