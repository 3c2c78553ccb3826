"""Reboots: a node is fenced and drained, its instance rebooted, and the node taken back once it is up again.

All that is known of a reboot is on its NodeClaim: the condition Rebooting, the time that pods have to leave, and the
boot id from before. Each pass does the next unfinished step. A pod that does not leave in time stays on the node and
comes back with it. A reboot that fails deletes the NodeClaim; nothing replaces it beforehand. Until the provider may
have been asked, a brake that halts commands takes the request back.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from karpool.disruption.brakes.failures import pool_of
from karpool.disruption.repair.history import without_last
from karpool.execution.actions import (
    AddTaint,
    Annotate,
    ClearClaimCondition,
    DeleteClaim,
    RebootInstance,
    RemoveTaint,
    SetClaimCondition,
    SetLabel,
)
from karpool.execution.conditions import (
    DISRUPTION_REASON,
    INITIALIZED,
    REBOOT_FAILED,
    REBOOT_ISSUED,
    REBOOT_STOPPED,
    REBOOT_SUCCEEDED,
)
from karpool.execution.deadlines import tighten_deadline
from karpool.execution.drain import drain
from karpool.execution.holds import claim_held, tell
from karpool.execution.reconcile_context import FACTS_RETRY, ReconcileContext
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.nodepool import REBOOTING, NodeClaim
from karpool.model.scheduling import Taint
from karpool.wire.duration import parse_duration
from karpool.wire.objects import Condition, condition

FENCE: Final = Taint(key=names.REBOOTING_TAINT, effect="NoSchedule")
LONGEST_RECOVERY: Final = timedelta(minutes=20)
LONGEST_ISSUE: Final = timedelta(minutes=5)
"""How long to wait for a node that is not there, or for a provider that does not take the reboot on."""
SHORTEST_DRAIN: Final = timedelta(seconds=5)
POLL: Final = timedelta(seconds=15)
BOOKKEEPING: Final = (names.REBOOT_BOUND, names.PRE_BOOT_ID, names.REBOOT_ISSUED, names.REBOOT_REFUSED)
"""The annotations of a reboot; none of them outlasts it."""


class RebootResult(StrEnum):
    """How a reboot ended."""

    SUCCEEDED = "succeeded"
    PROVIDER_ERROR = "provider_error"
    RECOVERY_TIMEOUT = "recovery_timeout"
    INVALID_REQUEST = "invalid_request"
    STOPPED = "stopped"


def reconcile_reboots(context: ReconcileContext) -> None:
    """Take every reboot one step further."""
    for claim in context.claims.values():
        current = condition(claim.status.conditions, REBOOTING)
        if current is None or current.status != "True" or claim.terminating:
            continue
        held = claim_held(context, claim)
        stop = None if _asked(context, claim, current) else context.halting(pool_of(claim))
        if held is not None:
            tell(context, claim, None, held)
        elif stop is not None:
            _take_back(context, claim, f"{stop.code}: {stop.object} {stop.message}")
        elif context.doubts:
            context.record_event("NodeClaim", claim.name, "DisruptionBlocked", context.doubts[0].message)
            context.requeue_at(context.now + FACTS_RETRY)
        else:
            _reconcile(context, claim, current)


def _reconcile(context: ReconcileContext, claim: NodeClaim, current: Condition) -> None:
    since = current.last_transition_time or context.now
    try:
        bound = bound_of(claim)
    except ValueError as error:
        _fail(context, claim, RebootResult.INVALID_REQUEST, f"{names.REBOOT_BOUND}: {error}")
        return
    issued = _issued_at(claim, since) if current.reason == REBOOT_ISSUED else None
    ends = since + LONGEST_ISSUE if issued is None else issued + LONGEST_RECOVERY
    node = next(iter(context.nodes_of.get(claim.name, ())), None)
    if node is None:
        if context.now >= ends:
            result = RebootResult.PROVIDER_ERROR if issued is None else RebootResult.RECOVERY_TIMEOUT
            _fail(context, claim, result, "its Node is gone", bound)
        _poll(context, ends)
    elif issued is None:
        _request(context, claim, node, since, bound)
    elif _booted(claim, node):
        _recover(context, claim, node, bound, ends)
    elif context.now >= ends:
        _fail(context, claim, RebootResult.RECOVERY_TIMEOUT, _not_in_time("has not booted"), bound)
    elif _taken_out(context, claim, node):
        _poll(context, ends)


def bound_of(claim: NodeClaim) -> timedelta | None:
    """How long pods may take to leave before a reboot; None: for ever. Raises a ValueError if that cannot be read."""
    text = claim.metadata.annotations.get(names.REBOOT_BOUND)
    if text is None:
        return None
    length = parse_duration(text).delta
    if length is None or length < timedelta(0):
        raise ValueError(f"{text[:40]!r} is no time that pods could have to leave")
    return length


def _issued_at(claim: NodeClaim, since: datetime) -> datetime:
    try:
        return datetime.fromisoformat(claim.metadata.annotations[names.REBOOT_ISSUED])
    except (KeyError, ValueError):
        return since  # it was requested then, and so is overdue rather than waited for without end


def _booted(claim: NodeClaim, node: Node) -> bool:
    """Whether a node has booted since its boot id was noted."""
    before = claim.metadata.annotations.get(names.PRE_BOOT_ID)
    return before is not None and node.status.node_info.boot_id != before


def _not_in_time(what: str) -> str:
    return f"the node {what} within {LONGEST_RECOVERY.total_seconds() / 60:.0f} minutes"


def _poll(context: ReconcileContext, ends: datetime) -> None:
    context.requeue_at(min(ends, context.now + POLL) if ends > context.now else context.now + POLL)


# -- before the reboot ---------------------------------------------------------------------------------------------


def _request(context: ReconcileContext, claim: NodeClaim, node: Node, since: datetime, bound: timedelta | None) -> None:
    """Fence a node, drain it, and have it rebooted."""
    if FENCE not in node.spec.taints:
        context.do(AddTaint(node.name, FENCE))
        return
    if _booted(claim, node):
        # The provider was asked before this process knew of it.
        context.do(Annotate("NodeClaim", claim.name, names.REBOOT_ISSUED, _moment(context.now)))
        context.set_condition(claim, REBOOTING, "True", REBOOT_ISSUED, "the node has booted")
        return
    refused = claim.metadata.annotations.get(names.REBOOT_REFUSED)
    if refused is not None:
        _fail(context, claim, RebootResult.PROVIDER_ERROR, refused, bound)
    elif _drained(context, node, since, bound):
        _issue(context, claim, node, since)


def _drained(context: ReconcileContext, node: Node, since: datetime, bound: timedelta | None) -> bool:
    """Whether all pods have left, or their time is over; pods are asked to leave, never made to."""
    if bound == timedelta(0):
        return True
    earliest = since + SHORTEST_DRAIN
    deadline = None if bound is None else since + max(bound, SHORTEST_DRAIN)
    if deadline is not None and context.now >= deadline:
        return True
    left = drain(context, node, None)
    if not left and context.now >= earliest:
        return True
    for moment in (earliest, deadline):
        if moment is not None:
            context.requeue_at(moment)
    context.requeue_at(context.now + POLL)
    return False


def _issue(context: ReconcileContext, claim: NodeClaim, node: Node, since: datetime) -> None:
    """Note the boot id, then ask the provider until it answers; the answer comes as an annotation."""
    if names.PRE_BOOT_ID not in claim.metadata.annotations:
        context.do(Annotate("NodeClaim", claim.name, names.PRE_BOOT_ID, node.status.node_info.boot_id))
        return
    uid = claim.metadata.uid
    again = context.state.reboots.get(uid, context.now)
    if again <= context.now:
        nanos = int(since.timestamp()) * 10**9
        operation = f"{uid}-{nanos}-{claim.metadata.annotations[names.PRE_BOOT_ID]}"
        context.do(RebootInstance(claim.name, uid, operation))
        again = context.now + context.settings.instance_retry
    context.reboots[uid] = again
    context.requeue_at(again)


def _asked(context: ReconcileContext, claim: NodeClaim, current: Condition) -> bool:
    """Whether the provider may have been asked for a reboot; the boot id is noted right before that."""
    begun = names.PRE_BOOT_ID in claim.metadata.annotations or claim.metadata.uid in context.state.reboots
    return begun or current.reason == REBOOT_ISSUED


def _take_back(context: ReconcileContext, claim: NodeClaim, why: str) -> None:
    """End a request as if it had never been made; its entry in the ledger stays, because pods may have left."""
    _unfence(context, claim)
    context.do(Annotate("NodeClaim", claim.name, names.REBOOTS, without_last(claim)))
    _forget(context, claim)
    context.do(SetClaimCondition(claim.name, REBOOTING, "False", REBOOT_STOPPED, f"{RebootResult.STOPPED}: {why}"))
    context.record_event("NodeClaim", claim.name, REBOOT_STOPPED, why)


def _moment(now: datetime) -> str:
    return now.isoformat(timespec="seconds")


# -- after it ------------------------------------------------------------------------------------------------------


def _taken_out(context: ReconcileContext, claim: NodeClaim, node: Node) -> bool:
    """Whether the node counts as not initialized, so that it is initialized anew when it is back."""
    out = node.metadata.labels.get(names.INITIALIZED) is None and not claim.is_true(INITIALIZED)
    context.set_condition(claim, INITIALIZED, "Unknown", REBOOTING, "the node is being rebooted")
    if names.INITIALIZED in node.metadata.labels:
        context.do(SetLabel("Node", node.name, names.INITIALIZED, None))
    return out


def _recover(context: ReconcileContext, claim: NodeClaim, node: Node, bound: timedelta | None, ends: datetime) -> None:
    """Take a node back that has booted, once it is ready."""
    out = _taken_out(context, claim, node)
    if FENCE in node.spec.taints:
        context.do(RemoveTaint(node.name, FENCE))
    context.record_event("NodeClaim", claim.name, "RebootObserved", f"node {node.name} has booted")
    if node.ready and out:
        context.set_condition(
            claim, REBOOTING, "False", REBOOT_SUCCEEDED, f"{RebootResult.SUCCEEDED}: the node is back"
        )
        _forget(context, claim)
    elif context.now >= ends:
        message = _not_in_time("has booted, and has not become ready")
        _fail(context, claim, RebootResult.RECOVERY_TIMEOUT, message, bound)
    else:
        _poll(context, ends)


def _unfence(context: ReconcileContext, claim: NodeClaim) -> None:
    for node in context.nodes_of.get(claim.name, ()):
        if FENCE in node.spec.taints:
            context.do(RemoveTaint(node.name, FENCE))


def _forget(context: ReconcileContext, claim: NodeClaim) -> None:
    for key in BOOKKEEPING:
        if key in claim.metadata.annotations:
            context.do(Annotate("NodeClaim", claim.name, key, None))
    if condition(claim.status.conditions, DISRUPTION_REASON) is not None:
        context.do(ClearClaimCondition(claim.name, DISRUPTION_REASON))


def _fail(
    context: ReconcileContext, claim: NodeClaim, result: RebootResult, message: str, bound: timedelta | None = None
) -> None:
    """Give a reboot up, and the node too, unless it is the request that makes no sense."""
    _unfence(context, claim)
    if result is RebootResult.INVALID_REQUEST:
        _forget(context, claim)
    else:
        if bound is not None:
            tighten_deadline(context, claim, bound)
        # First: with the condition alone, nobody would delete the claim any more.
        context.do(DeleteClaim(claim.name, claim.metadata.uid))
    context.do(SetClaimCondition(claim.name, REBOOTING, "False", REBOOT_FAILED, f"{result}: {message}"))
    context.record_event("NodeClaim", claim.name, REBOOT_FAILED, message, "Warning")
