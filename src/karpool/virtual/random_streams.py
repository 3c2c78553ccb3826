"""Chance that a seed decides: every concern draws for itself, so that two policies meet the same workload."""

import math
from hashlib import blake2b
from random import Random
from typing import Final

_BYTES: Final = 8
_WHOLE: Final = 256.0**_BYTES


def stream(seed: int, *concern: str) -> Random:
    """Random numbers of one concern, in an order of its own."""
    return Random("/".join((str(seed), *concern)))


def share(seed: int, *concern: str) -> float:
    """A number from 0 to 1 that depends on the seed and on a name alone, whoever asks first."""
    digest = blake2b("/".join((str(seed), *concern)).encode(), digest_size=_BYTES).digest()
    return int.from_bytes(digest) / _WHOLE


def waiting_time(seed: int, mean: float, *concern: str) -> float:
    """How long something with this mean waiting time takes to happen."""
    return -mean * math.log(1.0 - share(seed, *concern))


def poisson(random: Random, mean: float) -> int:
    """How many of many rare things happen."""
    limit, count, product = math.exp(-min(mean, 500.0)), 0, random.random()
    while product > limit:
        count += 1
        product *= random.random()
    return count
