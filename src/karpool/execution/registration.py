"""From a launched machine to a node that may be used: registration, then initialization, as the Node object shows."""

from typing import Final

from karpool.cluster.nodes import is_ephemeral
from karpool.execution.actions import Action, AddFinalizer, AddTaint, Annotate, RemoveTaint, SetClaimNode, SetLabel
from karpool.execution.conditions import INITIALIZED, LAUNCHED, READY, REGISTERED
from karpool.execution.turn import Turn
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.wire.quantity import ZERO

DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"


def follow(turn: Turn, claim: NodeClaim) -> None:
    """Take a claim one step further towards a node that may be used; what was reached once stays reached."""
    if not claim.is_true(LAUNCHED):
        return
    if not claim.is_true(REGISTERED):
        _register(turn, claim, turn.nodes_of.get(claim.name, []))
    elif claim.is_true(INITIALIZED):
        turn.note(claim, READY, "True", READY)
    elif claim.name in turn.nodes_of:
        _initialize(turn, claim, turn.nodes_of[claim.name][0])


def _register(turn: Turn, claim: NodeClaim, nodes: list[Node]) -> None:
    if not nodes:
        turn.note(claim, REGISTERED, "Unknown", "NodeNotFound", "no node of this machine has come yet")
        return
    if len(nodes) > 1:
        said = f"several nodes claim to be this machine: {', '.join(sorted(node.name for node in nodes))}"
        turn.note(claim, REGISTERED, "False", "MultipleNodesFound", said)
        return
    steps = (_prepared(claim, nodes[0]), _opened(nodes[0]))
    missing = next((step for step in steps if step), ())
    turn.do(*missing)
    if not missing:
        turn.note(claim, REGISTERED, "True", REGISTERED)


def _prepared(claim: NodeClaim, node: Node) -> list[Action]:
    """What a node lacks before pods may come: its finalizer, labels, annotations and taints."""
    actions: list[Action] = []
    if names.TERMINATION_FINALIZER not in node.metadata.finalizers:
        actions.append(AddFinalizer("Node", node.name, names.TERMINATION_FINALIZER))
    for key, value in sorted(claim.metadata.labels.items()):
        if node.metadata.labels.get(key) != value:
            actions.append(SetLabel("Node", node.name, key, value))
    for key, value in sorted(claim.metadata.annotations.items()):
        if not key.startswith("karpool.sh/") and node.metadata.annotations.get(key) != value:
            actions.append(Annotate("Node", node.name, key, value))
    if claim.status.node_name != node.name:
        actions.append(SetClaimNode(claim.name, node.name))
    return actions + _missing_taints(claim, node)


def _missing_taints(claim: NodeClaim, node: Node) -> list[Action]:
    """The claim's taints; a startup taint that went after the node was opened stays away."""
    labels = node.metadata.labels
    if labels.get(DO_NOT_SYNC_TAINTS) == "true" or labels.get(names.REGISTERED) == "true":
        return []
    held = {(taint.key, taint.effect) for taint in node.spec.taints}
    wanted = (*claim.spec.taints, *claim.spec.startup_taints)
    return [AddTaint(node.name, taint) for taint in wanted if (taint.key, taint.effect) not in held]


def _opened(node: Node) -> list[Action]:
    """The label that the node is registered, then no taint of strangers any more."""
    if node.metadata.labels.get(names.REGISTERED) != "true":
        return [SetLabel("Node", node.name, names.REGISTERED, "true")]
    return [RemoveTaint(node.name, taint) for taint in node.spec.taints if taint.key == names.UNREGISTERED_TAINT]


def _initialize(turn: Turn, claim: NodeClaim, node: Node) -> None:
    missing = _not_ready(claim, node)
    if missing is not None:
        turn.note(claim, INITIALIZED, "Unknown", *missing)
        return
    if node.metadata.labels.get(names.INITIALIZED) != "true":
        turn.do(SetLabel("Node", node.name, names.INITIALIZED, "true"))
        return
    turn.note(claim, INITIALIZED, "True", INITIALIZED)
    turn.note(claim, READY, "True", READY)


def _not_ready(claim: NodeClaim, node: Node) -> tuple[str, str] | None:
    """What a node still lacks: a reason and a sentence; None if it is fully up."""
    if not node.ready:
        return "NodeNotReady", "the node is not ready"
    starting = {(taint.key, taint.effect) for taint in claim.spec.startup_taints}
    for taint in node.spec.taints:
        if (taint.key, taint.effect) in starting:
            return "StartupTaintsExist", f"the node still has its startup taint {taint}"
        if is_ephemeral(taint):
            return "KnownEphemeralTaintsExist", f"the node still has the taint {taint} of a starting node"
    for name, amount in sorted(claim.spec.resources.requests.items()):
        if amount != ZERO and node.status.allocatable.get(name, ZERO) == ZERO:
            return "ResourceNotRegistered", f"the node does not offer {name} yet"
    return None
