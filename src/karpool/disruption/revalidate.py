"""A command judged again some seconds later, before anything is changed.

Prices, spot rules and scores are not checked again. Drift is carried out as decided, unless a brake took hold: nothing
else that happens in the meantime makes a drifted node what its pool asks for. A node may get well, so repair asks its
rules again, but not where pods go.
"""

from dataclasses import replace

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.eligibility import consolidation_refusal, emptiness_refusal, refusal, stopped
from karpool.disruption.command import Command, Method
from karpool.disruption.context import DecisionContext
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.methods.evaluate import Evaluator
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.repair.method import repair_refusal
from karpool.model.reasons import Reason


def revalidate(command: Command, context: DecisionContext) -> Command | Reason:
    """The command as it can be carried out now, or why it cannot; its nodes must not be in a command."""
    if command.method is Method.DRIFT:
        return _stop(command, context) or command
    if command.method is Method.REPAIR:
        return _healed(command, context) or command
    candidates, refused = still_there(command, context)
    if command.method is Method.EMPTINESS:
        return _without(command, candidates) if candidates else refused[0]
    if refused:
        return refused[0]
    return Evaluator(context).revalidate(command, candidates)


def _stop(command: Command, context: DecisionContext) -> Reason | None:
    """The first brake that keeps a node of the command."""
    rows = [row for name in command.nodes if (row := context.snapshot.nodes.rows.get(name)) is not None]
    return next((reason for row in rows if (reason := stopped(context, context.candidate(row))) is not None), None)


def _healed(command: Command, context: DecisionContext) -> Reason | None:
    """Why a node is not repaired after all."""
    decision_pass = DecisionPass(context)
    unhealthy = {node.candidate.name: node for node in decision_pass.repairs()}
    for name in command.nodes:
        if name not in unhealthy:
            return Reason(ReasonCode.CANDIDATE_CHANGED, "is gone, or is healthy again", f"Node {name}")
        reason = repair_refusal(decision_pass, unhealthy[name])
        if reason is not None:
            return reason
    return None


def still_there(command: Command, context: DecisionContext) -> tuple[list[Candidate], list[Reason]]:
    """The command's nodes that its method would choose again and that budgets let go, and why the others are out."""
    left: dict[str, int] = {}
    kept: list[Candidate] = []
    refused: list[Reason] = []
    for name in command.nodes:
        row = context.snapshot.nodes.rows.get(name)
        if row is None:
            refused.append(Reason(ReasonCode.CANDIDATE_CHANGED, "is gone", f"Node {name}"))
            continue
        candidate = context.candidate(row)
        reason = _changed(command, context, candidate) or _over_budget(command, context, candidate, left)
        if reason is None:
            kept.append(candidate)
        else:
            refused.append(reason)
    return kept, refused


def _changed(command: Command, context: DecisionContext, candidate: Candidate) -> Reason | None:
    own = emptiness_refusal if command.method is Method.EMPTINESS else consolidation_refusal
    reason = refusal(context, candidate) or own(context, candidate)
    if reason is None:
        return None
    message = f"{reason.object or candidate.name} {reason.message}"
    return Reason(ReasonCode.CANDIDATE_CHANGED, message, f"Node {candidate.name}")


def _over_budget(
    command: Command, context: DecisionContext, candidate: Candidate, left: dict[str, int]
) -> Reason | None:
    """Why the pool's budgets no longer let one more of its nodes go."""
    pool = candidate.pool
    if pool is None:
        return None
    allowance = context.allowance(pool, command.cause)
    remaining = left.setdefault(pool.name, allowance.remaining)
    left[pool.name] = remaining - 1
    return None if remaining > 0 else allowance.exhausted(pool)


def _without(command: Command, candidates: list[Candidate]) -> Command:
    """An emptiness command reduced to the nodes that are still empty."""
    if len(candidates) == len(command.nodes):
        return command
    return replace(
        command,
        nodes=tuple(candidate.name for candidate in candidates),
        price=sum(candidate.price or 0.0 for candidate in candidates),
        unpriced=sum(candidate.price is None for candidate in candidates),
        disruption_cost=sum(candidate.cost for candidate in candidates),
    )
