"""Termination: a deleted NodeClaim takes its Node along; the Node is drained, its machine ended, finalizers removed.

Each look does the next stage that is not finished. How far a node is stands in its claim's conditions: Drained,
VolumesDetached, InstanceTerminating.
"""

from datetime import UTC, datetime, timedelta
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
from karpool.execution.conditions import DRAINED, INSTANCE_TERMINATING, TERMINATED, VOLUMES_DETACHED
from karpool.execution.drain import drain
from karpool.execution.turn import Turn
from karpool.execution.volumes import attached
from karpool.model.labels import TERMINATION_FINALIZER, TERMINATION_TIMESTAMP
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.wire.objects import condition

VOLUME_RETRY: Final = timedelta(seconds=1)
NO_LOAD_BALANCER: Final = "node.kubernetes.io/exclude-from-external-load-balancers"


def terminate(turn: Turn) -> None:
    """Take every node and claim that was deleted one step further."""
    for claim in turn.claims.values():
        if claim.metadata.deletion_timestamp is not None and TERMINATION_FINALIZER in claim.metadata.finalizers:
            _end_claim(turn, claim)
    for node in turn.objects.nodes:
        if node.metadata.deletion_timestamp is not None and TERMINATION_FINALIZER in node.metadata.finalizers:
            _end_node(turn, node, turn.claim_of.get(node.name))


def _end_claim(turn: Turn, claim: NodeClaim) -> None:
    _write_deadline(turn, claim)
    nodes = turn.nodes_of.get(claim.name, ())
    for node in nodes:
        if node.metadata.deletion_timestamp is None:
            turn.do(DeleteNode(node.name, node.metadata.uid))
    if not nodes and (not claim.status.provider_id or _instance_gone(turn, claim)):
        turn.do(RemoveFinalizer("NodeClaim", claim.name, TERMINATION_FINALIZER))


def _write_deadline(turn: Turn, claim: NodeClaim) -> None:
    """The end of the termination grace period, written once."""
    deleted, grace = claim.metadata.deletion_timestamp, claim.spec.termination_grace_period
    if deleted is None or grace is None or grace.delta is None or TERMINATION_TIMESTAMP in claim.metadata.annotations:
        return
    ends = (deleted + grace.delta).astimezone(UTC)
    text = f"{ends:%Y-%m-%dT%H:%M:%SZ}"
    said = f"all pods are deleted from the node by {text}"
    turn.tell("NodeClaim", claim.name, "TerminationGracePeriodExpiring", said, "Warning")
    turn.do(Annotate("NodeClaim", claim.name, TERMINATION_TIMESTAMP, text))


def deadline_of(claim: NodeClaim | None) -> datetime | None:
    """When a node must be empty; None if it has all the time it needs, or what is written cannot be read."""
    text = claim.metadata.annotations.get(TERMINATION_TIMESTAMP) if claim else None
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found


def _end_node(turn: Turn, node: Node, claim: NodeClaim | None) -> None:
    if claim is not None and claim.metadata.deletion_timestamp is None:
        turn.do(DeleteClaim(claim.name, claim.metadata.uid))
    if claim is not None and not node.ready and _is_terminated(claim):
        turn.do(RemoveFinalizer("Node", node.name, TERMINATION_FINALIZER))
        return
    _keep_pods_away(turn, node)
    deadline = deadline_of(claim)
    if (
        _drained(turn, node, claim, deadline)
        and _detached(turn, node, claim, deadline)
        and (claim is None or not claim.status.provider_id or _instance_gone(turn, claim))
    ):
        turn.do(RemoveFinalizer("Node", node.name, TERMINATION_FINALIZER))


def _keep_pods_away(turn: Turn, node: Node) -> None:
    wanted = turn.settings.taint
    if wanted not in node.spec.taints:
        turn.do(*(RemoveTaint(node.name, taint) for taint in node.spec.taints if taint.key == wanted.key))
        turn.do(AddTaint(node.name, wanted))
    if NO_LOAD_BALANCER not in node.metadata.labels:
        turn.do(SetLabel("Node", node.name, NO_LOAD_BALANCER, "karpenter"))


def _drained(turn: Turn, node: Node, claim: NodeClaim | None, deadline: datetime | None) -> bool:
    """Whether no pod is left to wait for; a drain takes some seconds at least, for pods that raced the taint."""
    left = drain(turn, node, deadline)
    if claim is None:
        return not left
    said = condition(claim.status.conditions, DRAINED)
    if said is None or said.status == "False":
        turn.note(claim, DRAINED, "Unknown", "Draining", f"{left} pods are to leave")
        turn.look_again(turn.now + turn.settings.shortest_drain)
        return False
    began = said.last_transition_time or turn.now
    if said.status != "True" and turn.now < began + turn.settings.shortest_drain:
        turn.look_again(began + turn.settings.shortest_drain)
        return False
    if left:
        return False
    turn.note(claim, DRAINED, "True", DRAINED)
    return True


def _detached(turn: Turn, node: Node, claim: NodeClaim | None, deadline: datetime | None) -> bool:
    """Whether the node's volumes are detached, or there is no more time to wait for them."""
    pending = attached(turn.objects, node, tuple(turn.pods_on(node.name)), turn.now)
    overdue = deadline is not None and turn.now >= deadline
    if pending and not overdue:
        said = f"{pending} volumes are to be detached"
        turn.tell("Node", node.name, "AwaitingVolumeDetachment", said)
        if claim is not None:
            turn.note(claim, VOLUMES_DETACHED, "Unknown", "AwaitingVolumeDetachment", said)
        turn.look_again(min(deadline or turn.now + VOLUME_RETRY, turn.now + VOLUME_RETRY))
        return False
    if claim is not None and pending:
        turn.note(claim, VOLUMES_DETACHED, "False", "TerminationGracePeriodElapsed")
    elif claim is not None:
        turn.note(claim, VOLUMES_DETACHED, "True", VOLUMES_DETACHED)
    return True


def _is_terminated(claim: NodeClaim) -> bool:
    said = condition(claim.status.conditions, INSTANCE_TERMINATING)
    return said is not None and said.status == "True" and said.reason == TERMINATED


def _instance_gone(turn: Turn, claim: NodeClaim) -> bool:
    """Whether the machine is gone; if not, the provider is asked to end it, every few seconds."""
    if _is_terminated(claim):
        return True
    again = turn.state.terminations.get(claim.metadata.uid, turn.now)
    if again <= turn.now:
        turn.do(TerminateInstance(claim.name, claim.metadata.uid))
        again = turn.now + turn.settings.instance_retry
    turn.terminations[claim.metadata.uid] = again
    turn.look_again(again)
    return False
