"""How the engine places pods: what holds for all placements of a run."""

from dataclasses import dataclass
from enum import StrEnum

from karpool.cluster.constraints import Preferences
from karpool.model.scheduling import SpreadConstraint


class MinValues(StrEnum):
    """What to do when fewer distinct values are left than minValues: refuse the types, or lower the minimum."""

    STRICT = "Strict"
    BEST_EFFORT = "BestEffort"


@dataclass(frozen=True, slots=True)
class Options:
    preferences: Preferences = Preferences.RESPECT
    min_values: MinValues = MinValues.STRICT
    seed: int = 0
    reserved_capacity: bool = True
    supply_annotation: str | None = None
    """Only pools with this annotation supply new nodes; None: all that can."""
    ignore_dra_requests: bool = True
    """Whether pods with claims on devices are refused, instead of having their claims looked at."""
    default_spread: tuple[SpreadConstraint, ...] = ()
    """What the scheduler gives to pods without a topology spread constraint of their own."""
