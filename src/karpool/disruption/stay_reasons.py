"""Why nodes stay and pods stay pending: what each method says."""

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.candidates.eligibility import consolidation_refusal, emptiness_refusal
from karpool.disruption.command import Cause
from karpool.disruption.context import DecisionContext
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.group_growth import growth_words
from karpool.disruption.methods.drift import replaced
from karpool.disruption.methods.single_node import single_refusal
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.repair.method import repair_refusal, repaired
from karpool.model.pod import Pod
from karpool.model.reading.unreadable import unreadable_reason
from karpool.model.reasons import Reason
from karpool.packing.refusals import why_unplaced


def why_it_stays(decision_pass: DecisionPass, candidate: Candidate) -> tuple[Reason, ...]:
    """Every reason that keeps a node; at least one."""
    reasons = [*_repair_reasons(decision_pass, candidate), *_drift_reasons(decision_pass, candidate)]
    refused = decision_pass.refusal(candidate)
    if refused is not None:
        reasons.append(refused)
    elif candidate.empty:
        reasons.append(
            emptiness_refusal(decision_pass.context, candidate)
            or decision_pass.over_budget(candidate, Cause.EMPTY)
            or _next(candidate)
        )
    else:
        reasons += _consolidation_reasons(decision_pass, candidate)
    return tuple(dict.fromkeys(reasons))


def _repair_reasons(decision_pass: DecisionPass, candidate: Candidate) -> list[Reason]:
    node = next((entry for entry in decision_pass.repairs() if entry.candidate.row == candidate.row), None)
    if node is None:
        return []
    outcome = repair_refusal(decision_pass, node) or repaired(decision_pass, node)
    later = Reason(ReasonCode.NOT_THIS_STEP, "is unhealthy, and could go in a later step", f"Node {candidate.name}")
    return [outcome if isinstance(outcome, Reason) else later]


def _drift_reasons(decision_pass: DecisionPass, candidate: Candidate) -> list[Reason]:
    if candidate.pool is None or decision_pass.context.drift(candidate) is None:
        return []
    refused = decision_pass.refusal(candidate, eventual=True) or decision_pass.over_budget(candidate, Cause.DRIFTED)
    if refused is None:
        outcome = replaced(decision_pass, candidate)
        refused = outcome if isinstance(outcome, Reason) else None
    return [
        refused
        or Reason(ReasonCode.NOT_THIS_STEP, "has drifted, and could go in a later step", f"Node {candidate.name}")
    ]


def _consolidation_reasons(decision_pass: DecisionPass, candidate: Candidate) -> list[Reason]:
    refused = consolidation_refusal(decision_pass.context, candidate)
    if refused is not None:
        return [refused]
    alone = single_refusal(decision_pass, candidate)
    together = decision_pass.group_refusals.get(candidate.row)
    if alone is None:
        return [decision_pass.over_budget(candidate, Cause.UNDERUTILIZED) or _next(candidate)]
    # What has no other place at any price has none either where more nodes go, however long the search.
    hopeless = alone.code == ReasonCode.PODS_WOULD_NOT_FIT
    return [alone] if together is None or hopeless else [alone, together]


def _next(candidate: Candidate) -> Reason:
    return Reason(ReasonCode.NOT_THIS_STEP, "could go in a later step", f"Node {candidate.name}")


def why_unschedulable(context: DecisionContext) -> tuple[tuple[str, Reason], ...]:
    """Pending pods that no node of today can take, and why; and those of which nobody knows what they ask for."""
    pods = context.snapshot.pods
    reasons = [
        (entry.key, unreadable_reason("Pod", entry))
        for entry in context.snapshot.unreadable
        if isinstance(entry, Pod) and not entry.terminal and not entry.bound
    ]
    unplaced = [row for row in context.unplaced if not pods.get(row).is_headroom]
    if not unplaced:
        return tuple(sorted(reasons))
    with context.engine.what_if() as trial:
        # Gangs are held back whole: alone, some of their pods would find room here.
        trial.place(unplaced, exempt=[True] * len(unplaced), existing_only=True)
        for row in unplaced:
            key = pods.get(row).key
            why = context.held_back.get(row) or why_unplaced(context.engine, row, exempt=True) or "there is none"
            if row not in context.held_back and (growth := growth_words(context, row)):
                why = f"{why}; {growth}"
            reasons.append((key, Reason(ReasonCode.PODS_WOULD_NOT_FIT, f"no node can take it: {why}", f"Pod {key}")))
    return tuple(sorted(reasons))
