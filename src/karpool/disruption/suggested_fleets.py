"""The new nodes of one pool that would hold the pods of some nodes for the least, among several fleets that are tried.

The engine fills as few new nodes as it can, which may be dearer than more of them that are smaller. So it also fills
nodes of one type alone, and nodes no dearer than that, for each of the types that promise most.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.replacements import ReplacementFinder
from karpool.packing.engine import Engine
from karpool.packing.refusal_messages import NODES, sentence
from karpool.packing.refusals import refusals

_MOST_TYPES: Final = 10
_MOST_ALIKE: Final = 2
"""Of how many types that come to the same number of nodes each is tried, so that nodes of several sizes are."""


@dataclass(frozen=True, slots=True)
class SuggestedFleet:
    """New nodes: how many of each type and capacity type, what they cost together, and how many pods find no place.

    The price is None where that of a machine is unknown, and where pods find no place: then it would not hold them.
    """

    types: tuple[tuple[str, int], ...]
    capacity_types: tuple[tuple[str, int], ...]
    price: float | None
    unplaced: int
    refusal: str = ""
    """The first pod that finds no place, and why."""

    @property
    def nodes(self) -> int:
        return sum(count for _, count in self.types)


class FleetFinder:
    """Fills new nodes of the one pool of a context with all pods of some nodes that need a place."""

    def __init__(self, context: DecisionContext, nodes: Iterable[str]) -> None:
        self._context, snapshot = context, context.snapshot
        self._rows = [snapshot.nodes.rows[name] for name in nodes]
        pods = [at for row in self._rows for at in snapshot.pods_on(row) if snapshot.pods.get(at).reschedulable]
        self._pods = [at for at in pods if not context.expected(snapshot.pods.get(at))]
        self._greedy: SuggestedFleet | None = None

    @property
    def usable(self) -> frozenset[str]:
        """The types that the pool could launch."""
        return frozenset(self._context.engine.tables.pools.types.names[self._usable()].tolist())

    def cheapest(self, today: Collection[str]) -> SuggestedFleet:
        """The cheapest fleet of any types; `today`: types that are tried in any case."""
        greedy = self._of_any_types()
        if greedy.unplaced:
            # Fewer types hold no pod that all of them together do not.
            return greedy
        return _cheapest([greedy, *map(self._of, self._choices(self._promising(today, self.usable)))])

    def cheapest_of_one_type(self, allowed: Collection[str]) -> SuggestedFleet | None:
        """The cheapest fleet of which all nodes are of one type; None if no type is known to hold the pods."""
        if self._of_any_types().unplaced:
            return None
        fleets = [self._of((kind,)) for kind in self._promising((), allowed)]
        return _cheapest(fleets) if fleets else None

    def _promising(self, today: Collection[str], allowed: Collection[str]) -> list[str]:
        """The types that may hold all pods for the least, if nothing but amounts counted, and those of today."""
        pools, snapshot = self._context.engine.tables.pools, self._context.snapshot
        names = pools.types.names
        types = np.array([at for at in self._usable() if names[at] in allowed], dtype=np.int64)
        if not len(types) or not self._pods:
            return []
        prices = self._context.engine.prices(pools.templates[0].requirements)[types]
        width = len(snapshot.resources)
        asked = snapshot.classes.requests[snapshot.pods.class_of[self._pods]][:, :width]
        room = pools.room[0][types][:, :width]
        holds = np.isfinite(prices) & (room >= asked.max(axis=0)).all(axis=1)
        types, prices, room = types[holds], prices[holds], room[holds]
        # Rules between pods may ask for more nodes than amounts do; how many, the engine has told.
        least = max(1, self._of_any_types().nodes)
        number = np.maximum(_nodes_needed(asked.sum(axis=0), room), least)
        ordered = np.lexsort((names[types].astype(str), number * prices))
        alike = Counter[int]()
        chosen: list[str] = []
        for at in ordered.tolist():
            alike[int(number[at])] += 1
            if alike[int(number[at])] <= _MOST_ALIKE and len(chosen) < _MOST_TYPES:
                chosen.append(str(names[types[at]]))
        return [*chosen, *sorted(set(today).intersection(names[types].tolist()).difference(chosen))]

    def _choices(self, kinds: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Sets of types to fill nodes of: each type alone, and with all that are no dearer."""
        pools, usable = self._context.engine.tables.pools, self._usable()
        if not kinds:
            return
        prices = self._context.engine.prices(pools.templates[0].requirements)
        seen = set[tuple[str, ...]]()
        for number in pools.types.numbers(kinds).tolist():
            no_dearer = usable[prices[usable] <= prices[number]]
            for types in ([number], no_dearer.tolist()):
                choice = tuple(pools.types.names[types].tolist())
                if choice not in seen:
                    seen.add(choice)
                    yield choice

    def _usable(self) -> Array:
        pools = self._context.engine.tables.pools
        return np.array(pools.usable.row(0) if pools.templates else [], dtype=np.int64)

    def _of_any_types(self) -> SuggestedFleet:
        if self._greedy is None:
            self._greedy = self._filled(self._context.engine)
        return self._greedy

    def _of(self, kinds: Collection[str]) -> SuggestedFleet:
        """The fleet if the pool could launch some types only."""
        engine, chosen = self._context.engine, frozenset(kinds)
        types = tuple(entry for entry in engine.catalog.types if entry.name in chosen)
        return self._filled(Engine(engine.snapshot, replace(engine.catalog, types=types), engine.options))

    def _filled(self, engine: Engine) -> SuggestedFleet:
        snapshot = engine.snapshot
        with engine.what_if() as trial:
            trial.remove(self._rows)
            placement = trial.place(self._pods, closed=np.ones(len(snapshot.nodes.live), dtype=np.uint8))
            finder = ReplacementFinder(self._context, engine)
            made = [finder.at_any_price(placement, claim) for claim in range(placement.claims)]
            unplaced = placement.unplaced
            refusal = _why(engine, unplaced[0]) if unplaced else ""
        new = [entry for entry in made if entry is not None]
        known = [entry.price for entry in new if entry.price is not None]
        return SuggestedFleet(
            types=_counted(entry.instance_types[0] for entry in new),
            capacity_types=_counted(entry.capacity_type for entry in new if entry.capacity_type),
            price=sum(known) if len(known) == len(made) and not unplaced else None,
            unplaced=len(unplaced),
            refusal=refusal,
        )


def _why(engine: Engine, pod: int) -> str:
    """A pod that finds no place, and why the pool has no node for it; that today's nodes are gone is known."""
    listed = refusals(engine, pod)
    return f"Pod {engine.snapshot.pods.get(pod).key}: {sentence([entry for entry in listed if entry.what != NODES])}"


def _nodes_needed(asked: Array, room: Array) -> Array:
    """How many nodes of each type have as much of everything as all pods ask for together."""
    columns = np.flatnonzero(asked)
    needed: Array = np.ceil(asked[columns] / room[:, columns]).max(axis=1, initial=1)
    return needed


def _cheapest(fleets: Sequence[SuggestedFleet]) -> SuggestedFleet:
    """The cheapest fleet that holds all pods, of equal ones that with the fewest nodes; else the first."""
    priced = [(fleet.price, fleet.nodes, fleet.types, fleet) for fleet in fleets if fleet.price is not None]
    return min(priced, key=lambda entry: entry[:3])[3] if priced else fleets[0]


def _counted(values: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """How often each value is there, the most frequent first."""
    return tuple(sorted(Counter(values).items(), key=lambda item: (-item[1], item[0])))
