"""Commands in progress: replacements become ready, then the candidates are deleted, or the command is rolled back.

No state is kept: each pass decides from the tickets and the objects that they name.
"""

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpool.disruption.brakes.failures import Failure, FailureCause, pool_of
from karpool.disruption.candidates.pods import blocks_until, protected_until, tolerates_disruption
from karpool.disruption.command import Cause
from karpool.disruption.reasons import ReasonCode
from karpool.execution.actions import AddTaint, DeleteClaim
from karpool.execution.conditions import DISRUPTION_REASON, INITIALIZED, LAUNCHED
from karpool.execution.deadlines import tighten_deadline
from karpool.execution.fresh_facts import node_protected
from karpool.execution.holds import claim_held, tell
from karpool.execution.ledgers import forget, note_deletion, pool_gone, renew
from karpool.execution.paced_drains import DrainPace
from karpool.execution.pod_events import bound_at
from karpool.execution.reconcile_context import FACTS_RETRY, ReconcileContext
from karpool.execution.rollback import release, roll_back, rollback_resumed
from karpool.execution.tickets import CommandInProgress, ticket_of
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.wire.objects import condition

_ONE_SECOND: Final = timedelta(seconds=1)
_LAUNCHING: Final = ("DisruptionLaunching", "launching to replace disrupted nodes")
_WAITING: Final = ("DisruptionWaitingReadiness", "waiting until the node is initialized")


def advance_commands(context: ReconcileContext, commands: list[CommandInProgress], pace: DrainPace) -> None:
    queued = sum(len(command.ticket.nodes) for command in commands)
    settings = context.settings
    limit = min(max(settings.timeout_per_node * queued, settings.shortest_timeout), settings.longest_timeout)
    for command in commands:
        if command.ticket.committed:
            _finish(context, command, pace)
        elif command.waiting:
            _advance(context, command, command.ticket.created + limit)


def _advance(context: ReconcileContext, command: CommandInProgress, deadline: datetime) -> None:
    if rollback_resumed(context, command):
        return
    failure = (
        _stopped(context, command)
        or pool_gone(context, command)
        or _not_marked(context, command)
        or _unreadable(context, command)
        or _replacement_gone(context, command)
        or next((why for claim in command.waiting if (why := _needed(context, command, claim)) is not None), None)
    )
    if failure is None and context.now > deadline:
        failure = Failure(FailureCause.TIMED_OUT, f"it was not done by {deadline:%H:%M:%S} UTC")
    if failure is not None:
        roll_back(context, command, failure)
        return
    context.requeue_at(deadline + _ONE_SECOND)
    tainted, replaced = _tainted(context, command), _replaced(context, command)
    if not tainted or not replaced or _held(context, command) or _blocked(context, command):
        return
    # What was checked above came from the cache, unless this is the pass that has the facts.
    if context.confirmed(*(node.name for node in _nodes(context, command))) and note_deletion(context, command):
        _commit(context, command)


def _stopped(context: ReconcileContext, command: CommandInProgress) -> Failure | None:
    """A brake that took hold of a candidate's pool since the command started."""
    for claim in command.waiting:
        stop = context.halting(pool_of(claim))
        if stop is not None:
            return Failure(FailureCause.STOPPED, f"{stop.code}: {stop.object} {stop.message}")
    return None


def _not_marked(context: ReconcileContext, command: CommandInProgress) -> Failure | None:
    """A candidate without the ticket: the start of the command was interrupted."""
    for name in command.ticket.nodes:
        claim = context.claim_of.get(name)
        if claim is None or claim.terminating:
            continue
        ticket = ticket_of(claim)
        if ticket is None or ticket.id != command.ticket.id:
            return Failure(FailureCause.NOT_MARKED, f"node {name} was not marked")
    return None


def _unreadable(context: ReconcileContext, command: CommandInProgress) -> Failure | None:
    """A candidate of which something cannot be read any more; nobody knows whether it may still go."""
    held = next((reason for claim in command.waiting if (reason := claim_held(context, claim)) is not None), None)
    return None if held is None else Failure(FailureCause.UNREADABLE, f"{held.object} {held.message}")


