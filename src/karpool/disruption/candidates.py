"""Who may be disrupted at all: every check in order, each with its reason, the first failure wins."""

from collections.abc import Callable
from typing import Final

from karpool.disruption.nodebook import drain_is_limited
from karpool.disruption.policies import keeps_used_nodes
from karpool.disruption.reasons import Code
from karpool.disruption.situation import Situation, Standing
from karpool.disruption.windows import in_grace, source_closed
from karpool.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, NODEPOOL, ZONE
from karpool.model.reasons import Reason

Check = Callable[[Situation, Standing], Reason | None]


def refusal(situation: Situation, standing: Standing, eventual: bool = False) -> Reason | None:  # noqa: FBT001, FBT002 - a detail of a question
    """Why a node is no candidate; `eventual`: its termination grace period may overrule its pods."""
    found = node_refusal(situation, standing)
    if found is not None:
        return found
    if eventual and drain_is_limited(standing.state):
        return None
    return pod_refusal(situation, standing)


def node_refusal(situation: Situation, standing: Standing) -> Reason | None:
    """Why a node is no candidate, its pods aside."""
    return next((found for _, check in NODE_CHECKS if (found := check(situation, standing)) is not None), None)


def _about(standing: Standing, code: Code, said: str) -> Reason:
    return Reason(code, said, f"Node {standing.name}")


def _in_command(situation: Situation, standing: Standing) -> Reason | None:
    if standing.name not in situation.in_command:
        return None
    return _about(standing, Code.IN_COMMAND, "is part of a command that is under way")


def _unmanaged(_: Situation, standing: Standing) -> Reason | None:
    if standing.state.managed:
        return None
    return _about(standing, Code.NOT_MANAGED, "has no NodeClaim: nobody who could remove it manages it")


def _without_node(_: Situation, standing: Standing) -> Reason | None:
    if standing.state.node is not None:
        return None
    return Reason(Code.NO_NODE, "its NodeClaim has no Node yet", f"NodeClaim {standing.name}")


def _uninitialized(_: Situation, standing: Standing) -> Reason | None:
    return None if standing.state.initialized else _about(standing, Code.NODE_NOT_INITIALIZED, "is not initialized")


def _deleting(_: Situation, standing: Standing) -> Reason | None:
    return _about(standing, Code.NODE_DELETING, "is being deleted already") if standing.state.deleting else None


def _nominated(situation: Situation, standing: Standing) -> Reason | None:
    if standing.name not in situation.nominated:
        return None
    return _about(standing, Code.NODE_NOMINATED, "is expected by a pod that waits for it")


def _protected(_: Situation, standing: Standing) -> Reason | None:
    if standing.state.annotations.get(DO_NOT_DISRUPT) != "true":
        return None
    return _about(standing, Code.NODE_DO_NOT_DISRUPT, f"has the annotation {DO_NOT_DISRUPT}")


def _without_pool(situation: Situation, standing: Standing) -> Reason | None:
    if not standing.state.pool:
        return _about(standing, Code.MISSING_NODE_POOL_LABEL, f"has no label {NODEPOOL}")
    if standing.pool is None:
        return _about(standing, Code.NODE_POOL_NOT_FOUND, f"its NodePool {standing.state.pool} does not exist")
    if not situation.catalog.types:
        return _about(standing, Code.NO_INSTANCE_TYPES, "the catalogue has no instance types")
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


def pod_refusal(situation: Situation, standing: Standing) -> Reason | None:
    """The first pod that must not be disturbed, and why; what pods say themselves comes before their budgets."""
    held = situation.holds(standing.row)
    return min(held, key=lambda one: (one[1].code != Code.POD_DO_NOT_DISRUPT, one[0].key))[1] if held else None


def emptiness_refusal(situation: Situation, standing: Standing) -> Reason | None:
    """Why an eligible node is not removed as empty."""
    claim, pool = standing.state.claim, standing.pool
    if claim is None or pool is None:
        return _about(standing, Code.NOT_MANAGED, "is not managed")
    if pool.static or pool.spec.disruption.consolidate_after.never:
        return source_closed(claim, pool, situation.now)
    if not standing.empty:
        count = len(standing.pods)
        said = f"has {count} pod{'s' if count > 1 else ''} that would need another place"
        return _about(standing, Code.NOT_EMPTY, said)
    return source_closed(claim, pool, situation.now) or in_grace(claim, pool, situation.now)


def consolidation_refusal(situation: Situation, standing: Standing) -> Reason | None:
    """Why an eligible node is not looked at by consolidation."""
    claim, pool = standing.state.claim, standing.pool
    if claim is None or pool is None:
        return _about(standing, Code.NOT_MANAGED, "is not managed")
    if pool.static:
        return source_closed(claim, pool, situation.now)
    unclear = _unclear(standing)
    if unclear is not None or pool.spec.disruption.consolidate_after.never:
        return unclear or source_closed(claim, pool, situation.now)
    if standing.empty:
        return _about(standing, Code.EMPTY, "is empty: emptiness deals with it")
    return keeps_used_nodes(pool) or source_closed(claim, pool, situation.now) or in_grace(claim, pool, situation.now)


def _unclear(standing: Standing) -> Reason | None:
    """What is not known about a node that its price depends on."""
    labels, entry = standing.state.labels, standing.entry
    if entry is None or (entry.observed and standing.price is None):
        said = f"its instance type {labels.get(INSTANCE_TYPE, '?')} is not in the catalogue"
        return _about(standing, Code.UNKNOWN_INSTANCE_TYPE, said)
    if not labels.get(CAPACITY_TYPE):
        return _about(standing, Code.MISSING_CAPACITY_TYPE, f"has no label {CAPACITY_TYPE}")
    if not labels.get(ZONE):
        return _about(standing, Code.MISSING_ZONE, f"has no label {ZONE}")
    return None
