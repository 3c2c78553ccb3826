"""Commands on their way: replacements are awaited, then the candidates are deleted, or everything is taken back.

Nothing here is remembered: each look decides anew from the tickets and from what became of the objects they name.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpool.disruption.command import Cause
from karpool.disruption.pods import blocks_until, protected_until, tolerates_disruption
from karpool.execution.actions import AddTaint, DeleteClaim
from karpool.execution.conditions import DISRUPTION_REASON, INITIALIZED, LAUNCHED
from karpool.execution.rollback import roll_back
from karpool.execution.tickets import CommandInProgress, ticket_of
from karpool.execution.turn import Turn
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.wire.objects import condition

_ONE_SECOND: Final = timedelta(seconds=1)


def carry_on(turn: Turn, under_way: list[CommandInProgress]) -> None:
    """Take every command one step further."""
    queued = sum(len(one.ticket.nodes) for one in under_way)
    settings = turn.settings
    limit = min(max(settings.timeout_per_node * queued, settings.shortest_timeout), settings.longest_timeout)
    for one in under_way:
        if one.ticket.committed:
            _delete(turn, one)
        elif one.waiting:
            _step(turn, one, one.ticket.created + limit)


def _step(turn: Turn, command: CommandInProgress, deadline: datetime) -> None:
    failure = _unfinished(turn, command) or _vanished(turn, command) or _arrived(turn, command)
    if failure is None and turn.now > deadline:
        failure = f"it was not done by {deadline:%H:%M:%S} UTC"
    if failure is not None:
        roll_back(turn, command, failure)
        return
    turn.look_again(deadline + _ONE_SECOND)
    ready = _tainted(turn, command)
    ready = _replaced(turn, command) and ready
    if ready and not _held(turn, command):
        _delete(turn, command)


# -- what takes a command back -----------------------------------------------------------------------------------------


def _unfinished(turn: Turn, command: CommandInProgress) -> str | None:
    """A candidate that is there but does not carry the ticket: the command never really began."""
    for name in command.ticket.nodes:
        claim = turn.claim_of.get(name)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            continue
        ticket = ticket_of(claim)
        if ticket is None or ticket.id != command.ticket.id:
            return f"node {name} was not marked"
    return None


def _vanished(turn: Turn, command: CommandInProgress) -> str | None:
    """A replacement that is gone or going, or was never made; one just created may not be seen yet."""
    for name in command.ticket.replacements:
        claim = turn.claims.get(name)
        if claim is not None:
            if claim.metadata.deletion_timestamp is not None:
                return f"its replacement {name} is being deleted"
            continue
        since = turn.missing.setdefault(name, turn.state.missing.get(name, turn.now))
        if turn.now >= since + turn.settings.missing_after:
            return f"its replacement {name} is gone"
        turn.look_again(since + turn.settings.missing_after)
    return None


def _arrived(turn: Turn, command: CommandInProgress) -> str | None:
    """A pod that came to a candidate after the decision has no place in it."""
    for pod in _pods(turn, command):
        if _bound_since(pod, command.ticket.created) and pod.reschedulable and not tolerates_disruption(pod):
            return f"pod {pod.key} came to node {pod.spec.node_name}"
    return None


def _bound_since(pod: Pod, moment: datetime) -> bool:
    scheduled = condition(pod.status.conditions, "PodScheduled")
    when = scheduled.last_transition_time if scheduled and scheduled.status == "True" else None
    # A kubelet may start a pod long after it was bound: its start says nothing here.
    when = when or pod.metadata.creation_timestamp
    # Kubernetes writes whole seconds: within the second of the decision nobody knows who came first.
    return when is not None and when > moment and when.replace(microsecond=0) > moment.replace(microsecond=0)


def _pods(turn: Turn, command: CommandInProgress) -> Iterator[Pod]:
    for claim in command.waiting:
        for node in turn.nodes_of.get(claim.name, ()):
            yield from turn.pods_on(node.name)


# -- what a command waits for ------------------------------------------------------------------------------------------


def _tainted(turn: Turn, command: CommandInProgress) -> bool:
    """Whether no new pod can come to the candidates; a taint that is missing is put on."""
    bare = [
        node
        for claim in command.waiting
        for node in turn.nodes_of.get(claim.name, ())
        if turn.settings.taint not in node.spec.taints
    ]
    turn.do(*(AddTaint(node.name, turn.settings.taint) for node in bare))
    return not bare


def _replaced(turn: Turn, command: CommandInProgress) -> bool:
    """Whether every replacement is initialized; that condition stays once it is true."""
    ready = True
    for name in command.ticket.replacements:
        claim = turn.claims.get(name)
        if claim is None:
            ready = False
        elif not claim.is_true(INITIALIZED):
            ready = False
            if claim.is_true(LAUNCHED):
                turn.tell("NodeClaim", name, "DisruptionWaitingReadiness", "waiting until the node is initialized")
            else:
                turn.tell("NodeClaim", name, "DisruptionLaunching", "launching in place of nodes that are to go")
    return ready


def _held(turn: Turn, command: CommandInProgress) -> bool:
    """Whether a pod may not leave now: a node whose drain would get stuck is better not deleted yet."""
    for claim in command.waiting:
        if command.ticket.cause == Cause.DRIFTED and claim.spec.termination_grace_period is not None:
            continue
        for node in turn.nodes_of.get(claim.name, ()):
            for pod in turn.pods_on(node.name):
                reason = _hold(turn, pod)
                if reason is not None:
                    turn.tell("Node", node.name, "DisruptionBlocked", f"{reason.object} {reason.message}")
                    return True
    return False


def _hold(turn: Turn, pod: Pod) -> Reason | None:
    reason = blocks_until(pod, turn.now)
    until = protected_until(pod)
    if reason is not None and until is not None:
        turn.look_again(until)
    if reason is None:
        reason = turn.pdbs.eviction_blocked(pod, turn.now)
        turn.held_by_budget |= reason is not None
    return reason


# -- the point of no return --------------------------------------------------------------------------------------------


def _delete(turn: Turn, command: CommandInProgress) -> None:
    """Write on every candidate that there is no way back; once that is done, delete them all."""
    uncommitted = [claim for claim in command.waiting if not _is_committed(claim)]
    for claim in uncommitted:
        _commit(turn, command, claim)
    for claim in () if uncommitted else command.waiting:
        turn.do(DeleteClaim(claim.name, claim.metadata.uid))
        turn.tell("NodeClaim", claim.name, "DisruptionTerminating", _why(command))
        for node in turn.nodes_of.get(claim.name, ()):
            turn.tell("Node", node.name, "DisruptionTerminating", _why(command))


def _is_committed(claim: NodeClaim) -> bool:
    ticket = ticket_of(claim)
    return ticket is not None and ticket.committed


def _commit(turn: Turn, command: CommandInProgress, claim: NodeClaim) -> None:
    cause = command.ticket.cause
    if condition(claim.status.conditions, DISRUPTION_REASON) is None:
        turn.note(claim, DISRUPTION_REASON, "True", cause, cause)
    turn.do(replace(command.ticket, committed=True).on(claim.name))


def _why(command: CommandInProgress) -> str:
    return f"goes because it is {command.ticket.cause.lower()} ({command.ticket.method})"
