"""Taking a command back: its replacements go unless somebody uses them, its candidates are as they were.

Tickets stay until every replacement is on its way out, so that a roll-back that is cut short is taken up again.
"""

from typing import Final

from karpool.execution.actions import Annotate, ClearClaimCondition, DeleteClaim, RemoveTaint
from karpool.execution.conditions import DISRUPTION_REASON
from karpool.execution.tickets import COMMAND, REPLACES, CommandInProgress, Ticket, ticket_of
from karpool.execution.turn import Turn
from karpool.model.nodepool import NodeClaim
from karpool.wire.objects import condition

ROLLED_BACK: Final = "DisruptionRolledBack"


def roll_back(turn: Turn, command: CommandInProgress, why: str) -> None:
    """Undo everything a command has done so far."""
    ticket = command.ticket
    replacements = _open_replacements(turn, ticket)
    for claim in replacements:
        _give_up(turn, claim)
    if replacements:
        return
    for claim in command.waiting:
        turn.tell("NodeClaim", claim.name, ROLLED_BACK, f"command {ticket.id} was rolled back: {why}")
        unmark(turn, claim)
    for claim in command.members:
        turn.do(Annotate("NodeClaim", claim.name, COMMAND, None))


def _open_replacements(turn: Turn, ticket: Ticket) -> list[NodeClaim]:
    mine = [claim for claim in turn.claims.values() if claim.metadata.annotations.get(REPLACES) == ticket.id]
    return [claim for claim in mine if claim.metadata.deletion_timestamp is None]


def _give_up(turn: Turn, replacement: NodeClaim) -> None:
    if used(turn, replacement):
        turn.do(Annotate("NodeClaim", replacement.name, REPLACES, None))
    else:
        turn.do(DeleteClaim(replacement.name, replacement.metadata.uid))


def used(turn: Turn, replacement: NodeClaim) -> bool:
    """Whether pods run on a replacement, or are on their way to it."""
    names = {replacement.name, *(node.name for node in turn.nodes_of.get(replacement.name, ()))}
    if any(turn.now < turn.state.nominations.get(name, turn.now) for name in names):
        return True
    pods = (pod for name in names for pod in turn.pods_on(name))
    return any(not pod.is_daemon and not pod.is_mirror and not pod.terminal for pod in pods)


def unmark(turn: Turn, claim: NodeClaim) -> None:
    """Take off a candidate what says that it is to go."""
    for node in turn.nodes_of.get(claim.name, ()):
        if turn.settings.taint in node.spec.taints and node.metadata.deletion_timestamp is None:
            turn.do(RemoveTaint(node.name, turn.settings.taint))
    if condition(claim.status.conditions, DISRUPTION_REASON) is not None:
        turn.do(ClearClaimCondition(claim.name, DISRUPTION_REASON))


def remove_leftovers(turn: Turn, under_way: list[CommandInProgress]) -> None:
    """Take off marks that belong to no command: taints, conditions, tickets nobody can read, replacement marks."""
    open_ids = {one.ticket.id for one in under_way if not one.ticket.committed}
    for claim in turn.claims.values():
        marks = claim.metadata.annotations
        if REPLACES in marks and marks[REPLACES] not in open_ids:
            turn.do(Annotate("NodeClaim", claim.name, REPLACES, None))
        if claim.metadata.deletion_timestamp is None and ticket_of(claim) is None:
            unmark(turn, claim)
            if COMMAND in marks:
                turn.do(Annotate("NodeClaim", claim.name, COMMAND, None))
    for node in turn.objects.nodes:
        managed = node.name in turn.claim_of
        if not managed and node.metadata.deletion_timestamp is None and turn.settings.taint in node.spec.taints:
            turn.do(RemoveTaint(node.name, turn.settings.taint))
