"""What the controller stands on, and what a cluster must offer so that it can work there."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from karpool.catalog.instance_types import Catalog
from karpool.disruption.pdbs import PdbLimits
from karpool.execution.actions import Action

Task = Callable[[], object]


class Clock(Protocol):
    """A time, and things to do later. One deed at a time, none while the actions of another are carried out."""

    @property
    def moment(self) -> datetime:
        """The time now."""

    def after(self, delay: float, task: Task) -> None:
        """Do something so many seconds from now."""

    def when(self, moment: datetime, task: Task) -> None:
        """Do something at a moment, or now if that is past."""


class Actuator(Protocol):
    """Carries out actions as `execution.actions` describes them."""

    def execute(self, actions: Sequence[Action], *, alive: Callable[[], bool], in_order: bool = False) -> None:
        """Have actions carried out as long as whoever asked for them lives; `in_order` ends with the first failure."""


class CatalogSource(Protocol):
    """Who launches machines."""

    @property
    def catalog(self) -> Catalog:
        """What can be had now; another object when something changed."""


class PdbSource(Protocol):
    """Who knows which PodDisruptionBudgets cover which pods."""

    def pdbs(self) -> PdbLimits:
        """The budgets as they stand now."""

    def covered(self, budgets: Collection[str]) -> Iterable[str]:
        """The keys of the pods that any of these budgets covers."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often the controller looks, and how long it waits, in seconds."""

    poll: float = 10.0
    """How often to look for nodes that could go."""
    patience: float = 10.0
    """Up to how long to rest after looks that found nothing, each rest twice as long."""
    refresh: float = 60.0
    """How long "nothing to do" is believed when nothing seems to have changed: budgets open, ages grow."""
    validation: float = 15.0
    """How long a decision has to stand before it is carried out."""
    batch_idle: float = 1.0
    batch_most: float = 10.0
    latency: float = 0.1
    """How long changes are gathered before somebody looks at them."""


@dataclass(frozen=True, slots=True)
class Duties:
    """What this controller does itself; whatever it does not do, another one in the cluster does."""

    disrupts: bool = True
    provisions: bool = True
    manages_lifecycle: bool = True
    """Follows NodeClaims from launch to readiness, marks them, and gives them up."""
