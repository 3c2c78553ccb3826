"""NodeClaims that Karpool deletes by itself: too old, too slow to launch or register, or without an instance."""

from datetime import datetime

from karpool.execution.actions import DeleteClaim
from karpool.execution.conditions import LAUNCHED, REGISTERED, instance_terminated
from karpool.execution.reconcile_context import ReconcileContext
from karpool.model.nodepool import NodeClaim
from karpool.wire.objects import condition


def delete_expired(context: ReconcileContext, claim: NodeClaim) -> bool:
    """Delete a claim whose time is over, and say whether that was so; otherwise run again when it may be."""
    moments = [moment for moment in (_expires(claim), _times_out(context, claim)) if moment is not None]
    if not _instance_gone(context, claim) and not any(moment <= context.now for moment in moments):
        for moment in moments:
            context.requeue_at(moment)
        return False
    context.do(DeleteClaim(claim.name, claim.metadata.uid))
    return True


def _expires(claim: NodeClaim) -> datetime | None:
    created, length = claim.metadata.creation_timestamp, claim.spec.expire_after.delta
    return None if created is None or length is None else created + length


def _times_out(context: ReconcileContext, claim: NodeClaim) -> datetime | None:
    """When a claim that does not launch, or whose node does not register, is given up."""
    settings = context.settings
    for kind, timeout in ((LAUNCHED, settings.launch_timeout), (REGISTERED, settings.registration_timeout)):
        if not claim.is_true(kind):
            current = condition(claim.status.conditions, kind)
            since = (current.last_transition_time if current else None) or claim.metadata.creation_timestamp
            return None if since is None else since + timeout
    return None


def _instance_gone(context: ReconcileContext, claim: NodeClaim) -> bool:
    """Whether the provider has lost a claim's instance, and no ready node contradicts it."""
    return instance_terminated(claim) and not any(node.ready for node in context.nodes_of.get(claim.name, ()))
