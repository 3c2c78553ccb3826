"""Means of several runs with their 95% confidence intervals, by Student's t."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final

_NORMAL: Final = 1.959963984540054
# The 97.5% quantiles of Student's t for 1 to 30 degrees of freedom.
# fmt: off
_STUDENT: Final = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of runs and the interval that holds the true one in 19 cases of 20; one run has no interval."""

    mean: float
    low: float | None
    high: float | None


def student(freedom: int) -> float:
    """How many standard errors the interval reaches to either side; beyond the table by Cornish and Fisher's series."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = _NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def estimate(values: Sequence[float | None]) -> Estimate | None:
    """The mean of what is known, and its interval; None if nothing is."""
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    mean = fmean(known)
    if len(known) == 1:
        return Estimate(mean, None, None)
    reach = student(len(known) - 1) * stdev(known) / math.sqrt(len(known))
    return Estimate(mean, mean - reach, mean + reach)


def paired(values: Sequence[float | None], base: Sequence[float | None]) -> Estimate | None:
    """The mean difference of runs on the same seeds, which is known better than either mean."""
    both = zip(values, base, strict=True)
    return estimate([None if value is None or other is None else value - other for value, other in both])
