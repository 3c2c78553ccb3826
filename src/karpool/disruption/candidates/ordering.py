"""In which order candidates are looked at."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.costs import lifetime_cost
from karpool.disruption.settings import Order


def in_order(candidates: Iterable[Candidate], order: Order, now: datetime) -> list[Candidate]:
    """Candidates sorted: least trouble first, or most money saved for the trouble first; then by name."""
    if order is Order.COST:
        return sorted(candidates, key=lambda node: (_lifetime_cost(node, now), node.name))
    return sorted(candidates, key=attrgetter("by_ratio"))


def _lifetime_cost(candidate: Candidate, now: datetime) -> float:
    claim = candidate.state.claim
    return 0.0 if claim is None else lifetime_cost(candidate.eviction_cost, claim, now)


def in_turns(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The same candidates with every pool getting its turn: the first of each, then the second of each."""
    listed = list(candidates)
    if len({candidate.pool_name for candidate in listed}) <= 1:
        return listed
    by_pool: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in listed:
        by_pool[candidate.pool_name].append(candidate)
    rounds = max(map(len, by_pool.values()))
    return [pool[turn] for turn in range(rounds) for pool in by_pool.values() if turn < len(pool)]
