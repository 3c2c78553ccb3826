"""Why a pod is where it is, and where else it could be: the engine is asked as if the pod were to be placed now."""

from typing import Any, Final

import numpy as np

from karpool.disruption.candidates.pods import blocks_until
from karpool.disruption.context import DecisionContext
from karpool.model.owners import workload_of
from karpool.packing.kernels import refusals as k
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.refusal_messages import RefusalRule
from karpool.packing.refusals import essential_levels, node_codes, refusals
from karpool.web.questions import Answer, QuestionError

_MOST_NAMED: Final = 60


def pod_answer(context: DecisionContext, name: str) -> Answer:
    """Everything about one pod: its node, what keeps it there, and what each node and pool says to it."""
    row = context.snapshot.pods.rows.get(name)
    if row is None:
        raise QuestionError(f"there is no pod {name} now")
    pod = context.snapshot.pods.get(row)
    held = blocks_until(pod, context.now)
    blocked = context.pdbs.eviction_blocked(pod, context.now)
    return {
        "name": pod.key,
        "node": pod.spec.node_name,
        "workload": str(workload_of(pod)),
        "daemon": pod.is_daemon,
        "held": None if held is None else held.message,
        "blocked": None if blocked is None else blocked.message,
        **_places(context, row),
    }


def _places(context: DecisionContext, row: int) -> dict[str, Any]:
    """Where the pod would go if it were taken off its node, who else would take it, and why all others refuse."""
    snapshot, engine = context.snapshot, context.engine
    pod = snapshot.pods.get(row)
    exempt = context.exempt(pod)
    with engine.what_if() as trial:
        if pod.bound:
            trial.uncount([row])
        placement = trial.place([row], exempt=[exempt], closed=context.closed, existing_only=True)
        levels = essential_levels(engine, int(snapshot.pods.class_of[row]))
        codes = node_codes(engine, levels, int(snapshot.pods.labels_of[row]), exempt=exempt)
        (target,) = placement.targets
        fitting = {int(node) for node in np.flatnonzero(codes == k.FITS * k.STEP)}
        if target != UNPLACED:
            fitting.add(int(target))
        refused = [entry for entry in refusals(engine, row, exempt=exempt) if entry.rule != RefusalRule.RESERVED]
        chosen = None if target == UNPLACED else snapshot.nodes.get(int(target)).name
    names = sorted(snapshot.nodes.get(node).name for node in fitting)
    return {
        "would": chosen,
        "fits": len(names),
        "nodes": names[:_MOST_NAMED],
        "refusals": [
            {"count": entry.count, "what": entry.what, "rule": entry.rule, "detail": entry.detail} for entry in refused
        ],
    }
