"""Drift: a node that is no longer what its pool asks for is replaced, at any price."""

import numpy as np

from karpool.disruption.command import Cause, Command
from karpool.disruption.context import Candidate, DecisionContext
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.drift_detection import Drift
from karpool.disruption.static_drift import static_outcome, static_replacements
from karpool.model.reasons import Reason


def static_drift(decision_pass: DecisionPass) -> tuple[Command, ...]:
    """Drifted nodes of pools with a fixed number of nodes, each replaced by one of its pool."""
    context = decision_pass.context
    return static_replacements(context, [node for node, _ in _drifted(context) if node.pool and node.pool.static])


def drift(decision_pass: DecisionPass) -> tuple[Command, ...]:
    """The first drifted node whose pods find a place: empty ones before others, then the longest drifted."""
    waiting = [
        (not node.empty, how.since, node.name, node)
        for node, how in _drifted(decision_pass.context)
        if node.pool is not None and not node.pool.static
    ]
    for *_, node in sorted(waiting, key=lambda entry: entry[:3]):
        if decision_pass.over_budget(node, Cause.DRIFTED) is None:
            outcome = replaced(decision_pass, node)
            if isinstance(outcome, Command):
                return (outcome,)
    return ()


def _drifted(context: DecisionContext) -> list[tuple[Candidate, Drift]]:
    """Nodes that have drifted and may be disrupted, or may be when their grace period is over; by name."""
    drifted = context.drifted_rows()
    if not drifted.any():
        return []
    eligible = np.array([*context.eligible_rows(), *context.eligible_rows(eventual=True)], dtype=np.int64)
    nodes = [context.candidate(row) for row in eligible[drifted[eligible]].tolist()]
    drifts = [(node, how) for node in nodes if (how := context.drift(node)) is not None]
    return sorted(drifts, key=lambda entry: entry[0].name)


def replaced(decision_pass: DecisionPass, candidate: Candidate) -> Command | Reason | None:
    """What it takes to replace a drifted node, or why that cannot be done."""
    if candidate.pool is not None and candidate.pool.static:
        return static_outcome(decision_pass.context, candidate)
    # Which pods are given another place changes with time and with PodDisruptionBudgets.
    key = ("drift", candidate.row, tuple(decision_pass.context.movers(candidate)))
    known = decision_pass.refusals.get(key)
    if known is not None:
        return known
    outcome = decision_pass.evaluator.drift(candidate)
    if outcome.reason is not None:
        decision_pass.refusals.put(key, outcome.reason, outcome.footprint)
    return outcome.command or outcome.reason