def _replacement_gone(context: ReconcileContext, command: CommandInProgress) -> Failure | None:
    """A replacement that is deleted or was never created; one just created may not be in the cache yet."""
    for name in command.ticket.expected:
        claim = context.claims.get(name)
        if claim is not None:
            if claim.terminating:
                return Failure(FailureCause.REPLACEMENT_GONE, f"its replacement {name} is being deleted")
            continue
        since = context.missing.setdefault(name, context.state.missing.get(name, context.now))
        refusal = context.state.refused.get(name)
        if refusal is not None and refusal.final:
            return Failure(FailureCause.REPLACEMENT_REFUSED, f"its replacement {name} was refused: {refusal.message}")
        if context.now >= since + context.settings.missing_after:
            if refusal is not None:
                message = f"its replacement {name} could not be created: {refusal.message}"
                return Failure(FailureCause.REPLACEMENT_REFUSED, message)
            return Failure(FailureCause.REPLACEMENT_GONE, f"its replacement {name} is gone")
        context.requeue_at(since + context.settings.missing_after)
    return None


def _needed(context: ReconcileContext, command: CommandInProgress, claim: NodeClaim) -> Failure | None:
    """Why a candidate must stay: it is protected, or a pod came after the decision, which found no place for it."""
    for node in context.nodes_of.get(claim.name, ()):
        facts = context.facts.get(node.name)
        known = facts is not None and not facts.problem
        protected = node_protected(node.name, facts, command.ticket.cause) if known and facts is not None else None
        if protected is not None and protected.code in (ReasonCode.NODE_DO_NOT_DISRUPT, ReasonCode.NODE_DO_NOT_REPAIR):
            return Failure(FailureCause.PROTECTED, f"node {node.name} {protected.message}")
        for pod in context.pods_on(node.name):
            if _bound_since(pod, command.ticket.created) and pod.reschedulable and not tolerates_disruption(pod):
                return Failure(FailureCause.POD_ARRIVED, f"pod {pod.key} came to node {pod.spec.node_name}")
    return None


def _bound_since(pod: Pod, moment: datetime) -> bool:
    # A kubelet may start a pod long after it was bound, so its start time does not help.
    when = bound_at(pod) or pod.metadata.creation_timestamp
    # Kubernetes writes whole seconds: within the second of the decision the order is unknown.
    return when is not None and when > moment and when.replace(microsecond=0) > moment.replace(microsecond=0)


def _nodes(context: ReconcileContext, command: CommandInProgress) -> list[Node]:
    return [node for claim in command.waiting for node in context.nodes_of.get(claim.name, ())]


def _tainted(context: ReconcileContext, command: CommandInProgress) -> bool:
    """Whether all candidates have the taint; a missing one is added."""
    taint = context.settings.taint
    untainted = [node for node in _nodes(context, command) if taint not in node.spec.taints]
    context.do(*(AddTaint(node.name, taint) for node in untainted))
    return not untainted


def _replaced(context: ReconcileContext, command: CommandInProgress) -> bool:
    """Whether every replacement that it waits for is initialized; the condition stays once it is true."""
    ready = True
    for name in command.ticket.expected:
        claim = context.claims.get(name)
        if claim is None:
            ready = False
        elif claim_held(context, claim) is not None or not claim.is_true(INITIALIZED):
            ready = False
            context.record_event("NodeClaim", name, *(_WAITING if claim.is_true(LAUNCHED) else _LAUNCHING))
    return ready


def _held(context: ReconcileContext, command: CommandInProgress) -> bool:
    """Whether nothing can be removed now, because what is known cannot be trusted."""
    for stop in context.doubts[:1]:
        for node in _nodes(context, command):
            context.record_event("Node", node.name, "DisruptionBlocked", stop.message)
        context.requeue_at(context.now + FACTS_RETRY)
    return bool(context.doubts)


def _blocked(context: ReconcileContext, command: CommandInProgress) -> bool:
    """Whether a pod cannot be evicted now; a node whose drain would get stuck is not deleted yet."""
    for claim in command.waiting:
        if _drains_anyway(command, claim):
            continue
        for node in context.nodes_of.get(claim.name, ()):
            for pod in context.pods_on(node.name):
                reason = _eviction_blocked(context, pod)
                if reason is not None:
                    context.record_event("Node", node.name, "DisruptionBlocked", f"{reason.object} {reason.message}")
                    return True
    return False


