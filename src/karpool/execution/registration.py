"""Registration and initialization of a launched NodeClaim, as its Node object shows them."""

from typing import Final

from karpool.cluster.devices.pools import SliceTable
from karpool.cluster.nodes import not_initialized
from karpool.execution.actions import (
    Action,
    AddFinalizer,
    AddTaint,
    Annotate,
    RemoveTaint,
    SetClaimNode,
    SetLabel,
    SetNodeOwner,
)
from karpool.execution.conditions import INITIALIZED, LAUNCHED, READY, REGISTERED
from karpool.execution.reconcile_context import ReconcileContext
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.nodepool import REBOOTING, NodeClaim
from karpool.wire.objects import is_owned

NODE_NOT_FOUND: Final = ("NodeNotFound", "no node of this instance has registered yet")
DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"


def reconcile_registration(context: ReconcileContext, claim: NodeClaim) -> None:
    """Take a claim one step further: registered, then initialized; only a reboot takes the latter back."""
    if not claim.is_true(LAUNCHED) or claim.is_true(REBOOTING):
        return
    if not claim.is_true(REGISTERED):
        _register(context, claim, context.nodes_of.get(claim.name, []))
    elif claim.is_true(INITIALIZED):
        context.set_condition(claim, READY, "True", READY)
    elif claim.name in context.nodes_of:
        _initialize(context, claim, context.nodes_of[claim.name][0])


def _register(context: ReconcileContext, claim: NodeClaim, nodes: list[Node]) -> None:
    if not nodes:
        context.set_condition(claim, REGISTERED, "Unknown", *NODE_NOT_FOUND)
        return
    if len(nodes) > 1:
        node_names = ", ".join(sorted(node.name for node in nodes))
        message = f"several nodes have the provider id of this instance: {node_names}"
        context.set_condition(claim, REGISTERED, "False", "MultipleNodesFound", message)
        return
    node = nodes[0]
    # The lock is the last change of one patch: whoever sees the node open sees all the rest.
    if actions := _metadata_actions(claim, node) + _unlock_actions(node):
        context.do(*actions)
        return
    if claim.status.node_name != node.name:
        context.do(SetClaimNode(claim.name, node.name))
    context.set_condition(claim, REGISTERED, "True", REGISTERED)
    _initialize(context, claim, node)


def _metadata_actions(claim: NodeClaim, node: Node) -> list[Action]:
    """Add what a node lacks before pods may come: its finalizer, owner, labels, annotations and taints."""
    actions: list[Action] = []
    if names.TERMINATION_FINALIZER not in node.metadata.finalizers:
        actions.append(AddFinalizer("Node", node.name, names.TERMINATION_FINALIZER))
    if claim.metadata.uid and not is_owned(node, claim.metadata.uid):
        actions.append(SetNodeOwner(node.name, claim.name, claim.metadata.uid))
    for key, value in sorted(claim.metadata.labels.items()):
        if node.metadata.labels.get(key) != value:
            actions.append(SetLabel("Node", node.name, key, value))
    for key, value in sorted(claim.metadata.annotations.items()):
        if not key.startswith("karpool.sh/") and node.metadata.annotations.get(key) != value:
            actions.append(Annotate("Node", node.name, key, value))
    return actions + _missing_taints(claim, node)


def _missing_taints(claim: NodeClaim, node: Node) -> list[Action]:
    """Add the claim's taints; a startup taint that was removed after registration is not added again."""
    labels = node.metadata.labels
    if labels.get(DO_NOT_SYNC_TAINTS) == "true" or labels.get(names.REGISTERED) == "true":
        return []
    present = {(taint.key, taint.effect) for taint in node.spec.taints}
    required = (*claim.spec.taints, *claim.spec.startup_taints)
    return [AddTaint(node.name, taint) for taint in required if (taint.key, taint.effect) not in present]


def _unlock_actions(node: Node) -> list[Action]:
    """Add the label of a registered node, then remove the taint that kept pods away."""
    registered = node.metadata.labels.get(names.REGISTERED) == "true"
    label = [] if registered else [SetLabel("Node", node.name, names.REGISTERED, "true")]
    locks = [taint for taint in node.spec.taints if taint.key == names.UNREGISTERED_TAINT]
    return [*label, *(RemoveTaint(node.name, taint) for taint in locks)]


def _initialize(context: ReconcileContext, claim: NodeClaim, node: Node) -> None:
    obstacle = not_initialized(claim, node) or _without_devices(context, claim, node)
    if obstacle is not None:
        context.set_condition(claim, INITIALIZED, "Unknown", *obstacle)
        return
    if node.metadata.labels.get(names.INITIALIZED) != "true":
        context.do(SetLabel("Node", node.name, names.INITIALIZED, "true"))
        return
    context.set_condition(claim, INITIALIZED, "True", INITIALIZED)
    context.set_condition(claim, READY, "True", READY)


def _without_devices(context: ReconcileContext, claim: NodeClaim, node: Node) -> tuple[str, str] | None:
    """Why pods that count on devices would not find them yet; None if drivers have published theirs."""
    requested = claim.metadata.annotations.get(names.REQUESTED_DRIVERS, "")
    if not requested or not context.settings.awaits_devices:
        return None
    published = SliceTable(context.objects.resource_slices).complete_drivers(node.name)
    missing = sorted(set(filter(None, requested.split(","))) - published)
    if not missing:
        return None
    return "DRADriverPoolsNotPublished", f"no complete pool of devices is published there by {', '.join(missing)}"
