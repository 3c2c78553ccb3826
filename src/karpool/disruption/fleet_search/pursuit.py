"""The way to a target fleet, command by command: which nodes go next, and which new nodes that takes.

Pods of a group are interchangeable. So a target is a number of places for each group, on nodes that stay and on new
ones, and a node can go as soon as there are places for all of its pods. Each command takes as many nodes as budgets
allow, and opens new nodes only if what goes costs more.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from karpool.cluster.arrays import Array
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.fleet_search.fleet import Fleet
from karpool.disruption.fleet_search.lots import Place, lots_of
from karpool.disruption.methods.search import MOST_TOGETHER
from karpool.disruption.policies import HAIR
from karpool.optimization.problem import SPREAD, FleetProblem
from karpool.optimization.search import TargetFleet

_STARTS: Final = 24
"""With how many nodes a command that opens new ones is tried to begin."""
_MOST_OPENED: Final = 24
ENOUGH: Final = 12
"""How many nodes a command that opens new ones has, if others than the first few can pay for themselves."""
_LOOK_AHEAD: Final = 60
"""How many nodes are looked at for the first and for each next one of such a command."""


class Exchange(NamedTuple):
    """Nodes that could go together next, and new nodes to open, by their numbers."""

    nodes: tuple[int, ...]
    opened: tuple[int, ...]


@dataclass(slots=True)
class TargetNode:
    """A new node of a target."""

    kind: int
    guests: Mapping[int, int]
    price: float
    name: str | None = None
    """Once it is there."""


@dataclass(slots=True)
class _Draft:
    """An exchange in the making."""

    left: dict[str, int]
    room: Array
    """By lot: places that nobody of this exchange has taken."""
    closed: Array
    """By new node: whether it could still be opened."""
    nodes: dict[int, None] = field(default_factory=dict)
    """In the order in which they came."""
    opened: list[int] = field(default_factory=list)
    gain: float = 0.0


class Pursuit:
    """A target on its way."""

    def __init__(self, fleet: Fleet, target: TargetFleet, *, spot_to_spot: bool, together: bool = False) -> None:
        problem = fleet.problem
        self._together = together
        self.fleet = fleet
        self.going: set[int] = set(target.gone)
        self.new = [
            TargetNode(machine.number, machine.guests, float(problem.kinds.price[machine.number]))
            for machine in target.new
        ]
        self._spot_to_spot = spot_to_spot
        self._lots = lots_of(problem, target)
        lots = len(self._lots.groups)
        self._room = np.zeros(lots, dtype=np.int64)
        self._guests = np.zeros((len(self.new), lots), dtype=np.int32)
        for lot, places in enumerate(self._lots.places):
            for place, count in places.items():
                if place >= 0:
                    self._room[lot] += count
                else:
                    self._guests[-1 - place, lot] += count
        self._new_price = np.array([max(new.price, HAIR) for new in self.new])
        self._new_machine = problem.kinds.machine[[new.kind for new in self.new]]
        self._needs = {node: problem.pods_on(node) for node in target.gone}
        self._need_lots = {node: np.array(list(needs), dtype=np.int64) for node, needs in self._lots.needs.items()}
        self._need_counts = {node: np.array(list(needs.values())) for node, needs in self._lots.needs.items()}
        self._domains = _Domains(problem, problem.spreads.present.astype(np.int64))

    def worth_it(self, eviction_price: float) -> bool:
        """Whether what is left of the target saves more than its evictions cost."""
        problem, going = self.fleet.problem, sorted(self.going)
        saved = float(problem.nodes.price[going].sum()) - sum(new.price for new in self.new if new.name is None)
        evictions = float((problem.pods_of(np.array(going, dtype=np.int64)) * problem.groups.weight).sum())
        return saved > eviction_price * evictions - HAIR

    def ends_with(self, exchange: Exchange) -> bool:
        """Whether nothing is left of the target after an exchange."""
        return self.going.issubset(exchange.nodes)

    # -- the next exchange ---------------------------------------------------------------------------------------

    def next_exchange(
        self,
        ready: Mapping[int, Candidate],
        left: Mapping[str, int],
        enough: int = ENOUGH,
        *,
        fills_first: bool = False,
    ) -> Exchange | None:
        """Nodes to remove next among those that may go now; `left`: how many of each pool.

        An exchange that opens new nodes grows until it pays, and then until it has `enough` nodes.

        First those that need new nodes, as long as others can pay for them, then those that need none; all at once, if
        the target was made for that. `fills_first`: the other way round, because the fuller the nodes are that stay,
        the less choice a scheduler has for the pods that new nodes are meant for.
        """
        if self._together and self._may_go_together(ready, left):
            self._together = False
            return Exchange(tuple(sorted(self.going)), tuple(range(len(self.new))))
        price = self.fleet.problem.nodes.price
        order = sorted(ready, key=lambda node: (-price[node] / (1 + self._need_counts[node].sum()), node))
        draft = self._draft(left)
        self._sweep(draft, order, ready)
        filling = Exchange(tuple(draft.nodes), ()) if draft.nodes else None
        if filling is not None and fills_first:
            return filling
        starts = self._starts(order, left, ready)
        for sponsored in (False, True):
            for start in starts:
                exchange = self._grow(start, order, ready, left, sponsored=sponsored, enough=enough)
                if exchange is not None:
                    return exchange
        return filling

    def _may_go_together(self, ready: Mapping[int, Candidate], left: Mapping[str, int]) -> bool:
        """Whether budgets let all nodes of the target go at once."""
        if not self.going.issubset(ready) or len(self.going) > MOST_TOGETHER:
            return False
        taken = Counter(ready[node].pool_name for node in self.going)
        return all(count <= left.get(pool, 0) for pool, count in taken.items())

    def _draft(self, left: Mapping[str, int]) -> _Draft:
        closed = np.array([new.name is None for new in self.new], dtype=np.bool_)
        return _Draft(dict(left), self._room.copy(), closed)

    def _sweep(self, draft: _Draft, order: Iterable[int], ready: Mapping[int, Candidate]) -> None:
        """Add all nodes whose pods have places."""
        for node in order:
            if len(draft.nodes) >= MOST_TOGETHER:
                break
            if (
                node not in draft.nodes
                and draft.left.get(ready[node].pool_name, 0) > 0
                and self._has_places(draft, node)
                and not self._rebuilds(draft.opened, node)
            ):
                self._add(draft, node, ready[node])

    def _has_places(self, draft: _Draft, node: int) -> bool:
        return bool((draft.room[self._need_lots[node]] >= self._need_counts[node]).all())

    def _rebuilds(self, opened: Sequence[int], node: int) -> bool:
        """Whether one of the new nodes is what a node is already, and no cheaper."""
        nodes = self.fleet.problem.nodes
        machine, price = int(nodes.machine[node]), float(nodes.price[node])
        return any(
            int(self._new_machine[number]) == machine and self.new[number].price > price - HAIR for number in opened
        )

    def _add(self, draft: _Draft, node: int, candidate: Candidate) -> bool:
        """Add a node to a draft, if budgets let one more of its pool go."""
        if draft.left.get(candidate.pool_name, 0) <= 0:
            return False
        draft.left[candidate.pool_name] -= 1
        draft.room[self._need_lots[node]] -= self._need_counts[node]
        draft.nodes[node] = None
        draft.gain += float(self.fleet.problem.nodes.price[node])
        return True

    def _starts(self, order: Sequence[int], left: Mapping[str, int], ready: Mapping[int, Candidate]) -> list[int]:
        """Nodes to begin with: those for which the new nodes that they need cost least beside what they save."""
        draft, price = self._draft(left), self.fleet.problem.nodes.price
        if not draft.closed.any():
            return []
        permitted = [node for node in order if left.get(ready[node].pool_name, 0) > 0][:_LOOK_AHEAD]
        rated = [
            (float(self._new_price[opened].sum() - price[node]), node)
            for node in permitted
            if (opened := self._needed(draft, node))
        ]
        return [node for _, node in sorted(rated)[:_STARTS]]

    def _needed(self, draft: _Draft, node: int) -> list[int] | None:
        """The new nodes to open so that a node can go; None if not even all of them would do."""
        lots = self._need_lots[node]
        missing = self._need_counts[node] - np.maximum(draft.room[lots], 0)
        short = missing > 0
        if not short.any():
            return []
        missing = missing[short]
        offered = self._guests[:, lots[short]]
        closed = draft.closed & offered.any(axis=1)
        chosen: list[int] = []
        while missing.any():
            offers = np.minimum(offered, missing).sum(axis=1) * closed
            best = int(np.argmax(offers / self._new_price)) if len(offers) else -1
            if best < 0 or offers[best] == 0:
                return None
            chosen.append(best)
            closed[best] = False
            missing = np.maximum(missing - offered[best], 0)
        return chosen

    def _grow(
        self,
        start: int,
        order: Sequence[int],
        ready: Mapping[int, Candidate],
        left: Mapping[str, int],
        *,
        sponsored: bool,
        enough: int,
    ) -> Exchange | None:
        """Add nodes, and open new ones for them, until what goes costs more than what comes.

        `sponsored`: nodes that need no new one may go with them, and pay for them.
        """
        draft, node = self._draft(left), start
        paying: Exchange | None = None
        if not sponsored:
            order = [other for other in order if not self._has_places(draft, other)]
        while len(draft.opened) < _MOST_OPENED and len(draft.nodes) < MOST_TOGETHER:
            needed = self._needed(draft, node)
            if needed is None or not self._add(draft, node, ready[node]):
                break
            draft.opened.extend(needed)
            draft.closed[needed] = False
            draft.room += self._guests[needed].sum(axis=0)
            draft.gain -= float(self._new_price[needed].sum())
            if any(self._rebuilds(draft.opened, other) for other in draft.nodes):
                break
            self._sweep(draft, order, ready)
            if draft.gain > HAIR and self._may_be_spot(draft):
                paying = Exchange(tuple(draft.nodes), tuple(draft.opened))
                if len(draft.nodes) >= enough:
                    break
            following = self._next(draft, order, ready)
            if following is None:
                break
            node = following
        return paying

    def _next(self, draft: _Draft, order: Sequence[int], ready: Mapping[int, Candidate]) -> int | None:
        """The node to go on with: the one that adds most, or costs least."""
        best, most, looked = None, -np.inf, 0
        for node in order:
            if node in draft.nodes or draft.left.get(ready[node].pool_name, 0) <= 0:
                continue
            needed = self._needed(draft, node)
            if needed is None or self._rebuilds([*draft.opened, *needed], node):
                continue
            gain = float(self.fleet.problem.nodes.price[node] - self._new_price[needed].sum())
            if gain > most:
                best, most = node, gain
            looked += 1
            if looked >= _LOOK_AHEAD:
                break
        return best

    def _may_be_spot(self, draft: _Draft) -> bool:
        """Whether spot nodes may come: not if only spot nodes go, unless the feature gate is on."""
        problem = self.fleet.problem
        if self._spot_to_spot or not any(problem.kinds.spot[self.new[number].kind] for number in draft.opened):
            return True
        return not all(problem.nodes.spot[node] for node in draft.nodes)

    # -- where pods go -------------------------------------------------------------------------------------------

    def destinations(self, exchange: Exchange, ready: Mapping[int, Candidate]) -> dict[int, Place]:
        """By row of a pod the place that it is to have."""
        taken: defaultdict[int, Counter[Place]] = defaultdict(Counter)
        domains = self._domains.copy()
        for node in exchange.nodes:
            domains.leave(self._needs[node], node)
        chosen = {}
        for row, source in ((row, node) for node in exchange.nodes for row in ready[node].pods):
            lot = self.lot_of(row, source)
            place = None if lot is None else self._place(lot, exchange.opened, taken[lot], domains)
            if lot is not None and place is not None:
                taken[lot][place] += 1
                domains.count(self._lots.groups[lot], self._domains_of(place), 1)
                chosen[row] = place
        return chosen

    def lot_of(self, row: int, node: int) -> int | None:
        """The lot of a pod of a node that goes, None if the target does not know it."""
        group = self.fleet.group_of.get(row)
        return None if group is None else self._lots.numbers.get((group, node))

    def _domains_of(self, place: Place) -> Array:
        problem = self.fleet.problem
        domains: Array = problem.nodes.domain[place] if place >= 0 else problem.kinds.domain[self.new[-1 - place].kind]
        return domains

    def _place(self, lot: int, opened: Sequence[int], taken: Mapping[Place, int], domains: "_Domains") -> Place | None:
        group = self._lots.groups[lot]
        places = (
            place
            for place, count in self._lots.places[lot].items()
            if count > taken.get(place, 0)
            and (place >= 0 or self.new[-1 - place].name is not None or -1 - place in opened)
        )
        if not domains.matter(group):
            return next(places, None)
        return min(places, key=lambda place: (domains.crowd(group, self._domains_of(place)), -place), default=None)

    # -- what has happened ---------------------------------------------------------------------------------------

    def settle(self, exchange: Exchange, opened: Sequence[int], came: Mapping[int, Mapping[Place, int]]) -> None:
        """An exchange will be carried out: these new nodes open, and so many pods of each lot come to each place."""
        self._room += self._guests[list(opened)].sum(axis=0)
        for node in exchange.nodes:
            self._domains.leave(self._needs[node], node)
        for lot, places in came.items():
            for place, count in places.items():
                self._domains.count(self._lots.groups[lot], self._domains_of(place), count)
                used = min(count, self._lots.places[lot][place])
                self._lots.places[lot][place] -= used
                self._room[lot] -= used
        self.going.difference_update(exchange.nodes)

    def keep_to(self, there: Collection[str]) -> None:
        """Give up the places on new nodes that are gone: a scheduler may leave one empty, and it goes as such."""
        for number, new in enumerate(self.new):
            if new.name is not None and new.name not in there:
                for lot, places in enumerate(self._lots.places):
                    self._room[lot] -= places.pop(-1 - number, 0)


class _Domains:
    """How many pods each domain has of those that rules count."""

    def __init__(self, problem: FleetProblem, counts: Array) -> None:
        self._problem = problem
        self._counts = counts

    def copy(self) -> "_Domains":
        return _Domains(self._problem, self._counts.copy())

    def matter(self, group: int) -> bool:
        """Whether a group has rules about domains."""
        start = self._problem.spreads.owned.start
        return bool(start[group] < start[group + 1])

    def count(self, group: int, domains: Array, change: int) -> None:
        spreads = self._problem.spreads
        for rule in spreads.counts.row(group).tolist():
            domain = int(domains[spreads.key[rule]])
            if domain >= 0:
                self._counts[rule, domain] += change

    def leave(self, pods: Mapping[int, int], node: int) -> None:
        """Pods leave a node."""
        for group, count in pods.items():
            self.count(group, self._problem.nodes.domain[node], -count)

    def crowd(self, group: int, domains: Array) -> int:
        """How many pods the domains have that the group's own rules about spread count."""
        spreads = self._problem.spreads
        own = [rule for rule in spreads.owned.row(group).tolist() if spreads.mode[rule] == SPREAD]
        places = [(rule, int(domains[spreads.key[rule]])) for rule in own]
        return sum(int(self._counts[rule, domain]) for rule, domain in places if domain >= 0)