def _eviction_blocked(context: ReconcileContext, pod: Pod) -> Reason | None:
    reason = blocks_until(pod, context.now)
    until = protected_until(pod)
    if reason is not None and until is not None:
        context.requeue_at(until)
    if reason is None:
        reason = context.pdbs.eviction_blocked(pod, context.now)
        context.blocked_by_pdb |= reason is not None
    return reason


def _commit(context: ReconcileContext, command: CommandInProgress) -> None:
    """Commit the ticket on every candidate; once that is seen, they are deleted."""
    cause = command.ticket.cause
    for claim in command.waiting:
        if _is_committed(claim):
            continue
        if condition(claim.status.conditions, DISRUPTION_REASON) is None:
            context.set_condition(claim, DISRUPTION_REASON, "True", cause, cause)
        context.do(replace(command.ticket, committed=True).on(claim.name))


def _finish(context: ReconcileContext, command: CommandInProgress, pace: DrainPace) -> None:
    """Delete the candidates of a committed command; a brake can take it back until the first of them is deleted."""
    failure = None
    if not command.past_return(context.claims.values()):
        if rollback_resumed(context, command):
            return
        # Whose rollback was interrupted has lost its replacements, though the brake may have let go since.
        failure = _stopped(context, command) or _replacement_gone(context, command)
    if failure is not None:
        roll_back(context, command, failure)
        return
    if _delete(context, command, pace):
        renew(context, command)
    else:
        forget(context, command)


def _delete(context: ReconcileContext, command: CommandInProgress, pace: DrainPace) -> bool:
    """Delete the candidates of a committed command; one that became needed after all is let go; whether any goes."""
    if not all(map(_is_committed, command.waiting)):
        _commit(context, command)
        return True
    going = [] if _held(context, command) else pace.nodes_let_go(command)
    if not context.confirmed(*(node.name for claim in going for node in context.nodes_of.get(claim.name, ()))):
        return True
    released = 0
    why = f"is removed because it is {command.ticket.cause.lower()} ({command.ticket.method})"
    for claim in going:
        held = claim_held(context, claim)
        if held is not None:
            tell(context, claim, None, held)
            continue
        needed = _needed(context, command, claim) or _protected(context, command, claim)
        if needed is not None:
            release(context, command, claim, needed)
            released += 1
            continue
        if command.ticket.drain_seconds is not None:
            tighten_deadline(context, claim, timedelta(seconds=command.ticket.drain_seconds))
        context.do(DeleteClaim(claim.name, claim.metadata.uid))
        context.record_event("NodeClaim", claim.name, "DisruptionTerminating", why)
        for node in context.nodes_of.get(claim.name, ()):
            context.record_event("Node", node.name, "DisruptionTerminating", why)
    return released < len(command.ticket.nodes)


def _protected(context: ReconcileContext, command: CommandInProgress, claim: NodeClaim) -> Failure | None:
    """A pod that must not be disrupted; a PodDisruptionBudget only makes the drain take longer."""
    if _drains_anyway(command, claim):
        return None
    pods = (pod for node in context.nodes_of.get(claim.name, ()) for pod in context.pods_on(node.name))
    reasons = (reason for pod in pods if (reason := blocks_until(pod, context.now)) is not None)
    return next((Failure(FailureCause.PROTECTED, f"{reason.object} {reason.message}") for reason in reasons), None)


def _drains_anyway(command: CommandInProgress, claim: NodeClaim) -> bool:
    return drains_anyway(command.ticket.cause, claim, bounded=command.ticket.drain_seconds is not None)


def drains_anyway(cause: str, claim: NodeClaim, *, bounded: bool) -> bool:
    """Whether the node of a claim is drained whatever its pods say: it has drifted or is unhealthy, and that ends.

    `bounded`: whether the command says itself how long pods may take.
    """
    ends = bounded or claim.spec.termination_grace_period is not None
    return ends and cause in (Cause.DRIFTED, Cause.UNHEALTHY)


def _is_committed(claim: NodeClaim) -> bool:
    ticket = ticket_of(claim)
    return ticket is not None and ticket.committed
