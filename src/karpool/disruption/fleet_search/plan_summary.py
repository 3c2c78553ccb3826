"""What a plan comes to: how its price falls with the pods that it evicts, and what no plan could go below."""

from collections.abc import Iterable
from dataclasses import dataclass

from karpool.disruption.command import Command


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A plan carried out up to some step: how many pods it has evicted, and what the cluster costs then."""

    evictions: int
    price: float


@dataclass(frozen=True, slots=True)
class BlockerCost:
    """What a blocker costs: by how much the least price would be lower without it; and how many nodes it keeps."""

    code: str
    price: float
    nodes: int


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A price that no plan can go below, how that was found out, and what stands in the way of a lower one."""

    price: float
    method: str
    blockers: tuple[BlockerCost, ...] = ()


def curve_of(price: float, commands: Iterable[Command]) -> tuple[CurvePoint, ...]:
    """The price of a cluster before the first command, and after each of them, against the evictions so far."""
    points = [CurvePoint(0, price)]
    for command in commands:
        last = points[-1]
        disturbed = len(command.evicted) + len(command.ended)
        points.append(CurvePoint(last.evictions + disturbed, last.price - command.savings))
    return tuple(points)
