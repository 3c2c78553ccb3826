"""Termination: a deleted NodeClaim deletes its Node; the Node is drained, its instance ended, finalizers removed.

Each pass does the next unfinished stage. The claim's conditions Drained, VolumesDetached and InstanceTerminating show
how far it is.
"""

from datetime import datetime, timedelta
from typing import Final

from karpool.execution.actions import (
    AddTaint,
    Annotate,
    DeleteClaim,
    DeleteNode,
    RemoveFinalizer,
    RemoveTaint,
    SetLabel,
    TerminateInstance,
)
from karpool.execution.conditions import DRAINED, VOLUMES_DETACHED, instance_terminated
from karpool.execution.deadlines import deadline_of, written
from karpool.execution.drain import drain
from karpool.execution.holds import claim_held, node_held, tell
from karpool.execution.paced_drains import DrainPace
from karpool.execution.reconcile_context import ReconcileContext
from karpool.execution.volumes import attached_volumes
from karpool.model.labels import TERMINATION_FINALIZER, TERMINATION_TIMESTAMP
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.wire.objects import condition

VOLUME_RETRY: Final = timedelta(seconds=1)
NO_LOAD_BALANCER: Final = "node.kubernetes.io/exclude-from-external-load-balancers"


def terminate(context: ReconcileContext, pace: DrainPace) -> None:
    for claim in context.claims.values():
        ours = TERMINATION_FINALIZER in claim.metadata.finalizers and context.settings.ours(claim)
        if claim.terminating and ours:
            held = claim_held(context, claim)
            if held is None:
                _terminate_claim(context, claim)
            else:
                tell(context, claim, None, held)
    for node in context.objects.nodes:
        ours = context.settings.ours(context.claim_of.get(node.name))
        if node.terminating and ours and TERMINATION_FINALIZER in node.metadata.finalizers:
            held = node_held(context, node)
            if held is None:
                _terminate_node(context, node, context.claim_of.get(node.name), pace)
            else:
                tell(context, None, node, held)
                if not node.unreadable:
                    _keep_pods_away(context, node)


def _terminate_claim(context: ReconcileContext, claim: NodeClaim) -> None:
    _write_deadline(context, claim)
    nodes = context.nodes_of.get(claim.name, ())
    for node in nodes:
        if not node.terminating:
            context.do(DeleteNode(node.name, node.metadata.uid))
    if not nodes and _instance_gone(context, claim):
        context.do(RemoveFinalizer("NodeClaim", claim.name, TERMINATION_FINALIZER))


def _write_deadline(context: ReconcileContext, claim: NodeClaim) -> None:
    deleted, grace = claim.metadata.deletion_timestamp, claim.spec.termination_grace_period
    if deleted is None or grace is None or grace.delta is None or TERMINATION_TIMESTAMP in claim.metadata.annotations:
        return
    text = written(deleted + grace.delta)
    message = f"all pods are deleted from the node by {text}"
    context.record_event("NodeClaim", claim.name, "TerminationGracePeriodExpiring", message, "Warning")
    context.do(Annotate("NodeClaim", claim.name, TERMINATION_TIMESTAMP, text))


def _terminate_node(context: ReconcileContext, node: Node, claim: NodeClaim | None, pace: DrainPace) -> None:
    if claim is not None and not claim.terminating:
        context.do(DeleteClaim(claim.name, claim.metadata.uid))
    if claim is not None and not node.ready and instance_terminated(claim):
        context.do(RemoveFinalizer("Node", node.name, TERMINATION_FINALIZER))
        return
    _keep_pods_away(context, node)
    if context.settings.taint not in node.spec.taints:
        # Pods that leave before the taint is there could come back.
        return
    deadline = deadline_of(claim)
    if (
        _drained(context, node, claim, deadline, pace)
        and _detached(context, node, claim, deadline)
        and (claim is None or _instance_gone(context, claim))
    ):
        context.do(RemoveFinalizer("Node", node.name, TERMINATION_FINALIZER))


def _keep_pods_away(context: ReconcileContext, node: Node) -> None:
    taint = context.settings.taint
    if taint not in node.spec.taints:
        context.do(*(RemoveTaint(node.name, other) for other in node.spec.taints if other.key == taint.key))
        context.do(AddTaint(node.name, taint))
    if NO_LOAD_BALANCER not in node.metadata.labels:
        context.do(SetLabel("Node", node.name, NO_LOAD_BALANCER, "karpenter"))


def _drained(
    context: ReconcileContext, node: Node, claim: NodeClaim | None, deadline: datetime | None, pace: DrainPace
) -> bool:
    """Whether no pod is left to evict; a drain takes some seconds at least, for pods bound just before the taint."""
    left = drain(context, node, deadline, pace.lets_go)
    if claim is None:
        return not left and context.confirmed(node.name)
    current = condition(claim.status.conditions, DRAINED)
    if current is None or current.status == "False":
        context.set_condition(claim, DRAINED, "Unknown", "Draining", f"{left} pods are left to evict")
        context.requeue_at(context.now + context.settings.shortest_drain)
        return False
    started = current.last_transition_time or context.now
    if current.status != "True" and context.now < started + context.settings.shortest_drain:
        context.requeue_at(started + context.settings.shortest_drain)
        return False
    if left or (current.status != "True" and not context.confirmed(node.name)):
        return False
    context.set_condition(claim, DRAINED, "True", DRAINED)
    return True


def _detached(context: ReconcileContext, node: Node, claim: NodeClaim | None, deadline: datetime | None) -> bool:
    pending = attached_volumes(context.objects, node, tuple(context.pods_on(node.name)), context.now)
    overdue = deadline is not None and context.now >= deadline
    if pending and not overdue:
        message = f"{pending} volumes are left to detach"
        context.record_event("Node", node.name, "AwaitingVolumeDetachment", message)
        if claim is not None:
            context.set_condition(claim, VOLUMES_DETACHED, "Unknown", "AwaitingVolumeDetachment", message)
        context.requeue_at(min(deadline or context.now + VOLUME_RETRY, context.now + VOLUME_RETRY))
        return False
    if claim is not None and pending:
        context.set_condition(claim, VOLUMES_DETACHED, "False", "TerminationGracePeriodElapsed")
    elif claim is not None:
        context.set_condition(claim, VOLUMES_DETACHED, "True", VOLUMES_DETACHED)
    return True


def _instance_gone(context: ReconcileContext, claim: NodeClaim) -> bool:
    """Whether the instance is gone; if not, the provider is asked to terminate it, every few seconds."""
    if not claim.status.provider_id or instance_terminated(claim):
        return True
    again = context.state.terminations.get(claim.metadata.uid, context.now)
    if again <= context.now:
        context.do(TerminateInstance(claim.name, claim.metadata.uid))
        again = context.now + context.settings.instance_retry
    context.terminations[claim.metadata.uid] = again
    context.requeue_at(again)
    return False
