"""Why a pod is where it is or waits, and where else it could be: the engine is asked as if it were to be placed now."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, Literal

import numpy as np

from karpool.cluster.snapshot import Snapshot
from karpool.disruption.candidates.pods import blocks_until
from karpool.disruption.context import DecisionContext
from karpool.model.owners import workload_of
from karpool.packing.kernels import refusals as k
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.refusal_messages import NODES, POD, Refusal, RefusalRule
from karpool.packing.refusals import essential_levels, node_codes, refusals
from karpool.report.document_part import API_VERSION, DocumentPart

_MOST_NAMED: Final = 60


class PodRefusal(DocumentPart, frozen=True, kw_only=True):
    """Why so many nodes, or a pool, would not take the pod; `what` is `nodes`, or names the pool or the pod itself."""

    count: int
    what: str
    rule: str
    detail: str


class PodDocument(DocumentPart, frozen=True, kw_only=True):
    """Everything about one pod.

    `held` and `blocked` say why it may not be moved, or not be evicted now; null if nothing forbids that. `would` is
    the node to which it would go if it were placed anew, null if no node that exists would take it; then `newNodeOf`
    is the pool that could launch one. `fits` counts the nodes that would take it, and `nodes` names up to 60 of them.
    """

    api_version: Literal["karpool.sh/v1"] = API_VERSION
    kind: Literal["PodExplanation"] = "PodExplanation"
    time: datetime
    name: str
    node: str
    workload: str
    daemon: bool
    held: str | None
    blocked: str | None
    would: str | None
    new_node_of: str | None
    fits: int
    nodes: tuple[str, ...]
    refusals: tuple[PodRefusal, ...]


def pod_document(context: DecisionContext, name: str) -> PodDocument | None:
    """Everything about one pod: its node, what keeps it there, and what each node and pool says; None if it is gone."""
    row = context.snapshot.pods.rows.get(name)
    if row is None:
        return None
    pod = context.snapshot.pods.get(row)
    held = blocks_until(pod, context.now)
    blocked = context.pdbs.eviction_blocked(pod, context.now)
    return PodDocument(
        time=context.now,
        name=pod.key,
        node=pod.spec.node_name,
        workload=str(workload_of(pod)),
        daemon=pod.is_daemon,
        held=None if held is None else held.message,
        blocked=None if blocked is None else blocked.message,
        **_places(context, row),
    )


@contextmanager
def _lifted(snapshot: Snapshot, row: int) -> Iterator[None]:
    """Has a pod ask for nothing on its node, nor on the one where it is expected, while the block lasts."""
    node = int(snapshot.pods.node_of[row])
    if node < 0:
        yield
        return
    snapshot.bindings.unbind(row)
    snapshot.version += 1
    try:
        yield
    finally:
        snapshot.move(row, snapshot.nodes.get(node).name)


def _places(context: DecisionContext, row: int) -> dict[str, Any]:
    """Where the pod would go if it were taken off its node, who else would take it, and why all others refuse."""
    snapshot, engine = context.snapshot, context.engine
    exempt = context.exempt(snapshot.pods.get(row))
    with _lifted(snapshot, row):
        with engine.what_if() as trial:
            # Asked before the pod is placed: then it would be in its own way.
            trial.place([], closed=context.closed, existing_only=True)
            levels = essential_levels(engine, int(snapshot.pods.class_of[row]))
            codes = node_codes(engine, levels, int(snapshot.pods.labels_of[row]), exempt=exempt)
            fitting = {int(node) for node in np.flatnonzero(codes == k.FITS * k.STEP)}
            refused = refusals(engine, row, exempt=exempt)
            (target,) = trial.place([row], exempt=[exempt], closed=context.closed, existing_only=True).targets
            if target != UNPLACED:
                fitting.add(int(target))
            chosen = None if target == UNPLACED else snapshot.nodes.get(int(target)).name
        launching, of_pools = (None, []) if chosen is not None else _new_node(context, row)
    names = sorted(snapshot.nodes.get(node).name for node in fitting)
    return {
        "would": chosen,
        "new_node_of": launching,
        "fits": len(names),
        "nodes": tuple(names[:_MOST_NAMED]),
        "refusals": tuple(
            PodRefusal(count=entry.count, what=entry.what, rule=entry.rule, detail=entry.detail)
            for entry in (*refused, *of_pools)
            if entry.rule != RefusalRule.RESERVED
        ),
    }


def _new_node(context: DecisionContext, row: int) -> tuple[str | None, list[Refusal]]:
    """The pool that could launch a node for a pod that no node takes, or why none of them could."""
    engine = context.engine
    exempt = context.exempt(context.snapshot.pods.get(row))
    with engine.what_if() as trial:
        placement = trial.place([row], exempt=[exempt], closed=context.closed)
        if placement.targets[0] != UNPLACED:
            return placement.claim_pool(0), []
        return None, [entry for entry in refusals(engine, row, exempt=exempt) if entry.what not in (NODES, POD)]
