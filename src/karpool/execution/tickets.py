"""Tickets: the annotation that a command writes on the NodeClaims it removes, so that any process can continue it.

Every candidate has the whole ticket, so no single object owns a command. `committed` is written on all of them before
the first is deleted; once that has happened, the command is not rolled back.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

import msgspec

from karpool.disruption.command import Command
from karpool.execution.actions import Annotate
from karpool.execution.conditions import INITIALIZED
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.wire.objects import Timestamp

COMMAND: Final = "karpool.sh/command"
REPLACES: Final = "karpool.sh/replacement-for"


class Ticket(msgspec.Struct, frozen=True, omit_defaults=True):
    """A command as written on its candidates: the nodes to remove, why, since when, and the names of replacements.

    `destinations` are the other nodes that its pods move to; `savings` are in $/h, None if a price is unknown. `awaits`
    are replacements of other commands that its pods move to, too: nothing goes before they are there.
    """

    id: str
    created: Timestamp
    method: str
    cause: str
    nodes: tuple[str, ...]
    replacements: tuple[str, ...] = ()
    destinations: tuple[str, ...] = ()
    awaits: tuple[str, ...] = ()
    committed: bool = False
    savings: float | None = None
    drain_seconds: float | None = None
    """How long pods may take to leave, if that is not for the NodeClaims to say."""

    @property
    def expected(self) -> tuple[str, ...]:
        """The NodeClaims that have to be initialized before anything goes."""
        return self.replacements + self.awaits

    def on(self, claim: str) -> Annotate:
        return Annotate("NodeClaim", claim, COMMAND, msgspec.json.encode(self).decode())


@dataclass(frozen=True, slots=True)
class CommandInProgress:
    ticket: Ticket
    members: tuple[NodeClaim, ...]

    @property
    def waiting(self) -> tuple[NodeClaim, ...]:
        return tuple(claim for claim in self.members if not claim.terminating)

    def past_return(self, claims: Iterable[NodeClaim]) -> bool:
        """Whether it has deleted a node, so that it is only finished; `claims`: all that there are of its nodes."""
        if not self.ticket.committed:
            return False
        if any(claim.terminating for claim in self.members):
            return True
        there = {claim.status.node_name for claim in claims}
        return not there.issuperset(self.ticket.nodes)


def ticket_of(claim: NodeClaim) -> Ticket | None:
    """The ticket of a claim; None if it has none that can be read."""
    text = claim.metadata.annotations.get(COMMAND)
    return None if text is None else read_ticket(text)


@lru_cache(maxsize=1024)
def read_ticket(text: str) -> Ticket | None:
    """A ticket as it is written on a claim; None if it cannot be read."""
    try:
        return msgspec.json.decode(text, type=Ticket)
    except msgspec.DecodeError:
        return None


def commands_in_progress(claims: Iterable[NodeClaim]) -> list[CommandInProgress]:
    """The commands that have started, oldest first; a command is committed as soon as one member says so."""
    tickets: dict[str, Ticket] = {}
    members: dict[str, list[NodeClaim]] = {}
    for claim in claims:
        ticket = ticket_of(claim)
        if ticket is not None:
            known = tickets.get(ticket.id)
            tickets[ticket.id] = known if known is not None and known.committed else ticket
            members.setdefault(ticket.id, []).append(claim)
    commands = [CommandInProgress(ticket, tuple(members[ticket.id])) for ticket in tickets.values()]
    return sorted(commands, key=lambda command: (command.ticket.created, command.ticket.id))


def nodes_in_commands(objects: Objects) -> frozenset[str]:
    return frozenset(name for command in commands_in_progress(objects.node_claims) for name in command.ticket.nodes)


def waiting_replacements(objects: Objects) -> frozenset[str]:
    """The nodes of replacements that have to wait until all others of their command are ready, too."""
    claims = objects.node_claims
    waiting = (command for command in commands_in_progress(claims) if not command.past_return(claims))
    return _replacements(objects, [command.ticket for command in waiting])


def coming_replacements(objects: Objects) -> dict[str, str]:
    """By name of a replacement, and of its node, that is not initialized: the NodeClaim that commands wait for."""
    claims = objects.node_claims
    waiting = [command.ticket for command in commands_in_progress(claims) if not command.past_return(claims)]
    names = {name for ticket in waiting for name in ticket.replacements}
    coming = [claim for claim in claims if claim.name in names and not claim.is_true(INITIALIZED)]
    nodes = {claim.status.node_name: claim.name for claim in coming if claim.status.node_name}
    return {**nodes, **{claim.name: claim.name for claim in coming}}


def awaited_nodes(objects: Objects) -> frozenset[str]:
    """The nodes that pods of commands will move to: replacements and others, until the nodes that go are gone."""
    tickets = [command.ticket for command in commands_in_progress(objects.node_claims)]
    return _replacements(objects, tickets).union(*(ticket.destinations for ticket in tickets))


def _replacements(objects: Objects, tickets: Iterable[Ticket]) -> frozenset[str]:
    names = {name for ticket in tickets for name in ticket.expected}
    nodes = (claim.status.node_name for claim in objects.node_claims if claim.name in names)
    return frozenset(name for name in nodes if name)


def command_id(command: Command, now: datetime) -> str:
    """An id for a command that starts now; a node is in one command only, so nodes and time are unique."""
    text = f"{now.isoformat()} {command.method} {' '.join(command.nodes)}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
