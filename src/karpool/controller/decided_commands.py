"""Commands that were decided and have not started: they are about to be decided again, or their nodes are being read.

Others may be decided meanwhile, as if these had started: their nodes are neither candidates nor room, what replaces
them is on its way, their pods have the places that they go to, and budgets and rates count them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from karpool.controller.session import Session
from karpool.disruption.brakes.ledger import evictions_by_namespace
from karpool.disruption.command import Command
from karpool.disruption.policies_in_force import Policies
from karpool.disruption.settings import GLOBAL
from karpool.execution.start import NotStartedError, destinations, replacement_claims
from karpool.execution.tickets import command_id
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.provisioning.inflight import as_launched


@dataclass(frozen=True, slots=True)
class DecidedCommand:
    """A command, its id, and the NodeClaims that would be created for it."""

    command: Command
    identity: str
    claims: tuple[NodeClaim, ...]

    def places(self) -> Iterator[tuple[str, str]]:
        """By pod that moves: the node, or the NodeClaim, that it goes to."""
        for move in self.command.moves:
            if isinstance(move.target, str):
                yield move.pod, move.target
            elif move.target < len(self.claims):
                yield move.pod, self.claims[move.target].name


@dataclass(slots=True)
class Round:
    """Commands that were decided one right after the other, by their numbers, to be decided again and begun together.

    What begins earlier sends pods to nodes of what begins later.
    """

    began: datetime
    commands: dict[int, Command] = field(default_factory=dict)

    @property
    def nodes(self) -> list[str]:
        """The nodes that are to go."""
        return sorted({name for command in self.commands.values() for name in command.nodes})


class DecidedCommands:
    """The commands that a session has decided and not started."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._decided: dict[int, DecidedCommand] = {}
        self._last = 0

    def add(self, commands: Sequence[Command], to: Round, now: datetime) -> None:
        """Take note of commands that were decided, and add them to a round."""
        for command in commands:
            self._last += 1
            self._put(self._last, command, command_id(command, now))
            to.commands[self._last] = command

    def again(self, number: int, command: Command, of: Round) -> None:
        """Take note of what has become of a command."""
        self._put(number, command, self._decided[number].identity)
        of.commands[number] = command

    def identity(self, number: int) -> str:
        """The id of a command, which the names of its replacements follow from."""
        return self._decided[number].identity

    def _put(self, number: int, command: Command, identity: str) -> None:
        self._decided[number] = DecidedCommand(command, identity, self._claims(command, identity))

    def drop(self, number: int, of: Round) -> None:
        """A command of a round will not start."""
        del of.commands[number], self._decided[number]

    def end(self, of: Round) -> None:
        """The commands of a round have started, or never will."""
        for number in list(of.commands):
            self.drop(number, of)

    def _claims(self, command: Command, identity: str) -> tuple[NodeClaim, ...]:
        """What replaces its nodes; nothing if a pool cannot supply it, so that the command will not start."""
        session = self._session
        snapshot = session.cluster_state.snapshot
        rows = (snapshot.pods.rows.get(move.pod) for move in command.moves)
        moved = tuple(snapshot.pods.get(row) for row in rows if row is not None)
        around = Objects(node_pools=session.cluster_state.pools(), pods=moved)
        try:
            claims = tuple(replacement_claims(command, identity, around, snapshot.daemons))
        except NotStartedError:
            return ()
        return tuple(as_launched(claim, session.catalog_source.catalog) for claim in claims)

    def _without(self, number: int | None) -> tuple[list[DecidedCommand], list[DecidedCommand]]:
        """All commands but one: those that do not wait for its replacements, and those that do, if only indirectly."""
        independent, dependent = [], []
        missing = set() if number is None else _coming((self._decided[number],))
        # A command can only wait for what was decided before it.
        for other, decided in sorted(self._decided.items()):
            if other == number:
                continue
            if missing.isdisjoint(place for _, place in decided.places()):
                independent.append(decided)
            else:
                dependent.append(decided)
                missing |= _coming((decided,))
        return independent, dependent

    @contextmanager
    def ahead(self, policies: Policies, but: int | None = None) -> Iterator[Policies]:
        """What to respect as if all these commands had started, while the cluster's columns show them like that.

        `but`: the number of one that is decided again itself; those that count on it keep their pods where they are.
        Make the engine before: it may build the columns anew.
        """
        others, dependent = self._without(but)
        if not others and not dependent:
            yield policies
            return
        claims = [claim for decided in others for claim in decided.claims]
        with self._session.cluster_state.as_if(_nodes(others) | _nodes(dependent), claims):
            yield self._respecting(policies, others)

    def coming(self) -> frozenset[str]:
        """The names of the NodeClaims that would be created for these commands."""
        return _coming(self._decided.values())

    def _respecting(self, policies: Policies, others: Sequence[DecidedCommand]) -> Policies:
        session, nodes, rates = self._session, _nodes(others), policies.rates
        for decided in others:
            pods = (pod for name in decided.command.nodes for pod in session.pods_on(name))
            rates = rates.after(len(decided.command.nodes), evictions_by_namespace(pods))
        return replace(
            policies,
            in_command=policies.in_command | nodes,
            decided=nodes,
            coming=policies.coming | _coming(others) if session.settings.search == GLOBAL else frozenset(),
            nominated=policies.nominated.union(*(destinations(decided.command) for decided in others)),
            destinations={**policies.destinations, **_places(others)},
            rates=rates,
        )


def _nodes(commands: Iterable[DecidedCommand]) -> frozenset[str]:
    return frozenset(name for decided in commands for name in decided.command.nodes)


def _coming(commands: Iterable[DecidedCommand]) -> frozenset[str]:
    return frozenset(claim.name for decided in commands for claim in decided.claims)


def _places(commands: Iterable[DecidedCommand]) -> Mapping[str, str]:
    return {pod: place for decided in commands for pod, place in decided.places()}
