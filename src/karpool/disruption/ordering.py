"""In which order candidates are looked at."""

from collections import defaultdict
from collections.abc import Iterable

from karpool.disruption.costs import savings_ratio
from karpool.disruption.settings import Order
from karpool.disruption.situation import Standing


def in_order(standings: Iterable[Standing], order: Order) -> list[Standing]:
    """Candidates sorted: least trouble first, or most money saved for the trouble first; then by name."""
    if order is Order.COST:
        return sorted(standings, key=lambda one: (one.lifetime_cost, one.name))
    return sorted(standings, key=lambda one: (-savings_ratio(one.price, one.cost), one.name))


def in_turns(standings: Iterable[Standing]) -> list[Standing]:
    """The same candidates with every pool getting its turn: the first of each, then the second of each."""
    by_pool: dict[str, list[Standing]] = defaultdict(list)
    for standing in standings:
        by_pool[standing.pool_name].append(standing)
    rounds = max(map(len, by_pool.values()), default=0)
    return [pool[turn] for turn in range(rounds) for pool in by_pool.values() if turn < len(pool)]
