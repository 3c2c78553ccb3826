"""The one question of the engine, and the shape of its answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from karpool.cluster.constraints import Preferences
from karpool.model.requirements import Requirements


class MinValues(StrEnum):
    """What to do when too few distinct values are left: refuse, or make do with fewer."""

    STRICT = "Strict"
    BEST_EFFORT = "BestEffort"


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that hold for a whole run of decisions."""

    preferences: Preferences = Preferences.RESPECT
    min_values: MinValues = MinValues.STRICT
    seed: int = 0
    reserved_capacity: bool = True


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that would have to be made: from which pool, as which types (cheapest first), for which pods."""

    pool: str
    requirements: Requirements
    instance_types: tuple[str, ...]
    pods: tuple[str, ...]
    reservations: tuple[str, ...] = ()
    min_values_relaxed: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Where each pod would go: the name of a node, the index of a new one, or nowhere."""

    placed: Mapping[str, str | int]
    new_nodes: tuple[NewNode, ...]
    unplaced: tuple[str, ...]
