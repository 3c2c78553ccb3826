"""The conditions Consolidatable and Drifted of a NodeClaim, which follow from its age, its pods and its pool."""

from typing import Final

from msgspec.structs import replace

from karpool.disruption.candidates.drift_detection import FORMER_HASH, drift_of, hash_version, with_node_labels
from karpool.disruption.candidates.windows import reference_time
from karpool.disruption.reasons import ReasonCode
from karpool.execution.actions import Annotate, ClearClaimCondition
from karpool.execution.conditions import DRIFTED, INITIALIZED, LAUNCHED
from karpool.execution.reconcile_context import ReconcileContext
from karpool.model.labels import HASH_VERSION, NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from karpool.model.nodepool import CONSOLIDATABLE, NodeClaim, NodePool
from karpool.wire.objects import condition

_OWN_REASONS: Final = frozenset(
    {ReasonCode.NODE_POOL_DRIFTED, ReasonCode.REQUIREMENTS_DRIFTED, ReasonCode.INSTANCE_TYPE_NOT_FOUND}
)


def set_consolidatable(context: ReconcileContext, claim: NodeClaim, pool: NodePool | None) -> None:
    """Set Consolidatable once the node has been quiet for `consolidateAfter`; skip claims of static pools."""
    if pool is None or pool.static:
        return
    start, length = reference_time(claim), pool.spec.disruption.consolidate_after.delta
    quiet = None if start is None or length is None else start + length
    if claim.is_true(INITIALIZED) and length is not None and (quiet is None or quiet <= context.now):
        context.set_condition(claim, CONSOLIDATABLE, "True", CONSOLIDATABLE)
        return
    _clear(context, claim, CONSOLIDATABLE)
    if quiet is not None:
        context.requeue_at(quiet)


def set_drifted(context: ReconcileContext, claim: NodeClaim, pool: NodePool | None) -> None:
    """Set Drifted if the node differs from its pool; a condition that a provider wrote stays."""
    if not claim.is_true(LAUNCHED):
        # Before an instance is chosen, the claim lacks the labels that its requirements are compared with.
        _clear(context, claim, DRIFTED)
        return
    current = condition(claim.status.conditions, DRIFTED)
    if pool is None or (current is not None and current.status == "True" and current.reason not in _OWN_REASONS):
        return
    without = claim
    if current is not None:
        others = tuple(entry for entry in claim.status.conditions if entry.type != DRIFTED)
        without = replace(claim, status=replace(claim.status, conditions=others))
    for node in context.nodes_of.get(claim.name, ()):
        without = with_node_labels(without, node.metadata.labels)
    drift = drift_of(without, pool, None, context.now)
    if drift is None:
        _clear(context, claim, DRIFTED)
    else:
        context.set_condition(claim, DRIFTED, "True", drift.reason.code, drift.reason.message)


def renew_hash(context: ReconcileContext, claim: NodeClaim, pool: NodePool | None) -> bool:
    """Give a claim whose hash is of another version that of its pool; whether it had to be done.

    One that has drifted keeps a hash that differs.
    """
    ours, theirs = claim.metadata.annotations, {} if pool is None else pool.metadata.annotations
    version = hash_version(ours)
    if version is None or version == HASH_VERSION or hash_version(theirs) != HASH_VERSION:
        return False
    hashed = theirs.get(NODEPOOL_HASH, "")
    if claim.is_true(DRIFTED):
        hashed = ours.get(NODEPOOL_HASH, "").removeprefix(FORMER_HASH)
    for key, value in ((NODEPOOL_HASH, hashed), (NODEPOOL_HASH_VERSION, HASH_VERSION)):
        if ours.get(key) != value:
            context.do(Annotate("NodeClaim", claim.name, key, value))
    return True


def _clear(context: ReconcileContext, claim: NodeClaim, kind: str) -> None:
    if condition(claim.status.conditions, kind) is not None:
        context.do(ClearClaimCondition(claim.name, kind))
