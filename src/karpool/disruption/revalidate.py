"""A second look at a command some seconds later, before anything is touched.

Prices, spot rules and scores are not looked at again. Drift is carried out as decided: nothing that happens in the
meantime makes a drifted node what its pool asks for.
"""

from dataclasses import replace

from karpool.disruption.candidates import consolidation_refusal, emptiness_refusal, refusal
from karpool.disruption.command import Command, Method
from karpool.disruption.evaluate import Evaluator
from karpool.disruption.reasons import Code
from karpool.disruption.situation import Situation, Standing
from karpool.model.reasons import Reason


def revalidate(command: Command, situation: Situation) -> Command | Reason:
    """The command as it can be carried out now, or why it cannot; `situation` must not have its nodes in a command."""
    if command.method is Method.DRIFT:
        return command
    standings, refused = _still_there(command, situation)
    if command.method is Method.EMPTINESS:
        return _without(command, standings) if standings else refused[0]
    if refused:
        return refused[0]
    return Evaluator(situation).again(command, standings)


def _still_there(command: Command, situation: Situation) -> tuple[list[Standing], list[Reason]]:
    """The command's nodes that its method would choose again and that budgets let go, and why the others are out."""
    left: dict[str, int] = {}
    kept: list[Standing] = []
    refused: list[Reason] = []
    for name in command.nodes:
        row = situation.snapshot.nodes.rows.get(name)
        if row is None:
            refused.append(Reason(Code.CANDIDATE_CHANGED, "is gone", f"Node {name}"))
            continue
        standing = situation.standing(row)
        reason = _changed(command, situation, standing) or _over_budget(command, situation, standing, left)
        if reason is None:
            kept.append(standing)
        else:
            refused.append(reason)
    return kept, refused


def _changed(command: Command, situation: Situation, standing: Standing) -> Reason | None:
    own = emptiness_refusal if command.method is Method.EMPTINESS else consolidation_refusal
    found = refusal(situation, standing) or own(situation, standing)
    if found is None:
        return None
    return Reason(Code.CANDIDATE_CHANGED, f"{found.object or standing.name} {found.message}", f"Node {standing.name}")


def _over_budget(command: Command, situation: Situation, standing: Standing, left: dict[str, int]) -> Reason | None:
    """Why the pool's budgets no longer let one more of its nodes go."""
    pool = standing.pool
    if pool is None:
        return None
    allowance = situation.allowance(pool, command.cause)
    remaining = left.setdefault(pool.name, allowance.remaining)
    left[pool.name] = remaining - 1
    return None if remaining > 0 else allowance.exhausted(pool)


def _without(command: Command, standings: list[Standing]) -> Command:
    """An emptiness command reduced to the nodes that are still empty."""
    if len(standings) == len(command.nodes):
        return command
    return replace(
        command,
        nodes=tuple(standing.name for standing in standings),
        price=sum(standing.price or 0.0 for standing in standings),
        unpriced=sum(standing.price is None for standing in standings),
        disruption_cost=sum(standing.cost for standing in standings),
    )
