"""Repair: the unhealthy node that has waited longest for its priority is replaced, rebooted or, if empty, deleted."""

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.costs import lifetime_cost
from karpool.disruption.candidates.eligibility import in_command, nominated, pod_refusal, stopped
from karpool.disruption.candidates.node_checks import (
    about_node,
    deleting,
    rebooting,
    unmanaged,
    without_node,
    without_pool,
)
from karpool.disruption.command import Cause, Command, Method
from karpool.disruption.context import DecisionContext
from karpool.disruption.methods.static_drift import static_outcome
from karpool.disruption.methods.terminate_first import for_its_slot
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.repair.breaker import breaker
from karpool.disruption.repair.diagnosis import Diagnosis, diagnose, tolerated
from karpool.model.labels import DO_NOT_REPAIR
from karpool.model.reasons import Reason

if TYPE_CHECKING:
    from karpool.disruption.decision_pass import DecisionPass


class UnhealthyNode(NamedTuple):
    """A node with a condition that a policy names; `diagnosis` is None while that is tolerated."""

    candidate: Candidate
    diagnosis: Diagnosis | None


def repair(decision_pass: "DecisionPass") -> tuple[Command, ...]:
    """The command for the first node that can be repaired now."""
    for node in decision_pass.repairs():
        outcome = repair_refusal(decision_pass, node) or repaired(decision_pass, node)
        if isinstance(outcome, Command):
            return (outcome,)
    return ()


def unhealthy_nodes(context: DecisionContext) -> list[UnhealthyNode]:
    """All nodes with a condition that a policy names, in the order in which they are repaired."""
    policies = context.settings.repair
    if policies is None or context.settings.legacy_repair:
        return []
    nodes = [
        UnhealthyNode(node, diagnose(policies, node.state, context.now, context.findings(node)))
        for node in context.sick()
    ]
    return sorted(nodes, key=lambda node: _order(context, node))


def _order(context: DecisionContext, node: UnhealthyNode) -> tuple[bool, float, float, str]:
    candidate, diagnosis = node
    claim = candidate.state.claim
    cost = 0.0 if claim is None else lifetime_cost(candidate.eviction_cost, claim, context.now)
    return diagnosis is None, 0.0 if diagnosis is None else -diagnosis.score, cost, candidate.name


# -- who may be repaired -------------------------------------------------------------------------------------------


def repair_refusal(decision_pass: "DecisionPass", node: UnhealthyNode) -> Reason | None:
    """Why an unhealthy node is not repaired now; what happens to its pods aside."""
    return next((reason for _, reason in repair_rules(decision_pass, node) if reason is not None), None)


def repair_rules(decision_pass: "DecisionPass", node: UnhealthyNode) -> list[tuple[str, Reason | None]]:
    """Every rule that an unhealthy node has to pass, with what it says, in the order in which they count."""
    context, candidate = decision_pass.context, node.candidate
    pool = f"NodePool {candidate.pool_name}"
    return [
        ("repair may touch it", _untouchable(context, candidate)),
        ("its condition has been tolerated for long enough", _tolerated(context, node)),
        (f"not marked {DO_NOT_REPAIR}", _vetoed(candidate)),
        ("its pods leave in bounded time", _unbounded(context, node)),
        ("most of its pool is healthy", breaker(context.health(candidate.pool_name), pool)),
        # A node that never came up is no loss, so it takes nothing of a budget.
        (
            "a budget for Unhealthy is left",
            decision_pass.over_budget(candidate, Cause.UNHEALTHY) if candidate.state.initialized else None,
        ),
    ]


def _untouchable(context: DecisionContext, candidate: Candidate) -> Reason | None:
    """Why repair leaves a node alone; unlike for other methods, do-not-disrupt and being up are not asked for."""
    catalog = context.catalog
    return (
        in_command(context, candidate)
        or context.seal(candidate.row)
        or unmanaged(candidate, catalog)
        or without_node(candidate, catalog)
        or rebooting(candidate, catalog)
        or deleting(candidate, catalog)
        or _unregistered(candidate)
        or (nominated(context, candidate) if candidate.state.initialized else None)
        or without_pool(candidate, catalog)
        or stopped(context, candidate)
        or context.over_rate((candidate.row,))
    )


def _unregistered(candidate: Candidate) -> Reason | None:
    if candidate.state.registered:
        return None
    return about_node(candidate, ReasonCode.NODE_NOT_REGISTERED, "is not registered yet")


def _tolerated(context: DecisionContext, node: UnhealthyNode) -> Reason | None:
    if node.diagnosis is not None:
        return None
    return tolerated(context.findings(node.candidate), node.candidate.name, context.now)


def _vetoed(candidate: Candidate) -> Reason | None:
    if candidate.state.annotations.get(DO_NOT_REPAIR) != "true":
        return None
    return about_node(candidate, ReasonCode.NODE_DO_NOT_REPAIR, f"has the annotation {DO_NOT_REPAIR}")


def _unbounded(context: DecisionContext, node: UnhealthyNode) -> Reason | None:
    """The pod that keeps a node for ever, where neither a policy nor the NodeClaim says how long it may."""
    blocking = pod_refusal(context, node.candidate)
    if blocking is None or node.diagnosis is None or drain_bound(node) is not None:
        return None
    message = f"{blocking.object} {blocking.message}, and no terminationGracePeriod ends that"
    return about_node(node.candidate, ReasonCode.DRAIN_BOUND_REQUIRED, message)


def drain_bound(node: UnhealthyNode) -> timedelta | None:
    """How long the pods of a node may take to leave; None: for ever."""
    claim = node.candidate.state.claim
    own = None if claim is None or claim.spec.termination_grace_period is None else claim.spec.termination_grace_period
    bounds = [None if own is None else own.delta, None if node.diagnosis is None else node.diagnosis.drain_bound]
    return min((bound for bound in bounds if bound is not None), default=None)


# -- what is done --------------------------------------------------------------------------------------------------


def repaired(decision_pass: "DecisionPass", node: UnhealthyNode) -> Command | Reason:
    """What repairs a node, or why nothing does."""
    candidate, diagnosis, context = node.candidate, node.diagnosis, decision_pass.context
    if diagnosis is None:
        return about_node(candidate, ReasonCode.REPAIR_TOLERATED, "is not due yet")
    if diagnosis.reboots:
        return _reboot(candidate, diagnosis, drain_bound(node))
    if candidate.pool is not None and candidate.pool.static:
        outcome: Command | Reason | None = static_outcome(context, candidate, Cause.UNHEALTHY)
    else:
        tried = decision_pass.evaluator.repair(candidate)
        freed = None
        if tried.command is None:
            freed = for_its_slot(context, candidate, candidate.pods, Cause.UNHEALTHY)
        outcome = tried.command or freed or tried.reason
    if not isinstance(outcome, Command):
        return outcome or about_node(candidate, ReasonCode.PODS_WOULD_NOT_FIT, "nothing can replace it")
    # Without a bound of a policy the NodeClaim's own holds, which whoever drains the node knows.
    return replace(outcome, drain_bound=None if diagnosis.drain_bound is None else drain_bound(node))


def _reboot(candidate: Candidate, diagnosis: Diagnosis, bound: timedelta | None) -> Command:
    """A reboot of a node, which comes back with the pods that did not leave it."""
    return Command(
        method=Method.REPAIR,
        cause=Cause.UNHEALTHY,
        nodes=(candidate.name,),
        disruption_cost=candidate.cost,
        drain_bound=bound,
        reboot=diagnosis.told,
    )
