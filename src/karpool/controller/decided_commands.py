"""Commands that were decided and have not started: they are about to be decided again, or their nodes are being read.

Others may be decided meanwhile, as if these had started: their nodes are neither candidates nor room, what replaces
them is on its way, their pods have the places that they go to, and budgets and rates count them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain

from karpool.cluster.nodes import StateNode
from karpool.controller.as_if import AsIf
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
    places: Mapping[str, str]
    """By pod that moves: the node, or the NodeClaim, that it goes to."""
    states: tuple[StateNode, ...]
    """What these NodeClaims are as nodes; each remembers what it is asked."""


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
        claims = self._claims(command, identity)
        self._decided[number] = DecidedCommand(
            command,
            identity,
            claims,
            places=dict(_places(command, claims)),
            states=tuple(StateNode(None, claim) for claim in claims),
        )

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

    def without(self, number: int | None) -> tuple[list[DecidedCommand], list[DecidedCommand]]:
        """All commands but one: those that do not wait for its replacements, and those that do, if only indirectly."""
        independent, dependent = [], []
        missing = set() if number is None else _coming((self._decided[number],))
        # A command can only wait for what was decided before it.
        for other, decided in sorted(self._decided.items()):
            if other == number:
                continue
            if not missing or missing.isdisjoint(decided.places.values()):
                independent.append(decided)
            else:
                dependent.append(decided)
                missing |= _coming((decided,))
        return independent, dependent

    @contextmanager
    def ahead(self) -> Iterator["Ahead"]:
        """Decide as if commands had started, while the cluster's columns show them like that.

        Make the engine before: it may build the columns anew. Nothing else may change meanwhile.
        """
        with self._session.cluster_state.as_if() as columns:
            yield Ahead(self, columns, self._session)

    def coming(self) -> frozenset[str]:
        """The names of the NodeClaims that would be created for these commands."""
        return _coming(self._decided.values())


class Ahead:
    """What to respect as if commands had started."""

    def __init__(self, commands: DecidedCommands, columns: AsIf, session: Session) -> None:
        self._commands = commands
        self._columns = columns
        self._session = session
        self._evictions: dict[str, dict[str, int]] = {}

    def of(self, policies: Policies, but: int | None = None) -> Policies:
        """As if all of them had.

        `but`: the number of one that is decided again itself; those that count on it keep their pods where they are.
        """
        others, dependent = self._commands.without(but)
        coming = [state for decided in others for state in decided.states]
        self._columns.show(_nodes(others) | _nodes(dependent), coming)
        return self._respecting(policies, others) if others or dependent else policies

    def _respecting(self, policies: Policies, others: Sequence[DecidedCommand]) -> Policies:
        nodes, rates = _nodes(others), policies.rates
        # Most clusters limit no rate, and then nobody has to count pods.
        for decided in others if rates else ():
            rates = rates.after(len(decided.command.nodes), self._evictions_of(decided.command))
        return replace(
            policies,
            in_command=policies.in_command | nodes,
            decided=nodes,
            coming=policies.coming | _coming(others) if self._session.settings.search == GLOBAL else frozenset(),
            nominated=policies.nominated.union(*(destinations(decided.command) for decided in others)),
            destinations=dict(chain(policies.destinations.items(), *(decided.places.items() for decided in others))),
            rates=rates,
        )

    def _evictions_of(self, command: Command) -> Mapping[str, int]:
        total = Counter[str]()
        for name in command.nodes:
            if name not in self._evictions:
                self._evictions[name] = evictions_by_namespace(self._session.pods_on(name))
            total.update(self._evictions[name])
        return total


def _nodes(commands: Iterable[DecidedCommand]) -> frozenset[str]:
    return frozenset(name for decided in commands for name in decided.command.nodes)


def _coming(commands: Iterable[DecidedCommand]) -> frozenset[str]:
    return frozenset(claim.name for decided in commands for claim in decided.claims)


def _places(command: Command, claims: Sequence[NodeClaim]) -> Iterator[tuple[str, str]]:
    for move in command.moves:
        if isinstance(move.target, str):
            yield move.pod, move.target
        elif move.target < len(claims):
            yield move.pod, claims[move.target].name
