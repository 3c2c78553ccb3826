"""The result of a placement by name."""

from collections.abc import Mapping
from dataclasses import dataclass

from karpool.model.requirements import Requirements


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node to create: from which pool, as which types (cheapest first), for which pods."""

    pool: str
    requirements: Requirements
    instance_types: tuple[str, ...]
    pods: tuple[str, ...]
    reservations: tuple[str, ...] = ()
    min_values_relaxed: bool = False
    drivers: tuple[str, ...] = ()
    """The drivers whose devices its pods count on."""


@dataclass(frozen=True, slots=True)
class PlacementResult:
    """Where each pod would go: the name of a node, the index of a new one, or nowhere."""

    placed: Mapping[str, str | int]
    new_nodes: tuple[NewNode, ...]
    unplaced: tuple[str, ...]
