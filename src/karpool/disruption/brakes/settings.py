"""What a user may choose about brakes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrakeSettings:
    """Settings of all brakes; the defaults are those of the command line."""

    most_unready_percent: float = 45.0
    """Of all nodes, and of those of a zone: when more are unready, nothing is disrupted."""
    unready_nodes_allowed: int = 3
    """So many nodes may be unready whatever their part of all nodes is."""
    least_nodes_of_zone: int = 3
    """A zone with fewer nodes is not looked at alone."""
