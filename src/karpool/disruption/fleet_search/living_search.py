"""A global search in a cluster that lives: a target is kept by names, and followed command by command.

Nothing is searched here. A pass that wants a search leaves a request; whoever runs it hands the answer in. Each command
is worked out anew from the cluster as it is: a target says what to try, the engine says what may be done. What need not
wait for an earlier command goes on beside it. Until the target is reached or given up, other consolidation waits.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from karpool.disruption.command import Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.fleet_search.fleet import Fleet, fleet_of
from karpool.disruption.fleet_search.global_search import ExchangeStep, next_step, search_eviction_price
from karpool.disruption.fleet_search.pursuit import Pursuit
from karpool.disruption.fleet_search.target import (
    Answer,
    ComingNode,
    FleetNames,
    Guest,
    NamedTarget,
    SearchRequest,
    fingerprint,
    names_of,
)
from karpool.disruption.policies import HAIR
from karpool.disruption.settings import DisruptionSettings
from karpool.optimization.problem import TAKES_GUESTS
from karpool.optimization.search import TargetFleet, resumed

_POLISH: Final = 300
"""Moves that mend a target when the cluster has changed since it was found."""
_PATIENCE: Final = timedelta(minutes=10)
"""How long a target waits for its own command, for windows to open and for budgets."""
_MOST_REPEATS: Final = 5
"""How often a command may be decided and not be carried out."""


class Ending(StrEnum):
    """Why a target is not followed any more."""

    REACHED = "reached"
    NOT_WORTH_IT = "not-worth-it"
    REFUSED = "refused"
    NOT_STARTED = "not-started"


class TargetEnd(NamedTuple):
    """A target that is not followed any more, and why."""

    ending: Ending
    message: str
    target: NamedTarget


@dataclass(slots=True)
class _Issued:
    """A command that was decided, and what of the target it takes along."""

    command: Command
    opened: tuple[ComingNode, ...]
    """New nodes of the target."""
    moves: tuple[tuple[Guest, str | ComingNode], ...]
    """Which pods go where: to a node by its name, or to a new node of the target."""
    begun: bool = False

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes that go."""
        return frozenset(self.command.nodes)

    def take_from(self, target: NamedTarget) -> None:
        """Let a target be what is left of it without this command."""
        target.going -= self.nodes
        self._count(target, -1)
        target.opened += self.opened
        target.coming = [new for new in target.coming if all(new is not opened for opened in self.opened)]

    def give_back(self, target: NamedTarget) -> None:
        """Let a target have what was taken from it: the command was dropped."""
        target.going |= self.nodes
        self._count(target, 1)
        target.opened = [new for new in target.opened if all(new is not opened for opened in self.opened)]
        target.coming += self.opened

    def _count(self, target: NamedTarget, change: int) -> None:
        for guest, place in self.moves:
            counted = target.hosts.get(place) if isinstance(place, str) else place.guests
            if counted is not None and (change > 0 or counted[guest] > 0):
                counted[guest] += change


