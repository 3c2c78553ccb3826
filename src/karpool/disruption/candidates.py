"""Who may be disrupted at all: every check in order, each with its reason, the first failure wins."""

from collections.abc import Callable
from typing import Final

from karpool.disruption.context import Candidate, DecisionContext
from karpool.disruption.node_facts import drain_is_limited
from karpool.disruption.policies import keeps_used_nodes
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.windows import in_grace, source_closed
from karpool.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, NODEPOOL, ZONE
from karpool.model.reasons import Reason

Check = Callable[[DecisionContext, Candidate], Reason | None]


def refusal(context: DecisionContext, candidate: Candidate, eventual: bool = False) -> Reason | None:  # noqa: FBT001, FBT002 - a detail of a question
    """Why a node is no candidate; `eventual`: its termination grace period may overrule its pods."""
    found = node_refusal(context, candidate)
    if found is not None:
        return found
    if eventual and drain_is_limited(candidate.state):
        return None
    return pod_refusal(context, candidate)


def node_refusal(context: DecisionContext, candidate: Candidate) -> Reason | None:
    """Why a node is no candidate, its pods aside."""
    return next((found for _, check in NODE_CHECKS if (found := check(context, candidate)) is not None), None)


def _about(candidate: Candidate, code: ReasonCode, said: str) -> Reason:
    return Reason(code, said, f"Node {candidate.name}")


def _in_command(context: DecisionContext, candidate: Candidate) -> Reason | None:
    if candidate.name not in context.in_command:
        return None
    return _about(candidate, ReasonCode.IN_COMMAND, "is part of a command that is under way")


def _unmanaged(_: DecisionContext, candidate: Candidate) -> Reason | None:
    if candidate.state.managed:
        return None
    return _about(candidate, ReasonCode.NOT_MANAGED, "has no NodeClaim: nobody who could remove it manages it")


def _without_node(_: DecisionContext, candidate: Candidate) -> Reason | None:
    if candidate.state.node is not None:
        return None
    return Reason(ReasonCode.NO_NODE, "its NodeClaim has no Node yet", f"NodeClaim {candidate.name}")


def _uninitialized(_: DecisionContext, candidate: Candidate) -> Reason | None:
    return (
        None
        if candidate.state.initialized
        else _about(candidate, ReasonCode.NODE_NOT_INITIALIZED, "is not initialized")
    )


def _deleting(_: DecisionContext, candidate: Candidate) -> Reason | None:
    return _about(candidate, ReasonCode.NODE_DELETING, "is being deleted already") if candidate.state.deleting else None


def _nominated(context: DecisionContext, candidate: Candidate) -> Reason | None:
    if candidate.name not in context.nominated:
        return None
    return _about(candidate, ReasonCode.NODE_NOMINATED, "is expected by a pod that waits for it")


def _protected(_: DecisionContext, candidate: Candidate) -> Reason | None:
    if candidate.state.annotations.get(DO_NOT_DISRUPT) != "true":
        return None
    return _about(candidate, ReasonCode.NODE_DO_NOT_DISRUPT, f"has the annotation {DO_NOT_DISRUPT}")


def _without_pool(context: DecisionContext, candidate: Candidate) -> Reason | None:
    if not candidate.state.pool:
        return _about(candidate, ReasonCode.MISSING_NODE_POOL_LABEL, f"has no label {NODEPOOL}")
    if candidate.pool is None:
        return _about(candidate, ReasonCode.NODE_POOL_NOT_FOUND, f"its NodePool {candidate.state.pool} does not exist")
    if not context.catalog.types:
        return _about(candidate, ReasonCode.NO_INSTANCE_TYPES, "the catalogue has no instance types")
    return None


NODE_CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("in no other command", _in_command),
    ("managed by a NodeClaim", _unmanaged),
    ("has a Node", _without_node),
    ("initialized", _uninitialized),
    ("not being deleted", _deleting),
    ("not expected by a waiting pod", _nominated),
    ("not marked do-not-disrupt", _protected),
    ("its NodePool is known", _without_pool),
)


def pod_refusal(context: DecisionContext, candidate: Candidate) -> Reason | None:
    """The first pod that must not be disturbed, and why; what pods say themselves comes before their budgets."""
    held = context.holds(candidate.row)
    return min(held, key=lambda one: (one[1].code != ReasonCode.POD_DO_NOT_DISRUPT, one[0].key))[1] if held else None


def emptiness_refusal(context: DecisionContext, candidate: Candidate) -> Reason | None:
    """Why an eligible node is not removed as empty."""
    claim, pool = candidate.state.claim, candidate.pool
    if claim is None or pool is None:
        return _about(candidate, ReasonCode.NOT_MANAGED, "is not managed")
    if pool.static or pool.spec.disruption.consolidate_after.never:
        return source_closed(claim, pool, context.now)
    if not candidate.empty:
        count = len(candidate.pods)
        said = f"has {count} pod{'s' if count > 1 else ''} that would need another place"
        return _about(candidate, ReasonCode.NOT_EMPTY, said)
    return source_closed(claim, pool, context.now) or in_grace(claim, pool, context.now)


def consolidation_refusal(context: DecisionContext, candidate: Candidate) -> Reason | None:
    """Why an eligible node is not looked at by consolidation."""
    claim, pool = candidate.state.claim, candidate.pool
    if claim is None or pool is None:
        return _about(candidate, ReasonCode.NOT_MANAGED, "is not managed")
    if pool.static:
        return source_closed(claim, pool, context.now)
    unclear = _unclear(candidate)
    if unclear is not None or pool.spec.disruption.consolidate_after.never:
        return unclear or source_closed(claim, pool, context.now)
    if candidate.empty:
        return _about(candidate, ReasonCode.EMPTY, "is empty: emptiness deals with it")
    return keeps_used_nodes(pool) or source_closed(claim, pool, context.now) or in_grace(claim, pool, context.now)


def _unclear(candidate: Candidate) -> Reason | None:
    """What is not known about a node that its price depends on."""
    labels, entry = candidate.state.labels, candidate.entry
    if entry is None or (entry.observed and candidate.price is None):
        said = f"its instance type {labels.get(INSTANCE_TYPE, '?')} is not in the catalogue"
        return _about(candidate, ReasonCode.UNKNOWN_INSTANCE_TYPE, said)
    if not labels.get(CAPACITY_TYPE):
        return _about(candidate, ReasonCode.MISSING_CAPACITY_TYPE, f"has no label {CAPACITY_TYPE}")
    if not labels.get(ZONE):
        return _about(candidate, ReasonCode.MISSING_ZONE, f"has no label {ZONE}")
    return None
