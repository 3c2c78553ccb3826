"""Consolidation towards the cheapest fleet that the rules allow: a target is searched, and followed command by command.

The search works on simplified facts. Every command is placed and judged by the engine, with all rules; what it refuses
is left out. When a target is reached, the next search begins where it ended, until one gains nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from karpool.cluster.arrays import Array
from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Cause, Command
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.fleet import fleet_of
from karpool.disruption.fleet_search.lots import Place
from karpool.disruption.fleet_search.pursuit import ENOUGH, Exchange, Pursuit
from karpool.disruption.methods.evaluate import Outcome
from karpool.disruption.policies import HAIR
from karpool.disruption.settings import DisruptionSettings, Scoring, Weights
from karpool.model.labels import CAPACITY_TYPE, ZONE
from karpool.model.requirements import Requirements, one_of
from karpool.optimization.problem import FleetProblem
from karpool.optimization.search import TargetFleet, Watch, search, search_parts
from karpool.packing.directions import DirectedNode, Directions
from karpool.packing.options import MinValues

_FAR_MOVES: Final = ((1500,), (10000, 3000), (30000, 10000), (120000, 60000))
"""By effort: the moves of each search for a target that takes many commands, from sixty nodes up to a thousand."""
_THOUSAND: Final = 1000
_FEW: Final = 60
"""Fewer nodes take fewer moves, down to those of `_FEWEST`."""
_FEWEST: Final = 10
_NEAR_MOVES: Final = (500, 1500, 4000, 15000)
"""By effort: the moves of a search for one command."""
_NEAR_ROUNDS: Final = (2, 20, 60, 200)
"""By effort: how many such searches there are in a cluster of a hundred nodes; in larger ones there are fewer."""
_FRUITLESS: Final = (1, 1, 2, 4)
"""By effort: after how many searches for one command without a result there is no other."""
_LEAST_PRICE: Final = 0.001
"""Even where evictions cost nothing, a target that disturbs less is easier to reach within budgets."""
_MANY: Final = 200
"""From so many nodes on, a search to which evictions cost nothing begins with a fleet in which all is placed anew."""
_MORE_NEW_NODES: Final = 2
"""How many new nodes a command may open beside those of the target, for pods that were refused where they should go."""
_MOST_REFUSALS: Final = 60
"""After so many refusals in a row a target is given up."""


class GlobalSearch:
    """What a global search keeps from command to command."""

    def __init__(self, only: Pursuit | None = None, enough: int = ENOUGH) -> None:
        """`only`: the one target to follow, nothing is searched then; `enough`: as `Pursuit.next_exchange` has it."""
        self._pursuit = only
        self._searches = only is None
        self._enough = enough
        self._rounds = 0
        self._near = 0
        """How many searches for one command there have been, and how many of the last ones brought nothing."""
        self._fruitless = 0
        self._strict = True
        self._finished = False
        self._opened: dict[int, int] = {}
        """By replacement of the last command: the number of the new node of the target."""

    def commands(self, decision_pass: DecisionPass) -> tuple[Command, ...]:
        """The next command on the way to the target; a new target is searched when the old one is reached."""
        while not self._finished:
            if self._pursuit is None:
                self._finished = not self._searches
                self._pursuit = self._search(decision_pass) if self._searches else None
                continue
            command = self._next(decision_pass, self._pursuit)
            if command is not None:
                self._fruitless = 0
                return (command,)
            self._pursuit = None
        return ()

    def carried_out(self, names: Sequence[str]) -> None:
        """The last command is done, and its replacements have names."""
        if self._pursuit is not None:
            for replacement, number in self._opened.items():
                self._pursuit.new[number].name = names[replacement]
        self._opened = {}

    # -- a target ------------------------------------------------------------------------------------------------

    def _search(self, decision_pass: DecisionPass) -> Pursuit | None:
        """A target that is worth its evictions; None if this search found none."""
        settings = decision_pass.context.settings
        rounds = len(_FAR_MOVES[settings.effort])
        fleet = fleet_of(decision_pass, by_size=True)
        problem = fleet.problem
        usable = of_heaviest_pools(problem) if self._strict else problem.suits_kind
        near = self._rounds >= rounds
        nodes = int(problem.nodes.searchable.sum())
        moves = moves_of(settings.effort, nodes, None if near else self._rounds)
        turn = self._rounds + self._near + 1

        def watch(done: int, price: float) -> bool:
            decision_pass.searching(done, moves, price, turn)
            return True

        target = find_fleet(
            problem,
            settings,
            near=near,
            usable=affordable(problem, usable),
            seed=settings.seed + self._rounds + self._near,
            moves=moves,
            anew=self._rounds == 0 and settings.effective_eviction_price < _LEAST_PRICE and nodes >= _MANY,
            watch=watch,
        )
        gains = target.cost < problem.price - HAIR
        if near:
            self._near += 1
            self._fruitless += 1
            most = max(1, _NEAR_ROUNDS[settings.effort] * 100 // max(nodes, 100))
            self._finished = self._near > most or self._fruitless > _FRUITLESS[settings.effort]
        else:
            self._rounds = self._rounds + 1 if gains else rounds
        if gains and not self._finished:
            return Pursuit(fleet, target, spot_to_spot=settings.spot_to_spot, together=near)
        relaxed = settings.weights is Weights.PREFER and not np.array_equal(usable, problem.suits_kind)
        if self._finished and self._strict and relaxed:
            self._strict, self._finished, self._rounds, self._near, self._fruitless = False, False, 0, 0, 0
        return None

    # -- commands ------------------------------------------------------------------------------------------------

    def _next(self, decision_pass: DecisionPass, pursuit: Pursuit) -> Command | None:
        step = next_step(decision_pass, pursuit, self._enough)
        if step is None:
            return None
        self._settle(decision_pass, pursuit, step.exchange, step.outcome)
        return step.outcome.command

    def _settle(self, decision_pass: DecisionPass, pursuit: Pursuit, exchange: Exchange, outcome: Outcome) -> None:
        """Count on a command being carried out as the engine placed its pods."""
        opened = {claim: number for number, claim in zip(exchange.opened, outcome.directed, strict=True) if claim >= 0}
        nodes = {name: number for number, name in enumerate(pursuit.fleet.names)}
        places: dict[str | int, Place] = dict(nodes.items())
        places.update({new.name: -1 - number for number, new in enumerate(pursuit.new) if new.name is not None})
        places.update({claim: -1 - number for claim, number in opened.items()})
        rows = decision_pass.context.snapshot.pods.rows
        came: defaultdict[int, Counter[Place]] = defaultdict(Counter)
        for move in outcome.command.places if outcome.command is not None else ():
            lot = None if move.source is None else pursuit.lot_of(rows[move.pod], nodes[move.source])
            if lot is not None and move.target in places:
                came[lot][places[move.target]] += 1
        pursuit.settle(exchange, list(opened.values()), came)
        self._opened = opened


def moves_of(effort: int, nodes: int, round_: int | None = 0) -> int:
    """How many moves a search for a whole fleet makes in one of its rounds; without a round: one for one command."""
    few = min(max(nodes, _FEWEST), _FEW) / _FEW
    if round_ is None:
        return round(few * _NEAR_MOVES[effort])
    return round(few * _FAR_MOVES[effort][round_] * max(nodes, _THOUSAND) / _THOUSAND)


def search_eviction_price(settings: DisruptionSettings, *, near: bool) -> float:
    """What a search counts for a plain eviction."""
    price = settings.effective_eviction_price
    return price if near else max(price, _LEAST_PRICE)


def find_fleet(
    problem: FleetProblem,
    settings: DisruptionSettings,
    *,
    near: bool,
    usable: Array,
    seed: int,
    moves: int,
    watch: Watch,
    anew: bool = False,
) -> TargetFleet:
    """A fleet that is wanted; `near`: one that a single command leads to, within budgets."""
    price = search_eviction_price(settings, near=near)
    if near:
        most = problem.pools.allowance
        return search(problem, eviction_price=price, seed=seed, moves=moves, usable=usable, most_gone=most, watch=watch)
    return search_parts(problem, eviction_price=price, seed=seed, moves=moves, usable=usable, anew=anew, watch=watch)


class ExchangeStep(NamedTuple):
    """An exchange, and the command that the engine makes of it."""

    exchange: Exchange
    outcome: Outcome


def next_step(decision_pass: DecisionPass, pursuit: Pursuit, enough: int = ENOUGH) -> ExchangeStep | None:
    """The first exchange on the way to a target that the engine does not refuse."""
    context = decision_pass.context
    pursuit.keep_to(context.snapshot.nodes.rows)
    going = {pursuit.fleet.names[node]: node for node in pursuit.going}
    ready = {going[node.name]: node for node in decision_pass.consolidatable() if node.name in going}
    left = {name: context.allowance(pool, Cause.UNDERUTILIZED).remaining for name, pool in context.pools.items()}
    if not pursuit.worth_it(context.settings.effective_eviction_price):
        return None
    foresees = context.settings.scheduler is not Scoring.ANY
    for _ in range(_MOST_REFUSALS):
        exchange = pursuit.next_exchange(ready, left, enough, fills_first=foresees)
        if exchange is None:
            return None
        outcome = _judged(decision_pass, pursuit, exchange, ready)
        while outcome is None and not exchange.opened and len(exchange.nodes) > 1:
            exchange = Exchange(exchange.nodes[: len(exchange.nodes) // 2], ())
            outcome = _judged(decision_pass, pursuit, exchange, ready)
        if outcome is not None:
            return ExchangeStep(exchange, outcome)
        if exchange.opened and enough > 1:
            enough = 1
        else:
            del ready[exchange.nodes[0]]
    return None


def _judged(
    decision_pass: DecisionPass, pursuit: Pursuit, exchange: Exchange, ready: Mapping[int, Candidate]
) -> Outcome | None:
    """What the engine makes of an exchange; None if it refuses it."""
    candidates = [ready[node] for node in exchange.nodes]
    directions = _directions(decision_pass, pursuit, exchange, pursuit.destinations(exchange, ready))
    evaluator = decision_pass.evaluator
    rows, names = decision_pass.context.snapshot.nodes.rows, pursuit.fleet.names
    later = [rows[names[node]] for node in pursuit.going.difference(exchange.nodes)]
    most = len(exchange.opened) + _MORE_NEW_NODES
    outcome = evaluator.consolidate(candidates, most, directions=directions, avoided=later)
    if outcome.command is None:
        return None
    # Evictions are paid for by the target as a whole, but nothing comes after its last command that could pay for them.
    refusal = decision_pass.not_worth_it if pursuit.ends_with(exchange) else decision_pass.unwanted
    return outcome if refusal(outcome.command, candidates) is None else None


def of_heaviest_pools(problem: FleetProblem) -> Array:
    """What pods may use if a lighter pool takes only those that no heavier one can.

    Pods of a signature are of many sizes: a lighter pool stays open to all of them if it is needed for one.
    """
    unranked = np.iinfo(np.int32).max
    suits, rank, groups = problem.suits_kind, problem.kinds.rank, problem.groups
    if len(np.unique(rank)) <= 1:
        return suits
    usable: Array = np.zeros_like(suits)
    for signature in np.unique(groups.signature).tolist():
        requests = np.unique(groups.requests[groups.signature == signature], axis=0)
        holds = (problem.kinds.room[None, :, :] >= requests[:, None, :]).all(axis=2) & (suits[signature] != 0)
        heaviest = np.where(holds, rank, unranked).min(axis=1)
        chosen = (holds & (rank == heaviest[:, None])).any(axis=0)
        usable[signature] = suits[signature] * chosen
    return usable


def affordable(problem: FleetProblem, usable: Array) -> Array:
    """Leave out kinds that cost more than all nodes together that budgets let go at once."""
    together = 0.0
    for pool in range(len(problem.pools.allowance)):
        prices = np.sort(problem.nodes.price[problem.nodes.searchable & (problem.nodes.pool == pool)])[::-1]
        together += float(prices[: max(0, int(problem.pools.allowance[pool]))].sum())
    kept: Array = (usable * (problem.kinds.price < together)).astype(np.uint8)
    return kept


def _directions(
    decision_pass: DecisionPass, pursuit: Pursuit, exchange: Exchange, chosen: Mapping[int, Place]
) -> Directions:
    """An exchange as wishes to the engine."""
    fleet, rows = pursuit.fleet, decision_pass.context.snapshot.nodes.rows
    order = {number: at for at, number in enumerate(exchange.opened)}
    targets = {}
    for row, place in chosen.items():
        name = fleet.names[place] if place >= 0 else pursuit.new[-1 - place].name
        targets[row] = rows[name] if name is not None else -2 - order[-1 - place]
    spare = float(fleet.problem.nodes.price[list(exchange.nodes)].sum())
    spare -= sum(pursuit.new[number].price for number in exchange.opened)
    new = []
    for number in exchange.opened:
        kind = pursuit.new[number].kind
        dearer = float(fleet.problem.kinds.worst[kind] - fleet.problem.kinds.price[kind])
        anywhere = dearer < spare - HAIR and not _bound_to_domain(fleet.problem, pursuit.new[number].guests)
        spare -= dearer if anywhere else 0.0
        new.append(_directed(decision_pass, pursuit, exchange, number, anywhere=anywhere))
    return Directions(tuple(new), targets)


def _bound_to_domain(problem: FleetProblem, groups: Mapping[int, int]) -> bool:
    """Whether rules about domains concern one of some groups."""
    lists = (problem.spreads.owned.start, problem.spreads.counts.start)
    return any(start[group] < start[group + 1] for group in groups for start in lists)


def _directed(
    decision_pass: DecisionPass, pursuit: Pursuit, exchange: Exchange, number: int, *, anywhere: bool
) -> DirectedNode:
    """A new node of a target as a wish: its type, and others that would hold all of its guests."""
    fleet, new = pursuit.fleet, pursuit.new[number]
    problem, engine = fleet.problem, decision_pass.context.engine
    market = fleet.kinds.markets[int(fleet.kinds.market_of[new.kind])]
    settled = [(CAPACITY_TYPE, market.capacity_type), *([] if anywhere else [(ZONE, market.zone)])]
    extra = Requirements([(key, one_of(value)) for key, value in settled if value])
    pools, machine = engine.tables.pools, int(problem.kinds.machine[new.kind])
    wanted = np.zeros(len(pools.types.types), dtype=np.bool_)
    wanted[machine] = True
    if np.isinf(problem.pools.left[market.template]).all():
        # Limits are charged with the largest type, so only pools without any get a choice.
        asked = sum(count * problem.groups.requests[group] for group, count in new.guests.items())
        wanted |= (pools.room[market.template][:, fleet.columns] >= asked).all(axis=1)
        going = problem.nodes.machine[list(exchange.nodes)]
        wanted[[other for other in going.tolist() if other not in (-1, machine)]] = False
    lowered = engine.options.min_values is MinValues.BEST_EFFORT and pools.minimums_of(market.template)
    # What minimums are lowered to counts all types that fit, not only those of a wish.
    names = None if lowered else tuple(pools.types.names[wanted].tolist())
    return DirectedNode(pools.templates[market.template].name, extra, names)
