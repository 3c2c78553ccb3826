"""Why nodes stay and pods wait: what each method says."""

from karpool.disruption.candidates import consolidation_refusal, emptiness_refusal
from karpool.disruption.command import Cause
from karpool.disruption.methods import Pass
from karpool.disruption.reasons import Code
from karpool.disruption.situation import Situation, Standing
from karpool.model.reasons import Reason
from karpool.packing.refusals import refusals, sentence


def why_it_stays(last: Pass, standing: Standing) -> tuple[Reason, ...]:
    """Every reason that keeps a node; at least one."""
    reasons = [*_drift_reasons(last, standing)]
    refused = last.refusal(standing)
    if refused is not None:
        reasons.append(refused)
    elif standing.empty:
        reasons.append(
            emptiness_refusal(last.situation, standing) or last.allowed(standing, Cause.EMPTY) or _next(standing)
        )
    else:
        reasons += _consolidation_reasons(last, standing)
    return tuple(dict.fromkeys(reasons))


def _drift_reasons(last: Pass, standing: Standing) -> list[Reason]:
    if standing.pool is None or last.drifted(standing) is None:
        return []
    refused = last.refusal(standing, eventual=True) or last.allowed(standing, Cause.DRIFTED)
    if refused is None:
        found = last.replaced(standing)
        refused = found if isinstance(found, Reason) else None
    return [refused or Reason(Code.NOT_THIS_STEP, "has drifted, and could go in a later step", f"Node {standing.name}")]


def _consolidation_reasons(last: Pass, standing: Standing) -> list[Reason]:
    refused = consolidation_refusal(last.situation, standing)
    if refused is not None:
        return [refused]
    alone = last.single_refusal(standing)
    together = last.tried.get(standing.row)
    if alone is None:
        return [last.allowed(standing, Cause.UNDERUTILIZED) or _next(standing)]
    return [alone] if together is None else [alone, together]


def _next(standing: Standing) -> Reason:
    return Reason(Code.NOT_THIS_STEP, "could go in a later step", f"Node {standing.name}")


def why_unschedulable(situation: Situation) -> tuple[tuple[str, Reason], ...]:
    """Pending pods that no node of today can take, and why."""
    if not situation.stranded:
        return ()
    pods = situation.snapshot.pods
    found = []
    with situation.engine.what_if() as trial:
        trial.place(situation.stranded, exempt=[True] * len(situation.stranded), existing_only=True)
        for row in situation.stranded:
            key = pods.get(row).key
            said = sentence(refusals(situation.engine, row, exempt=True)) or "there is none"
            found.append((key, Reason(Code.PODS_WOULD_NOT_FIT, f"no node can take it: {said}", f"Pod {key}")))
    return tuple(sorted(found))
