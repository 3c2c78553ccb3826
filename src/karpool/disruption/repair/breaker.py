"""The breaker: when too much of a pool is unhealthy, something else than its nodes is broken, and none is repaired."""

from typing import Final, NamedTuple

from karpool.disruption.reasons import ReasonCode
from karpool.model.reasons import Reason

MOST_UNHEALTHY_PERCENT: Final = 20


class PoolHealth(NamedTuple):
    """How many nodes a pool, or a cluster, has, and how many of them have a condition that policies name."""

    nodes: int = 0
    unhealthy: int = 0

    @property
    def allowed(self) -> int:
        """So many may be unhealthy."""
        return -(-self.nodes * MOST_UNHEALTHY_PERCENT // 100)


def breaker(health: PoolHealth, about: str) -> Reason | None:
    """Why no node is repaired, if too many are unhealthy."""
    if health.unhealthy <= health.allowed:
        return None
    message = (
        f"{health.unhealthy} of {health.nodes} nodes are unhealthy, more than {health.allowed} "
        f"({MOST_UNHEALTHY_PERCENT}%), so none is repaired"
    )
    return Reason(ReasonCode.TOO_MANY_UNHEALTHY, message, about)
