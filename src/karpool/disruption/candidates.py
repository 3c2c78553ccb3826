"""Who may be disrupted at all: every check in order, each with its reason, the first failure wins."""

from karpool.disruption.policies import keeps_used_nodes
from karpool.disruption.reasons import Code
from karpool.disruption.situation import Situation, Standing
from karpool.disruption.windows import in_grace, source_closed
from karpool.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, NODEPOOL, ZONE
from karpool.model.reasons import Reason


def refusal(situation: Situation, standing: Standing, eventual: bool = False) -> Reason | None:  # noqa: FBT001, FBT002 - a detail of a question
    """Why a node is no candidate; `eventual`: its termination grace period may overrule its pods."""
    found = node_refusal(situation, standing)
    if found is not None:
        return found
    claim = standing.state.claim
    if eventual and claim is not None and claim.spec.termination_grace_period is not None:
        return None
    return pod_refusal(situation, standing)


def node_refusal(situation: Situation, standing: Standing) -> Reason | None:
    """Why a node is no candidate, its pods aside."""
    state, name = standing.state, f"Node {standing.name}"
    if standing.name in situation.in_command:
        return Reason(Code.IN_COMMAND, "is part of a command that is under way", name)
    if not state.managed:
        return Reason(Code.NOT_MANAGED, "has no NodeClaim: nobody who could remove it manages it", name)
    if state.node is None:
        return Reason(Code.NO_NODE, "its NodeClaim has no Node yet", f"NodeClaim {standing.name}")
    if not state.initialized:
        return Reason(Code.NODE_NOT_INITIALIZED, "is not initialized", name)
    if state.deleting:
        return Reason(Code.NODE_DELETING, "is being deleted already", name)
    if standing.name in situation.nominated:
        return Reason(Code.NODE_NOMINATED, "is expected by a pod that waits for it", name)
    if state.annotations.get(DO_NOT_DISRUPT) == "true":
        return Reason(Code.NODE_DO_NOT_DISRUPT, f"has the annotation {DO_NOT_DISRUPT}", name)
    if not state.pool:
        return Reason(Code.MISSING_NODE_POOL_LABEL, f"has no label {NODEPOOL}", name)
    if standing.pool is None:
        return Reason(Code.NODE_POOL_NOT_FOUND, f"its NodePool {state.pool} does not exist", name)
    if not situation.catalog.types:
        return Reason(Code.NO_INSTANCE_TYPES, "the catalogue has no instance types", name)
    return None


def pod_refusal(situation: Situation, standing: Standing) -> Reason | None:
    """The first pod on the node that must not be disturbed, and why; what a pod says itself comes before its budgets."""
    pods = situation.snapshot.pods
    here = [pods.get(row) for row in situation.snapshot.pods_on(standing.row)]
    held = [(pod.key, why) for pod in here if not situation.expected(pod) and (why := situation.hold(pod)) is not None]
    return min(held, key=lambda entry: (entry[1].code != Code.POD_DO_NOT_DISRUPT, entry[0]))[1] if held else None


def emptiness_refusal(situation: Situation, standing: Standing) -> Reason | None:
    """Why an eligible node is not removed as empty."""
    claim, pool = standing.state.claim, standing.pool
    if claim is None or pool is None:
        return Reason(Code.NOT_MANAGED, "is not managed", f"Node {standing.name}")
    if pool.static:
        return Reason(Code.STATIC_POOL, f"NodePool {pool.name} keeps a fixed number of nodes", f"Node {standing.name}")
    if pool.spec.disruption.consolidate_after.never:
        return source_closed(claim, pool, situation.now)
    if not standing.empty:
        count = len(standing.pods)
        said = f"has {count} pod{'s' if count > 1 else ''} that would need another place"
        return Reason(Code.NOT_EMPTY, said, f"Node {standing.name}")
    return source_closed(claim, pool, situation.now) or in_grace(claim, pool, situation.now)


def consolidation_refusal(situation: Situation, standing: Standing) -> Reason | None:
    """Why an eligible node is not looked at by consolidation."""
    claim, pool, name = standing.state.claim, standing.pool, f"Node {standing.name}"
    labels = standing.state.labels
    if claim is None or pool is None:
        return Reason(Code.NOT_MANAGED, "is not managed", name)
    if pool.static:
        return Reason(Code.STATIC_POOL, f"NodePool {pool.name} keeps a fixed number of nodes", name)
    if standing.entry is None:
        said = f"its instance type {labels.get(INSTANCE_TYPE, '?')} is not in the catalogue"
        return Reason(Code.UNKNOWN_INSTANCE_TYPE, said, name)
    if not labels.get(CAPACITY_TYPE):
        return Reason(Code.MISSING_CAPACITY_TYPE, f"has no label {CAPACITY_TYPE}", name)
    if not labels.get(ZONE):
        return Reason(Code.MISSING_ZONE, f"has no label {ZONE}", name)
    if pool.spec.disruption.consolidate_after.never:
        return source_closed(claim, pool, situation.now)
    if standing.empty:
        return Reason(Code.EMPTY, "is empty: emptiness deals with it", name)
    return keeps_used_nodes(pool) or source_closed(claim, pool, situation.now) or in_grace(claim, pool, situation.now)
