"""What the controller needs of a cluster: a clock, an actuator, a catalog and budgets; and its settings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from karpool.catalog.instance_types import Catalog
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.execution.actions import Action
from karpool.execution.fresh_facts import FreshFacts

Task = Callable[[], object]
T = TypeVar("T")


class Clock(Protocol):
    """The time, and tasks to run later: one at a time, none while the actions of another are executed."""

    @property
    def moment(self) -> datetime:
        """The time now, as far as is known: for what is written down."""

    @property
    def earliest(self) -> datetime:
        """The earliest time that it can be: for what becomes allowed by passing time; it stands still in doubt."""

    @property
    def latest(self) -> datetime:
        """The latest time that it can be: for what becomes forbidden by passing time."""

    @property
    def doubt(self) -> str:
        """Why the time cannot be trusted; empty if it can."""

    def after(self, delay: float, task: Task) -> None:
        """Run a task so many seconds from now."""

    def when(self, moment: datetime, task: Task) -> None:
        """Run a task when a moment has certainly come, or now if that is past."""


class Actuator(Protocol):
    """Executes actions as `execution.actions` describes them."""

    def execute(self, actions: Sequence[Action], *, alive: Callable[[], bool], in_order: bool = False) -> None:
        """Execute actions as long as `alive()`; `in_order` stops at the first failure."""


class CatalogSource(Protocol):
    """The source of the catalog: whoever launches instances."""

    @property
    def catalog(self) -> Catalog:
        """What can be launched now; another object when something changed."""


class PdbSource(Protocol):
    """The source of PodDisruptionBudgets and of the pods they cover."""

    def pdbs(self) -> PdbLimits:
        """What the budgets allow now."""


FactsRead = Callable[[FreshFacts], object]


class FactSource(Protocol):
    """What the API server has now, whatever is cached."""

    def read(self, nodes: Sequence[str], done: FactsRead) -> None:
        """Read nodes and their pods, then call `done` with them: at once, or as a task of the clock."""


Distrusted = Callable[[], Mapping[str, str]]
"""Why what is known of a kind cannot be trusted now, by its plural; empty while all can."""


def nothing_distrusted() -> Mapping[str, str]:
    """Where objects do not come from watches."""
    return {}


class Beside(Protocol):
    """Runs work that takes long beside the tasks of the clock."""

    def __call__(self, work: Callable[[], T], done: Callable[[T | None, float], object]) -> None:
        """Run work, then `done` as a task of the clock: with what came of it, None if it failed, and the seconds."""


def at_once(work: Callable[[], T], done: Callable[[T | None, float], object]) -> None:
    """Work that time stands still for, as in a simulation."""
    done(work(), 0.0)


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often the controller polls, and how long it waits, in seconds."""

    poll: float = 10.0
    """How often to look for nodes to disrupt."""
    patience: float = 10.0
    """The longest wait after passes without a command; each wait is twice as long as the last."""
    refresh: float = 60.0
    """How long a pass without a command holds when no object changes: budgets open and ages grow."""
    validation: float = 15.0
    """How long a decision has to stay valid before it is executed."""
    deletion_costs: float = 60.0
    """How often deletion costs of pods are written."""
    search: float = 60.0
    """How long after a global search the next one may begin, at least."""
    batch_idle: float = 1.0
    batch_most: float = 10.0
    latency: float = 0.1
    """How long changes are gathered before they are reconciled."""


@dataclass(frozen=True, slots=True)
class Duties:
    """What this controller does itself; whatever it does not do, another one in the cluster does."""

    disrupts: bool = True
    provisions: bool = True
    manages_lifecycle: bool = True
    """Follows NodeClaims from launch to readiness, marks them, and gives them up."""
