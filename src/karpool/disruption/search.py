"""Which sets of candidates are tried: prefixes of an ordered list, the longest that works found by halving."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")
MOST_TOGETHER: Final = 100


def longest_prefix(members: Sequence[T], attempt: Callable[[Sequence[T]], R | None]) -> R | None:
    """What `attempt` gives for the longest prefix of at least two that halving finds to work, or None."""
    low, high = 1, min(len(members), MOST_TOGETHER) - 1
    best = None
    while low <= high:
        middle = (low + high) // 2
        found = attempt(members[: middle + 1])
        if found is None:
            high = middle - 1
        else:
            best, low = found, middle + 1
    return best
