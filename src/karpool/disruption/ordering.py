"""In which order candidates are looked at."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter

from karpool.disruption.costs import lifetime_cost
from karpool.disruption.settings import Order
from karpool.disruption.situation import Standing


def in_order(standings: Iterable[Standing], order: Order, now: datetime) -> list[Standing]:
    """Candidates sorted: least trouble first, or most money saved for the trouble first; then by name."""
    if order is Order.COST:
        return sorted(standings, key=lambda one: (_lifetime_cost(one, now), one.name))
    return sorted(standings, key=attrgetter("by_ratio"))


def _lifetime_cost(standing: Standing, now: datetime) -> float:
    claim = standing.state.claim
    return 0.0 if claim is None else lifetime_cost(standing.eviction_cost, claim, now)


def in_turns(standings: Iterable[Standing]) -> list[Standing]:
    """The same candidates with every pool getting its turn: the first of each, then the second of each."""
    by_pool: dict[str, list[Standing]] = defaultdict(list)
    for standing in standings:
        by_pool[standing.pool_name].append(standing)
    if len(by_pool) == 1:
        return next(iter(by_pool.values()))
    rounds = max(map(len, by_pool.values()), default=0)
    return [pool[turn] for turn in range(rounds) for pool in by_pool.values() if turn < len(pool)]
