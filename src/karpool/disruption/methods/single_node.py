"""Single-node consolidation: the first node that can go alone, with nothing or something cheaper in its place."""

from collections.abc import Sequence
from typing import Final

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.ordering import in_turns
from karpool.disruption.command import Cause, Command
from karpool.disruption.decision_pass import DecisionPass, lasting
from karpool.disruption.reasons import ReasonCode
from karpool.model.reasons import Reason

_AT_ONCE: Final = 128
"""How many nodes one scan judges."""


def single_node(decision_pass: DecisionPass) -> tuple[Command, ...]:
    """The first node that can go alone; every pool gets its turn."""
    if decision_pass.postponed:
        return ()
    refused = decision_pass.refusals.single.rows()
    waiting = [node for node in in_turns(decision_pass.consolidatable()) if node.row not in refused]
    exhausted = decision_pass.exhausted_pools(Cause.UNDERUTILIZED)
    permitted = [node for node in waiting if node.pool_name not in exhausted]
    for done in range(0, len(permitted), _AT_ONCE):
        decision_pass.progress("", done, len(permitted))
        command = _first_alone(decision_pass, permitted[done : done + _AT_ONCE])
        if command is not None:
            return (command,)
    return ()


def _first_alone(decision_pass: DecisionPass, candidates: Sequence[Candidate]) -> Command | None:
    """The first of some nodes that can go alone; those before it that cannot are remembered."""
    most = decision_pass.context.settings.most_new_nodes
    scan = decision_pass.evaluator.scan_single(candidates, most)
    chosen, tried, not_worth_it, reasons = None, len(candidates), set(), {}
    for place in scan.promising():
        candidate = candidates[place]
        if decision_pass.not_even_deleted(candidate):
            not_worth_it.add(place)
            continue
        outcome = decision_pass.evaluator.consolidate([candidate], most)
        reason = outcome.reason
        if outcome.command is not None:
            reason = decision_pass.not_worth_it(outcome.command, [candidate])
            if reason is None:
                chosen, tried = outcome.command, place
                break
            if reason.code == ReasonCode.BALANCED_SCORE_TOO_LOW:
                decision_pass.verdicts += decision_pass.judged(outcome.command, [candidate])
            if not lasting(reason):
                not_worth_it.add(place)
                continue
        if reason is not None:
            reasons[candidate.row] = reason
    single, refused = decision_pass.refusals.single, [place for place in range(tried) if place not in not_worth_it]
    single.put(scan, [candidates[place].row for place in refused], refused)
    for row, reason in reasons.items():
        single.explain(row, reason)
    return chosen


def single_refusal(decision_pass: DecisionPass, candidate: Candidate) -> Reason | None:
    """Why a node cannot go alone, if it cannot."""
    single = decision_pass.refusals.single
    known = single.reason(candidate.row)
    if known is not None:
        return known
    outcome = decision_pass.evaluator.consolidate([candidate], decision_pass.context.settings.most_new_nodes)
    if outcome.reason is not None:
        single.explain(candidate.row, outcome.reason)
        return outcome.reason
    return None if outcome.command is None else decision_pass.not_worth_it(outcome.command, [candidate])
