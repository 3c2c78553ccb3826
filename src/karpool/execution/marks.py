"""Conditions that follow from facts: whether a node may be consolidated, and whether it has drifted from its pool."""

from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog
from karpool.disruption.drift_detection import drift_of
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.windows import reference_time
from karpool.execution.actions import ClearClaimCondition
from karpool.execution.conditions import CONSOLIDATABLE, DRIFTED, INITIALIZED, LAUNCHED
from karpool.execution.turn import Turn
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.wire.objects import condition

DRIFT_RECHECK: Final = timedelta(minutes=5)
_OURS: Final = frozenset(
    {ReasonCode.NODE_POOL_DRIFTED, ReasonCode.REQUIREMENTS_DRIFTED, ReasonCode.INSTANCE_TYPE_NOT_FOUND}
)


def mark_consolidatable(turn: Turn, claim: NodeClaim, pool: NodePool | None) -> None:
    """Say whether the node has been quiet long enough; claims of static pools are left alone."""
    if pool is None or pool.static:
        return
    start, length = reference_time(claim), pool.spec.disruption.consolidate_after.delta
    quiet = None if start is None or length is None else start + length
    if claim.is_true(INITIALIZED) and length is not None and (quiet is None or quiet <= turn.now):
        turn.note(claim, CONSOLIDATABLE, "True", CONSOLIDATABLE)
        return
    _clear(turn, claim, CONSOLIDATABLE)
    if quiet is not None:
        turn.look_again(quiet)


def mark_drifted(turn: Turn, claim: NodeClaim, pool: NodePool | None, catalog: Catalog | None) -> None:
    """Say how the node has drifted; what a provider found by itself is left as it is."""
    if not claim.is_true(LAUNCHED):
        # Before a machine is chosen, the claim lacks the labels that its requirements are compared with.
        _clear(turn, claim, DRIFTED)
        return
    held = condition(claim.status.conditions, DRIFTED)
    if pool is None or (held is not None and held.status == "True" and held.reason not in _OURS):
        return
    bare = claim
    if held is not None:
        others = tuple(entry for entry in claim.status.conditions if entry.type != DRIFTED)
        bare = replace(claim, status=replace(claim.status, conditions=others))
    found = drift_of(bare, pool, catalog, turn.now)
    if found is None:
        _clear(turn, claim, DRIFTED)
    else:
        turn.note(claim, DRIFTED, "True", found.reason.code, found.reason.message)
    if catalog is not None:
        turn.look_again(turn.now + DRIFT_RECHECK)


def _clear(turn: Turn, claim: NodeClaim, kind: str) -> None:
    if condition(claim.status.conditions, kind) is not None:
        turn.do(ClearClaimCondition(claim.name, kind))
