"""Exponential backoff with jitter."""

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Waits that double from `first` to `most` seconds, each shortened by up to a half at random."""

    first: float = 0.5
    most: float = 30.0
    _failures: int = field(default=0, init=False)

    def next(self) -> float:
        """The seconds to wait after one more failure."""
        longest = min(self.most, self.first * 2.0 ** min(self._failures, 60))
        self._failures += 1
        return longest * random.uniform(0.5, 1)

    def reset(self) -> None:
        self._failures = 0
