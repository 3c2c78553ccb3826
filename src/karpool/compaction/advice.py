"""What experience says of a configuration: values that are allowed and will hardly do what was meant."""

import math
from collections.abc import Iterator
from typing import Final

from karpool.compaction.config import Config, PoolConfig

AUTOSCALER_LIMIT: Final = 0.5
"""Under this ratio Cluster Autoscaler removes nodes by itself, if nobody set another."""


def least_count(limit: float) -> int | None:
    """How many nodes at the limit the others can take the pods of one from; None: however many there are, none can.

    Of n nodes that are used to the limit l, one can go if its l fits in the n - 1 that stay, each with 1 - l free.
    """
    if limit >= 1:
        return None
    return max(2, math.ceil(round(1 / (1 - limit), 9)))


def advice(config: Config) -> Iterator[str]:
    """A sentence for each value of an enabled pool that will hardly do what was meant."""
    for name, pool in config.node_pools.items():
        if pool.enabled and pool.cpu_limit is not None:
            yield from (f"pool {name}: {text}" for text in _of_pool(pool, pool.cpu_limit))


def _of_pool(pool: PoolConfig, limit: float) -> Iterator[str]:
    if limit <= AUTOSCALER_LIMIT:
        yield (
            f"scaleDownCPURequestRatioLimit {limit:g} is not above the {AUTOSCALER_LIMIT:g} of Cluster Autoscaler,"
            " which removes such nodes by itself; write more, such as 0.75"
        )
    if pool.check_fit:
        return  # no node goes whose pods have no other place, however few are under-used
    least, count = least_count(limit), pool.required_count
    if least is None:
        yield (
            f"scaleDownCPURequestRatioLimit {limit:g} calls every node under-used that is not full, and without"
            " checkFit one is drained though the others have no room for its pods; write less than 1, such as 0.75"
        )
    elif count < least:
        yield (
            f"scaleDownRequiredUnderutilizedNodeCount {count} is few for a limit of {limit:g} without checkFit: the"
            f" others may have no room for the pods of one, so that a new node comes for them; write {least} or more"
        )