class LivingSearch:
    """What a global search keeps from pass to pass."""

    def __init__(self) -> None:
        self.request: SearchRequest | None = None
        """The search that is wanted or under way."""
        self.target: NamedTarget | None = None
        self.rests_until: datetime | None = None
        """When the next search may be asked for."""
        self._ended: list[TargetEnd] = []
        self._searches = 0
        self._fruitless = ""
        self._near = False
        """Whether the next search is for one command, because a fleet that takes many was out of reach."""
        self._issued: list[_Issued] = []
        """Commands of the target that were decided and are not over."""
        self._dropped = 0
        """How often in a row some were decided and none was carried out."""
        self._stuck_since: datetime | None = None

    @property
    def holds(self) -> bool:
        """Whether other consolidation waits: for the answer of a search, or for a target."""
        return self.request is not None or self.target is not None

    @property
    def leaving(self) -> frozenset[str]:
        """The names of nodes that the target removes sooner or later."""
        if self.target is None:
            return frozenset()
        return frozenset(self.target.going).union(*(entry.nodes for entry in self._issued))

    def answered(self, answer: Answer | None, rests_until: datetime) -> None:
        """Take the answer of the search that was asked for, None if it failed; do not ask again before a moment."""
        request, self.request = self.request, None
        self.rests_until = rests_until
        self.target = None if answer is None else answer.target
        if request is not None and answer is not None and self.target is None:
            self._fruitless = request.fingerprint
        self._issued, self._stuck_since, self._dropped = [], None, 0

    def take_ended(self) -> tuple[TargetEnd, ...]:
        """Targets that have ended since this was last asked."""
        ended, self._ended = tuple(self._ended), []
        return ended

    def commands(self, decision_pass: DecisionPass) -> tuple[Command, ...]:
        """The next command on the way to the target; without a target a search is asked for."""
        if self.request is not None:
            return ()
        self._note_progress(decision_pass.context)
        if self.target is not None:
            command = self._follow(decision_pass, self.target)
            if command is not None:
                return (command,)
        if self.target is None:
            self._ask(decision_pass)
        return ()

    # -- searches ------------------------------------------------------------------------------------------------

    def _ask(self, decision_pass: DecisionPass) -> None:
        """Ask for a search, unless there was one a moment ago, or one that found nothing in the same fleet."""
        now = decision_pass.context.now
        if self.rests_until is not None and now < self.rests_until and not self._near:
            return
        fleet = fleet_of(decision_pass, by_size=True)
        if not fleet.problem.nodes.searchable.any():
            return
        mark = fingerprint(fleet.problem)
        if mark == self._fruitless:
            return
        settings = decision_pass.context.settings
        names = names_of(decision_pass, fleet)
        self.request = SearchRequest(names, settings, self._searches, now, mark, near=self._near)
        self._searches += 1
        self._near = False

    # -- the target ----------------------------------------------------------------------------------------------

    def _note_progress(self, context: DecisionContext) -> None:
        """Take note of what has become of the commands that were decided."""
        policies, there, target = context.policies, context.snapshot.nodes.rows, self.target
        issued, self._issued = self._issued, []
        if target is None:
            return
        dropped, began = False, False
        for entry in issued:
            goes = not entry.nodes.isdisjoint(policies.in_command)
            if goes:
                self._issued.append(entry)
            if not goes and not entry.begun and not entry.nodes.isdisjoint(there):
                dropped = True
                entry.give_back(target)
            elif entry.nodes.isdisjoint(policies.decided):
                entry.begun = target.begun = began = True
        self._dropped = 0 if began else self._dropped + dropped

    def _follow(self, decision_pass: DecisionPass, target: NamedTarget) -> Command | None:
        """The next command of a target, None while it has to wait or when it is given up."""
        context = decision_pass.context
        target.going.intersection_update(context.snapshot.nodes.rows)
        if not target.going:
            if self._issued and self._may_wait(context.now):
                return None
            self._end(Ending.REACHED, "every node that was to go has gone")
            return None
        names = names_of(decision_pass, fleet_of(decision_pass, by_size=True))
        problem, found = names.fleet.problem, _resumed(names, target, context.settings, mend=not self._issued)
        worth_it = found.cost < problem.price - HAIR
        if worth_it:
            spot_to_spot, near = context.settings.spot_to_spot, target.terms.near
            pursuit = Pursuit(names.fleet, found, spot_to_spot=spot_to_spot, together=near)
            step = next_step(decision_pass, pursuit)
            if step is not None and (not self._issued or _as_planned(step)):
                return self._issue(decision_pass, names.successor(target, found), step)
        hampered = bool(self._issued) or (target.begun and _hampered(names.fleet, target))
        if hampered and self._may_wait(context.now):
            return None
        if worth_it:
            # A fleet that is out of reach within budgets is no reason to do nothing.
            self._near = not target.begun and not target.terms.near
            self._end(Ending.REFUSED, "none of its commands can be carried out")
            return None
        self._end(Ending.NOT_WORTH_IT, "the cluster has changed, and what is left is not worth the evictions")
        return None

    def _issue(self, decision_pass: DecisionPass, target: NamedTarget, step: ExchangeStep) -> Command | None:
        """Decide a command, and go on with the target as it was worked out for it."""
        if self._dropped > _MOST_REPEATS:
            self._end(Ending.NOT_STARTED, "its command was decided again and again, and never carried out")
            return None
        target.opened = [new for entry in self._issued for new in entry.opened]
        issued = _issued(decision_pass, step, target)
        if issued is not None:
            issued.take_from(target)
            self._issued.append(issued)
        self.target, self._stuck_since = target, None
        return step.outcome.command

    def _may_wait(self, now: datetime) -> bool:
        """Whether a target that cannot be followed now is kept all the same."""
        self._stuck_since = self._stuck_since or now
        return now - self._stuck_since < _PATIENCE

    def _end(self, ending: Ending, message: str) -> None:
        if self.target is not None:
            self._ended.append(TargetEnd(ending, message, self.target))
        self.target, self._stuck_since = None, None
        self._issued, self._dropped = [], 0


def _issued(decision_pass: DecisionPass, step: ExchangeStep, target: NamedTarget) -> _Issued | None:
    """What a command takes along of its target."""
    command, pods = step.outcome.command, decision_pass.context.snapshot.pods
    if command is None:
        return None
    opened = {
        claim: target.coming[number]
        for number, claim in zip(step.exchange.opened, step.outcome.directed, strict=True)
        if claim >= 0
    }
    moves: list[tuple[Guest, str | ComingNode]] = []
    for move in command.places:
        row = pods.rows[move.pod]
        place = move.target if isinstance(move.target, str) else opened.get(move.target)
        if place is not None:
            moves.append(((int(pods.class_of[row]), int(pods.labels_of[row])), place))
    return _Issued(command, tuple(opened.values()), tuple(moves))


def _as_planned(step: ExchangeStep) -> bool:
    """Whether a command launches nothing but nodes of the target."""
    launched = 0 if step.outcome.command is None else len(step.outcome.command.replacements)
    return launched == sum(claim >= 0 for claim in step.outcome.directed)


def _resumed(names: FleetNames, target: NamedTarget, settings: DisruptionSettings, *, mend: bool) -> TargetFleet:
    """What has become of a target; mended only if it may be, and is not worth it as it is."""
    problem, terms = names.fleet.problem, target.terms
    for moves in (0, _POLISH) if mend else (0,):
        found = resumed(
            problem,
            names.wish(target),
            eviction_price=search_eviction_price(settings, near=terms.near),
            seed=settings.seed,
            moves=moves,
            usable=names.usable(heaviest=terms.heaviest),
            most_gone=problem.pools.allowance if terms.near else None,
        )
        if found.cost < problem.price - HAIR:
            break
    return found


def _hampered(fleet: Fleet, target: NamedTarget) -> bool:
    """Whether time may make more of a target possible: a window, a budget, or a node that is not ready yet."""
    nodes = fleet.problem.nodes
    awaited = target.going.union(target.hosts)
    return any(
        not nodes.searchable[number] if name in target.going else nodes.takes[number] != TAKES_GUESTS
        for number, name in enumerate(fleet.names)
        if name in awaited or name not in target.known
    )
