"""Why nodes stay and pods wait: what each method says."""

from karpool.disruption.candidates import consolidation_refusal, emptiness_refusal
from karpool.disruption.command import Cause
from karpool.disruption.context import Candidate, DecisionContext
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.reasons import ReasonCode
from karpool.model.reasons import Reason
from karpool.packing.refusals import refusals, sentence


def why_it_stays(last: DecisionPass, candidate: Candidate) -> tuple[Reason, ...]:
    """Every reason that keeps a node; at least one."""
    reasons = [*_drift_reasons(last, candidate)]
    refused = last.refusal(candidate)
    if refused is not None:
        reasons.append(refused)
    elif candidate.empty:
        reasons.append(
            emptiness_refusal(last.context, candidate) or last.allowed(candidate, Cause.EMPTY) or _next(candidate)
        )
    else:
        reasons += _consolidation_reasons(last, candidate)
    return tuple(dict.fromkeys(reasons))


def _drift_reasons(last: DecisionPass, candidate: Candidate) -> list[Reason]:
    if candidate.pool is None or last.drifted(candidate) is None:
        return []
    refused = last.refusal(candidate, eventual=True) or last.allowed(candidate, Cause.DRIFTED)
    if refused is None:
        found = last.replaced(candidate)
        refused = found if isinstance(found, Reason) else None
    return [
        refused
        or Reason(ReasonCode.NOT_THIS_STEP, "has drifted, and could go in a later step", f"Node {candidate.name}")
    ]


def _consolidation_reasons(last: DecisionPass, candidate: Candidate) -> list[Reason]:
    refused = consolidation_refusal(last.context, candidate)
    if refused is not None:
        return [refused]
    alone = last.single_refusal(candidate)
    together = last.tried.get(candidate.row)
    if alone is None:
        return [last.allowed(candidate, Cause.UNDERUTILIZED) or _next(candidate)]
    return [alone] if together is None else [alone, together]


def _next(candidate: Candidate) -> Reason:
    return Reason(ReasonCode.NOT_THIS_STEP, "could go in a later step", f"Node {candidate.name}")


def why_unschedulable(context: DecisionContext) -> tuple[tuple[str, Reason], ...]:
    """Pending pods that no node of today can take, and why."""
    if not context.stranded:
        return ()
    pods = context.snapshot.pods
    found = []
    with context.engine.what_if() as trial:
        trial.place(context.stranded, exempt=[True] * len(context.stranded), existing_only=True)
        for row in context.stranded:
            key = pods.get(row).key
            said = sentence(refusals(context.engine, row, exempt=True)) or "there is none"
            found.append((key, Reason(ReasonCode.PODS_WOULD_NOT_FIT, f"no node can take it: {said}", f"Pod {key}")))
    return tuple(sorted(found))
