"""Fleet problems small enough to try every fleet, and the search that does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement

import numpy as np
from hypothesis import strategies as st

from karpool.optimization.problem import (
    FleetProblem,
    Groups,
    HostRules,
    Kinds,
    Lists,
    Nodes,
    Pools,
    SpreadRules,
)


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


@dataclass(frozen=True)
class Kind:
    """A kind of new nodes; `shape` says which signatures it suits."""

    price: float
    room: tuple[int, ...]
    shape: int = 0
    most: float = np.inf


@dataclass(frozen=True)
class Tiny:
    """A fleet: `suits[signature][shape]` says which machines pods may be on."""

    groups: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    kinds: tuple[Kind, ...]
    suits: tuple[tuple[int, ...], ...] = ((1,),)
    caps: Mapping[int, int] = field(default_factory=dict)
    """By group: how many of its pods a machine may hold."""

    def problem(self) -> FleetProblem:
        """The same as arrays."""
        groups, nodes, kinds = self.groups, self.nodes, self.kinds
        width = len(groups[0].requests) if groups else 1
        held = [sorted((group, node.pods.count(group)) for group in set(node.pods)) for node in nodes]
        signature = np.array([pod.signature for pod in groups], dtype=np.int32)
        suits = np.array(self.suits, dtype=np.uint8).reshape(len(self.suits), -1)
        capped = sorted(self.caps)
        rows = {group: row for row, group in enumerate(capped)}
        present = np.array([[node.pods.count(group) for node in nodes] for group in capped], dtype=np.int32)
        nothing = [[] for _ in groups]
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
                domain=np.zeros((len(nodes), 0), dtype=np.int32),
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
                domain=np.zeros((len(kinds), 0), dtype=np.int32),
                pool=np.zeros(len(kinds), dtype=np.int32),
                capacity=np.zeros((len(kinds), width), dtype=np.int64),
                spot=np.zeros(len(kinds), dtype=np.bool_),
                machine=np.arange(len(kinds), dtype=np.int32),
                most=np.array([kind.most for kind in kinds], dtype=np.float64),
                rank=np.zeros(len(kinds), dtype=np.int32),
            ),
            hosts=HostRules(
                caps=_lists([[rows[group]] if group in rows else [] for group in range(len(groups))]),
                most=np.array([self.caps[group] - 1 for group in capped], dtype=np.int32),
                required=np.ones(len(capped), dtype=np.bool_),
                counts=_lists([[rows[group]] if group in rows else [] for group in range(len(groups))]),
                present=present.reshape(len(capped), len(nodes)),
            ),
            spreads=SpreadRules(
                owned=_lists(nothing),
                counts=_lists(nothing),
                key=np.zeros(0, dtype=np.int32),
                mode=np.zeros(0, dtype=np.int8),
                skew=np.zeros(0, dtype=np.int32),
                least_domains=np.zeros(0, dtype=np.int32),
                present=np.zeros((0, 0), dtype=np.int32),
                eligible=np.zeros((0, 0), dtype=np.bool_),
                steady=np.zeros(0, dtype=np.bool_),
            ),
            pools=Pools(allowance=np.array([100]), left=np.full((1, width), np.inf)),
            suits_shape=suits,
            suits_kind=np.ascontiguousarray(suits[:, [kind.shape for kind in kinds]]),
        )

    def cheapest(self) -> float:
        """The price of the cheapest fleet of all: tries which nodes stay and what is bought."""
        movable = [node for node in self.nodes if node.movable]
        fixed = [node for node in self.nodes if not node.movable]
        best = sum(node.price for node in self.nodes)
        for size in range(len(movable) + 1):
            for kept in combinations(movable, size):
                paid = sum(node.price for node in (*fixed, *kept))
                guests = [pod for node in movable if not any(node is stays for stays in kept) for pod in node.pods]
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
        """Whether every guest finds room, by trying all places for one after the other."""
        room = [list(node.free) for node in kept] + [list(kind.room) for kind in bought]
        held = [list(node.pods) for node in kept] + [[] for _ in bought]
        takes = [node.takes for node in kept] + [2] * len(bought)
        shapes = [machine.shape for machine in (*kept, *bought)]

        def place(number: int) -> bool:
            if number == len(guests):
                return True
            group = guests[number]
            pod = self.groups[group]
            for at, space in enumerate(room):
                allowed = self.suits[pod.signature][shapes[at]] and (takes[at] or pod.exempt)
                under = held[at].count(group) < self.caps.get(group, 1000)
                if allowed and under and all(f >= r for f, r in zip(space, pod.requests, strict=True)):
                    room[at] = [f - r for f, r in zip(space, pod.requests, strict=True)]
                    held[at].append(group)
                    done = place(number + 1)
                    room[at] = space
                    held[at].pop()
                    if done:
                        return True
            return False

        return place(0)


def _lists(rows: Sequence[Sequence[int]]) -> Lists:
    start = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    return Lists(start, np.array([item for row in rows for item in row], dtype=np.int32))


_SIZES = st.tuples(st.integers(1, 7), st.integers(0, 5))
_PRICES = st.integers(1, 40).map(lambda cents: cents / 10)
_ROOMS = st.tuples(st.integers(0, 12), st.integers(0, 10))


@st.composite
def tiny_fleets(draw: st.DrawFn, caps: bool = True) -> Tiny:  # noqa: FBT001, FBT002
    """Fleets of up to three nodes and up to seven pods that may move."""
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
    )
    nodes = draw(st.lists(node, min_size=1, max_size=3))
    kind = st.builds(Kind, _PRICES, _ROOMS, st.integers(0, 1), st.sampled_from((np.inf, np.inf, 1.0)))
    kinds = draw(st.lists(kind, max_size=3))
    capped = draw(st.dictionaries(numbers, st.integers(1, 2), max_size=2)) if caps else {}
    return Tiny(tuple(groups), tuple(nodes), tuple(kinds), suits, capped)
