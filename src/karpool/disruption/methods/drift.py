"""Drift: a node that is no longer what its pool asks for is replaced, at any price."""

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Cause, Command
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.methods.static_drift import static_outcome, static_replacements
from karpool.disruption.methods.terminate_first import for_its_slot
from karpool.disruption.reasons import ReasonCode
from karpool.model.reasons import Reason


def static_drift(decision_pass: DecisionPass) -> tuple[Command, ...]:
    """Drifted nodes of pools with a fixed number of nodes, each replaced by one of its pool."""
    if not decision_pass.context.settings.static_capacity:
        return ()
    drifted = [node for node, _ in decision_pass.drifted() if node.pool and node.pool.static]
    return static_replacements(decision_pass.context, drifted)


def drift(decision_pass: DecisionPass) -> tuple[Command, ...]:
    """The first drifted node whose pods find a place: empty ones before others, then the longest drifted."""
    waiting = [
        (not node.empty, how.since, node.name, node)
        for node, how in decision_pass.drifted()
        if node.pool is not None and not node.pool.static
    ]
    for *_, node in sorted(waiting, key=lambda entry: entry[:3]):
        if decision_pass.over_budget(node, Cause.DRIFTED) is None:
            outcome = replaced(decision_pass, node)
            if isinstance(outcome, Command):
                return (outcome,)
    return ()


def replaced(decision_pass: DecisionPass, candidate: Candidate) -> Command | Reason | None:
    """What it takes to replace a drifted node, or why that cannot be done."""
    if candidate.pool is not None and candidate.pool.static:
        if not decision_pass.context.settings.static_capacity:
            message = "keeps the nodes it has: the feature gate StaticCapacity is off"
            return Reason(ReasonCode.STATIC_POOL, message, f"NodePool {candidate.pool_name}")
        return static_outcome(decision_pass.context, candidate)
    # Which pods are given another place changes with time and with PodDisruptionBudgets.
    key = ("drift", candidate.row, tuple(decision_pass.context.movers(candidate)))
    refused = decision_pass.refusals.get(key)
    if refused is None:
        outcome = decision_pass.evaluator.drift(candidate)
        if outcome.reason is None:
            return outcome.command
        refused = outcome.reason
        decision_pass.refusals.put(key, refused, outcome.footprint)
    context = decision_pass.context
    return for_its_slot(context, candidate, context.movers(candidate), Cause.DRIFTED) or refused
