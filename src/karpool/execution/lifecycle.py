"""The lifecycle of NodeClaims that nobody has deleted: registration, initialization, conditions, expiry.

Launching is the provider's part: it writes a claim's provider id, size and labels, and the condition Launched.
"""

from datetime import datetime
from typing import NamedTuple

from karpool.execution.actions import Action, AddFinalizer
from karpool.execution.disruption_conditions import renew_hash, set_consolidatable, set_drifted
from karpool.execution.expiry import delete_expired
from karpool.execution.holds import claim_held
from karpool.execution.reconcile_context import ReconcileContext
from karpool.execution.registration import reconcile_registration
from karpool.execution.settings import ExecutionSettings
from karpool.execution.state import ExecutionState
from karpool.model.labels import NODEPOOL, TERMINATION_FINALIZER
from karpool.model.objects import Objects


class LifecycleResult(NamedTuple):
    actions: tuple[Action, ...]
    requeue_at: datetime | None


def lifecycle(objects: Objects, now: datetime, settings: ExecutionSettings) -> LifecycleResult:
    context = ReconcileContext(objects, ExecutionState(), now, settings)
    pools = {pool.name: pool for pool in objects.node_pools}
    for claim in objects.node_claims:
        pool = pools.get(claim.metadata.labels.get(NODEPOOL, ""))
        if claim_held(context, claim) is not None or (pool is not None and pool.unreadable):
            continue
        if not settings.ours(claim):
            continue
        if claim.terminating or delete_expired(context, claim):
            continue
        if TERMINATION_FINALIZER not in claim.metadata.finalizers:
            context.do(AddFinalizer("NodeClaim", claim.name, TERMINATION_FINALIZER))
        reconcile_registration(context, claim)
        set_consolidatable(context, claim, pool)
        if not renew_hash(context, claim, pool):
            set_drifted(context, claim, pool)
    return LifecycleResult(context.actions, context.next_run)
