"""Rollback of a command: unused replacements are deleted, and the marks on its candidates are removed.

Tickets stay until every replacement is being deleted, so that an interrupted rollback is resumed. A replacement that
has a node may have pods, whatever the cache says: it is deleted only on what was read a moment ago.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from karpool.disruption.brakes.failures import FailedCommand, Failure, after_failure, failed_command, pool_of
from karpool.execution.actions import Annotate, ClearClaimCondition, DeleteClaim, RemoveTaint
from karpool.execution.conditions import DISRUPTION_REASON
from karpool.execution.holds import claim_held
from karpool.execution.ledgers import forget
from karpool.execution.reconcile_context import FACTS_RETRY, ReconcileContext
from karpool.execution.state import RolledBack
from karpool.execution.tickets import COMMAND, REPLACES, CommandInProgress, Ticket, ticket_of
from karpool.model.annotations import AnnotationError
from karpool.model.labels import FAILED_COMMAND
from karpool.model.nodepool import REBOOTING, NodeClaim
from karpool.wire.objects import condition

ROLLED_BACK: Final = "DisruptionRolledBack"


def roll_back(context: ReconcileContext, command: CommandInProgress, failure: Failure) -> None:
    known = _remembered(command, command.members)
    if known is not None:
        _go_back(context, command, known, seen=True)
    else:
        _go_back(context, command, _remember(context, command, failure), seen=False)


def rollback_resumed(context: ReconcileContext, command: CommandInProgress) -> bool:
    """Go on with a rollback that has begun, whatever has become of its cause; whether there is one."""
    why = _remembered(command, command.waiting)
    # One candidate alone that says so may be one that is let go while the others are deleted.
    if why is None or not all(_remembered(command, (claim,)) is not None for claim in command.waiting):
        return False
    _go_back(context, command, why, seen=True)
    return True


def _go_back(context: ReconcileContext, command: CommandInProgress, why: str, *, seen: bool) -> None:
    """`seen`: whether the objects say already that and why the command failed."""
    ticket = command.ticket
    for claim in command.waiting:
        context.record_event("NodeClaim", claim.name, ROLLED_BACK, f"command {ticket.id} is rolled back: {why}")
    replacements = _open_replacements(context, ticket)
    for claim in replacements:
        if _in_use(context, claim, command):
            context.do(Annotate("NodeClaim", claim.name, REPLACES, None))
        elif _surely_unused(context, claim, seen=seen):
            context.do(DeleteClaim(claim.name, claim.metadata.uid))
    if replacements:
        return
    for claim in command.waiting:
        _unmark(context, claim)
    for claim in command.members:
        context.do(Annotate("NodeClaim", claim.name, COMMAND, None))
    forget(context, command)


def _remembered(command: CommandInProgress, claims: Iterable[NodeClaim]) -> str | None:
    """Why this command failed, if that was written down on one of some claims before."""
    for claim in claims:
        try:
            known = failed_command(claim)
        except AnnotationError:
            continue
        told = None if known is None else known.told_of(command.ticket.id)
        if told is not None:
            return told
    return None


def _remember(context: ReconcileContext, command: CommandInProgress, failure: Failure) -> str:
    """Write the failure on the candidates, at once: when replacements are gone, only that can be seen; and tell it."""
    worst: FailedCommand | None = None
    for claim in command.waiting:
        known = after_failure(
            claim,
            failure,
            command=command.ticket.id,
            pool=context.claims_of(pool_of(claim)),
            now=context.now,
            forgotten_after=context.settings.failures_forgotten_after,
        )
        context.do(Annotate("NodeClaim", claim.name, FAILED_COMMAND, known.written()))
        worst = known if worst is None or known.tries > worst.tries else worst
    if worst is not None:
        told = replace(worst, command=command.ticket.id, cause=str(failure.cause), message=failure.line, at=context.now)
        context.rolled_back.append(RolledBack(command.ticket, told))
    return failure.message


def release(context: ReconcileContext, command: CommandInProgress, claim: NodeClaim, failure: Failure) -> None:
    """Let one candidate of a committed command go; the others go on, and its replacement may be used by anyone."""
    why = _remember(context, CommandInProgress(command.ticket, (claim,)), failure)
    message = f"command {command.ticket.id} is rolled back for this node: {why}"
    context.record_event("NodeClaim", claim.name, ROLLED_BACK, message)
    _unmark(context, claim)
    context.do(Annotate("NodeClaim", claim.name, COMMAND, None))


def _open_replacements(context: ReconcileContext, ticket: Ticket) -> list[NodeClaim]:
    claims = context.claims.values()
    return [
        claim for claim in claims if claim.metadata.annotations.get(REPLACES) == ticket.id and not claim.terminating
    ]


def _in_use(context: ReconcileContext, replacement: NodeClaim, command: CommandInProgress) -> bool:
    if claim_held(context, replacement) is not None or _awaited(context, replacement):
        return True
    names = {replacement.name, *_nodes(context, replacement)}
    staying = {pod.key for name in command.ticket.nodes for pod in context.pods_on(name)}
    for name in names:
        guests = context.state.guests.get(name)
        # Pods of nodes that stay after all do not come.
        if context.now < context.state.nominations.get(name, context.now) and (guests is None or guests - staying):
            return True
    pods = (pod for name in names for pod in context.pods_on(name))
    return any(not pod.is_daemon and not pod.is_mirror and not pod.terminal for pod in pods)


def _awaited(context: ReconcileContext, replacement: NodeClaim) -> bool:
    """Whether pods of another command, which is past its own rollback, are on their way to a replacement."""
    tickets = (ticket_of(claim) for claim in context.claims.values())
    return any(ticket is not None and ticket.committed and replacement.name in ticket.awaits for ticket in tickets)


def _nodes(context: ReconcileContext, claim: NodeClaim) -> set[str]:
    """The nodes of a claim; one that it names counts even if the cache does not have it."""
    named = {claim.status.node_name} if claim.status.node_name else set()
    return named | {node.name for node in context.nodes_of.get(claim.name, ())}


def _surely_unused(context: ReconcileContext, replacement: NodeClaim, *, seen: bool) -> bool:
    """Whether a replacement that seems to be unused may go: it has no node, or its pods were read a moment ago."""
    nodes = _nodes(context, replacement)
    if not nodes:
        return True
    for stop in context.doubts[:1]:
        context.record_event("NodeClaim", replacement.name, "DisruptionBlocked", stop.message)
    # The failure is seen written before anything is read: the pass that has the facts would tell it a second time.
    if context.doubts or not seen:
        context.requeue_at(context.now + FACTS_RETRY)
        return False
    return context.confirmed(*nodes)


def _unmark(context: ReconcileContext, claim: NodeClaim) -> None:
    for node in context.nodes_of.get(claim.name, ()):
        if context.settings.taint in node.spec.taints and not node.terminating:
            context.do(RemoveTaint(node.name, context.settings.taint))
    if condition(claim.status.conditions, DISRUPTION_REASON) is not None:
        context.do(ClearClaimCondition(claim.name, DISRUPTION_REASON))


def remove_leftovers(context: ReconcileContext, commands: list[CommandInProgress]) -> None:
    """Remove marks that belong to no command: taints, conditions, unreadable tickets, replacement annotations."""
    claims = context.claims.values()
    open_ids = {command.ticket.id for command in commands if not command.past_return(claims)}
    for claim in context.claims.values():
        annotations = claim.metadata.annotations
        if REPLACES in annotations and annotations[REPLACES] not in open_ids:
            context.do(Annotate("NodeClaim", claim.name, REPLACES, None))
        if not claim.terminating and ticket_of(claim) is None and not claim.is_true(REBOOTING):
            _unmark(context, claim)
            if COMMAND in annotations:
                context.do(Annotate("NodeClaim", claim.name, COMMAND, None))
    for node in context.objects.nodes:
        if node.name not in context.claim_of and not node.terminating and context.settings.taint in node.spec.taints:
            context.do(RemoveTaint(node.name, context.settings.taint))
