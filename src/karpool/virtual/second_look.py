"""The second look at a command, some seconds after it was found."""

from dataclasses import replace

from karpool.disruption.candidates import consolidation_refusal, emptiness_refusal
from karpool.disruption.command import Cause, Command, Method
from karpool.disruption.methods import Pass
from karpool.disruption.situation import Standing


def second_look(again: Pass, command: Command) -> Command | None:
    """The command as it stands now: emptiness keeps the nodes that are still empty, consolidation all or nothing."""
    if command.cause is Cause.DRIFTED:
        return command
    rows = again.situation.snapshot.nodes.rows
    here = [again.situation.standing(rows[name]) for name in command.nodes if name in rows]
    kept = _within_budgets(again, [one for one in here if _still_fits(again, one, command)], command.cause)
    if command.method is Method.EMPTINESS:
        return _reduced(command, kept) if kept else None
    if len(kept) < len(command.nodes):
        return None
    found = again.evaluator.consolidate(kept).command
    if found is None or len(found.replacements) != len(command.replacements) or again.unworthy(found, kept):
        return None
    return found


def _still_fits(again: Pass, standing: Standing, command: Command) -> bool:
    question = emptiness_refusal if command.method is Method.EMPTINESS else consolidation_refusal
    return again.refusal(standing) is None and again.situation.once(standing.row, question) is None


def _within_budgets(again: Pass, standings: list[Standing], cause: Cause) -> list[Standing]:
    left: dict[str, int] = {}
    kept = []
    for one in standings:
        if one.pool is None:
            continue
        left.setdefault(one.pool.name, again.situation.allowance(one.pool, cause).remaining)
        if left[one.pool.name] > 0:
            left[one.pool.name] -= 1
            kept.append(one)
    return kept


def _reduced(command: Command, kept: list[Standing]) -> Command:
    return replace(
        command,
        nodes=tuple(one.name for one in kept),
        price=sum(one.price or 0.0 for one in kept),
        unpriced=sum(one.price is None for one in kept),
        disruption_cost=sum(one.cost for one in kept),
    )
