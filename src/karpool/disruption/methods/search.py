"""Which sets of candidates are tried, and how many new nodes each may use.

A strategy proposes and a judge decides, so that a strategy is added by writing one function and naming it here:
it gets ordered candidates and a judge, and returns the command of the best set that it finds, or None.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Command
from karpool.disruption.settings import GLOBAL, PREFIX
from karpool.wire.problems import suggestion

MOST_TOGETHER: Final = 100


class Proposal(NamedTuple):
    """Nodes that might go together, with at most so many new nodes in their place."""

    candidates: Sequence[Candidate]
    most_new_nodes: int = 1


class Judged(NamedTuple):
    """The place of a proposal among those that were judged, and the command that it leads to."""

    place: int
    command: Command


Judge = Callable[[Sequence[Proposal]], Judged | None]
"""Finds the first of several proposals that works; proposals that are judged together cost less."""
Strategy = Callable[[Sequence[Candidate], Judge], Command | None]


def longest_prefix(candidates: Sequence[Candidate], judge: Judge) -> Command | None:
    """The longest prefix of at least two candidates that halving finds to work, replaced by at most one node."""
    low, high = 1, min(len(candidates), MOST_TOGETHER) - 1
    best = None
    while low <= high:
        lengths = _lengths_if_none_works(low, high)
        judged = judge([Proposal(candidates[:length]) for length in lengths])
        if judged is None:
            break
        place, best = judged
        low, high = lengths[place], high if place == 0 else lengths[place - 1] - 2
    return best


def _lengths_if_none_works(low: int, high: int) -> list[int]:
    """The lengths that halving tries if none of them works: all are known before the first one is tried."""
    lengths = []
    while low <= high:
        middle = (low + high) // 2
        lengths.append(middle + 1)
        high = middle - 1
    return lengths


STRATEGIES: Final[Mapping[str, Strategy]] = {PREFIX: longest_prefix, GLOBAL: longest_prefix}
"""By name; a global search tries sets as well, once its target is reached."""


class UnknownStrategyError(ValueError):
    """Settings name a search strategy that does not exist."""


def strategy(name: str) -> Strategy:
    if name not in STRATEGIES:
        hint = suggestion(name, STRATEGIES)
        message = f"there is no search strategy {name!r}; there are {', '.join(sorted(STRATEGIES))}{hint}"
        raise UnknownStrategyError(message)
    return STRATEGIES[name]
