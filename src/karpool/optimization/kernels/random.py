"""Random numbers whose state is an argument: the same seed gives the same search, whatever runs beside."""

import numpy as np

from karpool.cluster.arrays import Array
from karpool.packing.kernels import inner

_SHIFTS = (np.uint64(12), np.uint64(25), np.uint64(27))
_FACTOR = np.uint64(2685821657736338717)
_TOP = np.uint64(11)
_UNIT = 1.0 / 9007199254740992.0


@inner
def uniform(random: Array) -> float:
    """The next number from 0 up to 1, by xorshift*."""
    x = random[0]
    x ^= x >> _SHIFTS[0]
    x ^= x << _SHIFTS[1]
    x ^= x >> _SHIFTS[2]
    random[0] = x
    return np.float64((x * _FACTOR) >> _TOP) * _UNIT


@inner
def below(random: Array, most: int) -> int:
    """The next whole number from 0 up to `most`."""
    return int(uniform(random) * most)
