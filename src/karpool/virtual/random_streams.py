"""Random numbers from a seed: each concern has a stream of its own, so that two policies meet the same workload."""

import math
from hashlib import blake2b
from random import Random
from typing import Final

_BYTES: Final = 8
_WHOLE: Final = 256.0**_BYTES


def random_stream(seed: int, *concern: str) -> Random:
    return Random("/".join((str(seed), *concern)))


def random_fraction(seed: int, *concern: str) -> float:
    """A number from 0 to 1 that depends on the seed and on a name alone, not on the order of calls."""
    digest = blake2b("/".join((str(seed), *concern)).encode(), digest_size=_BYTES).digest()
    return int.from_bytes(digest) / _WHOLE


def waiting_time(seed: int, mean: float, *concern: str) -> float:
    """A time from the exponential distribution with this mean."""
    return -mean * math.log(1.0 - random_fraction(seed, *concern))


def poisson(random: Random, mean: float) -> int:
    limit, count, product = math.exp(-min(mean, 500.0)), 0, random.random()
    while product > limit:
        count += 1
        product *= random.random()
    return count
