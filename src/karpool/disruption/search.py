"""Which sets of candidates are tried: prefixes of an ordered list, the longest that works found by halving."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

R = TypeVar("R")
MOST_TOGETHER: Final = 100


def longest_prefix(count: int, first_working: Callable[[Sequence[int]], tuple[int, R] | None]) -> R | None:
    """What the longest prefix of at least two out of `count` that halving finds to work gives, or None.

    `first_working` is asked for the first of several lengths that works: its place among them, and what it gives.
    """
    low, high = 1, min(count, MOST_TOGETHER) - 1
    best = None
    while low <= high:
        lengths = _if_none_works(low, high)
        found = first_working(lengths)
        if found is None:
            break
        at, best = found
        low, high = lengths[at], high if at == 0 else lengths[at - 1] - 2
    return best


def _if_none_works(low: int, high: int) -> list[int]:
    """The lengths that halving tries if none of them works: each is known before the first one is tried."""
    lengths = []
    while low <= high:
        middle = (low + high) // 2
        lengths.append(middle + 1)
        high = middle - 1
    return lengths
