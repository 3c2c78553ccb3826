"""Axes of plots, with a few round numbers on them."""

import math
from typing import Final, NamedTuple

_MOST_TICKS: Final = 5


class Axis(NamedTuple):
    """Round numbers from below the least value to above the most, and where they are drawn."""

    ticks: tuple[float, ...]
    start: float
    end: float

    def at(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return round(self.start + (self.end - self.start) * (value - low) / (high - low), 1)


def axis(low: float, high: float, start: float, end: float, *, whole: bool = False) -> Axis:
    """An axis with a few round steps; `whole`: numbers that are counted."""
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / _MOST_TICKS))
    step = next(power * size for size in (1, 2, 2.5, 5, 10) if span / (power * size) <= _MOST_TICKS)
    step = max(1.0, math.ceil(step)) if whole else step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Axis(tuple(step * number for number in range(first, max(last, first + 1) + 1)), start, end)
