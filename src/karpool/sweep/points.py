"""What settings come to: estimates over seeds, which of them are hopeless, and the front of those that are not.

A setting is on the front if no other is as cheap and disturbs as few pods, better in one of both. Savings that come
from pods without nodes are none, so a setting under which pods wait much longer than under another is not on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from karpool.sweep.dimensions import Setting
from karpool.sweep.trial import TrialResult
from karpool.virtual.statistics import Estimate, estimate, paired

MEASURES: Final = ("cost", "evictions", "pending_pod_seconds", "nodes_launched", "node_hours")
OBJECTIVES: Final = ("cost", "evictions")
_WAITS_MORE: Final = 0.01
"""Of the time of all pods."""
Numbers = Mapping[str, Sequence[float]]
"""By measure: what was measured under each seed, in their order."""


@dataclass(frozen=True, slots=True)
class Point:
    """A setting and what it comes to."""

    number: int
    setting: Setting
    seeds: int
    """How many seeds were tried."""
    estimates: Mapping[str, Estimate]
    waiting: float
    """The share of their time that pods had no node."""
    stopped: bool = False
    """Whether its further seeds were left out, because it was hopeless."""
    waits: bool = False
    """Whether pods wait so much longer than under another setting that its cost says nothing."""
    on_front: bool = False

    @property
    def cost(self) -> float:
        return self.estimates["cost"].mean

    @property
    def evictions(self) -> float:
        return self.estimates["evictions"].mean


def numbers_of(by_seed: Sequence[Sequence[TrialResult]]) -> dict[str, list[float]]:
    """The results under each seed, added up over the inputs."""
    return {name: [float(sum(getattr(one, name) for one in results)) for results in by_seed] for name in MEASURES}


def estimates_of(numbers: Numbers) -> dict[str, Estimate]:
    """Means with their intervals."""
    found = {name: estimate(values) for name, values in numbers.items()}
    return {name: entry for name, entry in found.items() if entry is not None}


def waiting_share(by_seed: Sequence[Sequence[TrialResult]]) -> float:
    """The share of the time of all pods that they had no node; as many pods as at the end stand for all of it."""
    results = [one for entries in by_seed for one in entries]
    lived = sum(one.seconds * max(1, one.pods_at_end) for one in results)
    return sum(one.pending_pod_seconds for one in results) / lived if lived else 0.0


def hopeless(numbers: Numbers, others: Sequence[Numbers]) -> bool:
    """Whether another setting is certainly no dearer and disturbs no more, and is better in one of both.

    Certainly: on the same seeds, in 19 cases of 20.
    """
    return any(_worse(numbers, other) for other in others)


def _worse(numbers: Numbers, other: Numbers) -> bool:
    lows = []
    for name in OBJECTIVES:
        count = min(len(numbers[name]), len(other[name]))
        more = paired(numbers[name][:count], other[name][:count])
        if more is None or more.low is None or more.low < 0:
            return False
        lows.append(more.low)
    return any(low > 0 for low in lows)


def with_front(points: Sequence[Point]) -> list[Point]:
    """The points, told which are on the front and under which pods wait too long."""
    least = min((point.waiting for point in points), default=0.0)
    judged = [replace(point, waits=point.waiting > least + _WAITS_MORE) for point in points]
    eligible = [point for point in judged if not point.stopped and not point.waits]
    best = {point.number for point in eligible if not any(_beats(other, point) for other in eligible)}
    return [replace(point, on_front=point.number in best) for point in judged]


def _beats(one: Point, other: Point) -> bool:
    """Whether one is better; of equal ones the first is."""
    if one.cost > other.cost or one.evictions > other.evictions:
        return False
    equal = one.cost == other.cost and one.evictions == other.evictions
    return one.number < other.number if equal else True
