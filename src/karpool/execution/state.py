"""What execution remembers between two passes: when to try again. All of it may be lost at any moment."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from karpool.disruption.brakes.failures import FailedCommand
from karpool.disruption.brakes.readiness import Lapse
from karpool.execution.settings import ExecutionSettings
from karpool.execution.tickets import Ticket
from karpool.model.nodepool import NodeClaim

FIRST_RETRY: Final = timedelta(milliseconds=100)
LAST_RETRY: Final = timedelta(seconds=10)
_MOST_DOUBLINGS: Final = 7


class Attempt(NamedTuple):
    tries: int
    again: datetime

    @property
    def at(self) -> datetime:
        """When it was made."""
        return self.again - _pause_after(self.tries)


class WaitOver(NamedTuple):
    """A pod of a node that drains is let go, or the node, though pods that went before are not ready elsewhere."""

    command: str
    node: str
    object: str
    message: str


class RolledBack(NamedTuple):
    """A command that has just failed, and what its nodes remember of that."""

    ticket: Ticket
    failure: FailedCommand


class RefusedAction(NamedTuple):
    """What the API server said instead of creating a replacement; `final`: it certainly did not create it."""

    message: str
    final: bool


@dataclass(frozen=True, slots=True)
class ExecutionState:
    evictions: Mapping[str, Attempt] = field(default_factory=dict)
    """By the uid of a pod."""
    terminations: Mapping[str, datetime] = field(default_factory=dict)
    """When to ask again for the termination of an instance, by the uid of its NodeClaim."""
    reboots: Mapping[str, datetime] = field(default_factory=dict)
    """When to ask again for the reboot of an instance, by the uid of its NodeClaim."""
    missing: Mapping[str, datetime] = field(default_factory=dict)
    """Since when a replacement is missing, by its name."""
    refused: Mapping[str, RefusedAction] = field(default_factory=dict)
    """Replacements that were not created, by their names."""
    rolled_back: tuple[RolledBack, ...] = ()
    """The commands that the last pass gave up, each told once."""
    nominations: Mapping[str, datetime] = field(default_factory=dict)
    """Until when a node expects pods, by its name."""
    guests: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The pods that such a node expects, as far as they are known."""
    recorded: Mapping[tuple[str, str, str], datetime] = field(default_factory=dict)
    """Until when an event is not recorded again, by kind, name and reason."""
    blocked_by_pdb: bool = False
    """Whether a command waits for a PodDisruptionBudget; only then does a change of one matter."""
    lapses: Mapping[str, Lapse] = field(default_factory=dict)
    """Pods that were moved and that nobody made again, by controller."""
    held_back: frozenset[str] = frozenset()
    """Nodes whose pods wait until others, which went before, are ready elsewhere."""
    waits_over: tuple[WaitOver, ...] = ()
    """The pods that the last pass let go because the wait was over."""
    requeue_at: datetime | None = None
    """When to run again even if no object changes; None: only after a change."""
    unread: frozenset[str] = frozenset()
    """Nodes to read from the API server, and then to run again."""


def after_attempt(previous: Attempt | None, now: datetime) -> Attempt:
    """The next attempt is due after 100 ms, then twice as long each time, up to 10 s."""
    tries = previous.tries if previous else 0
    return Attempt(tries + 1, now + _pause_after(tries + 1))


def _pause_after(tries: int) -> timedelta:
    return min(LAST_RETRY, FIRST_RETRY * (1 << min(tries - 1, _MOST_DOUBLINGS)))


def nominate(
    state: ExecutionState,
    nodes: Iterable[str],
    now: datetime,
    settings: ExecutionSettings,
    guests: Mapping[str, frozenset[str]] | None = None,
) -> ExecutionState:
    """Remember that pods are on their way to nodes, so that these are not disrupted meanwhile; `guests`: which ones."""
    nominated = dict.fromkeys(nodes, now + settings.nomination)
    before = {name: keys for name, keys in state.guests.items() if name not in nominated}
    return replace(state, nominations={**state.nominations, **nominated}, guests={**before, **(guests or {})})


def nominated(state: ExecutionState, claim_of: Callable[[str], NodeClaim | None], now: datetime) -> frozenset[str]:
    """The nodes that pods are on their way to; a claim nominated before it had a node is resolved by its name."""
    names = frozenset(name for name, until in state.nominations.items() if now < until)
    claims = [claim for name in names if (claim := claim_of(name)) is not None]
    return names.union(claim.status.node_name for claim in claims if claim.status.node_name)
