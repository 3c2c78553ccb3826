"""Settings of the compactor for all pools: intervals, timeouts, and the label that names a node's pool."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.model.group_sizes import Sizes

_JITTER: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    needed_marked_time: timedelta = timedelta(seconds=300)
    """How long a node must have been marked before it is drained."""
    minimum_node_age: timedelta = timedelta(seconds=1200)
    sleep: timedelta = timedelta(seconds=300)
    """About how long to wait between two passes."""
    pool_label: str | None = None
    """The label that names a node's pool; None: the first well-known one that a node has."""
    sizes: Mapping[str, Sizes] = field(default_factory=dict)
    """How small and large pools may be where somebody says so beside their autoscaler."""
    drain_timeout: timedelta = timedelta(minutes=15)
    """When a drain that has not ended is given up."""
    removal_timeout: timedelta = timedelta(hours=1)
    """When an empty node that no autoscaler removed is uncordoned."""
    retry_after: timedelta = timedelta(hours=1)
    """How long a node is left alone after its scale-down was given up."""
    brakes: BrakeSettings = field(default_factory=BrakeSettings)
    drain_interval: timedelta = timedelta(seconds=10)
    """How often to check nodes that are being drained."""


DEFAULTS: Final = CompactionSettings()


def jittered(sleep: timedelta, chance: float) -> timedelta:
    """The time to sleep, up to a quarter shorter or longer; `chance` is a random number from 0 to 1."""
    return sleep * (1 - _JITTER + 2 * _JITTER * chance)
