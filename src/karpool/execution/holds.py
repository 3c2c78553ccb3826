"""What holds a NodeClaim or a Node as it is: something that bears on it cannot be read.

Nothing that cannot be taken back is done on the strength of an object that cannot be read: no deletion, no eviction, no
finalizer removed, no instance ended. What was begun goes on when the object can be read again, or is gone.
"""

from karpool.execution.reconcile_context import ReconcileContext
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.reading.unreadable import UNKNOWN, UNREADABLE, unreadable_reason
from karpool.model.reasons import Reason


def claim_held(context: ReconcileContext, claim: NodeClaim) -> Reason | None:
    """What holds a claim: itself, its node, a pod there; or a Node that may be its own, where it has none."""
    if context.all_readable:
        return None
    if claim.unreadable:
        return unreadable_reason("NodeClaim", claim)
    nodes = context.nodes_of.get(claim.name, ())
    if not nodes:
        return next((unreadable_reason("Node", node) for node in context.stray_nodes), None)
    return next((reason for node in nodes if (reason := node_held(context, node)) is not None), None)


def node_held(context: ReconcileContext, node: Node) -> Reason | None:
    """What holds a node: itself, its claim, a pod on it; or a NodeClaim that may be its own, where it has none."""
    if context.all_readable:
        return None
    if node.unreadable:
        return unreadable_reason("Node", node)
    claim = context.claim_of.get(node.name)
    if claim is None:
        lost = next((unreadable_reason("NodeClaim", stray) for stray in context.stray_claims), None)
    else:
        lost = unreadable_reason("NodeClaim", claim) if claim.unreadable else None
    # A pod whose node cannot be read may be on this one.
    pods = context.unreadable_pods_on(node.name) + context.unreadable_pods_on(UNKNOWN)
    return lost or next((unreadable_reason("Pod", pod) for pod in pods), None)


def tell(context: ReconcileContext, claim: NodeClaim | None, node: Node | None, reason: Reason) -> None:
    """Record what waits for an object to be readable."""
    message = f"waits, because {reason.object} {reason.message}"
    if node is not None:
        context.record_event("Node", node.name, UNREADABLE, message, "Warning")
    elif claim is not None:
        context.record_event("NodeClaim", claim.name, UNREADABLE, message, "Warning")
