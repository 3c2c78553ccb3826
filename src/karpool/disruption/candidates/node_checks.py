"""Rules about a node itself that keep it from being disrupted, each with its reason; the first failure wins."""

from collections.abc import Callable
from typing import Final, Protocol

from karpool.catalog.instance_types import Catalog
from karpool.cluster.nodes import StateNode, not_initialized
from karpool.disruption.reasons import ReasonCode
from karpool.model.autoscaler_rules import SCALE_DOWN_DISABLED
from karpool.model.labels import DO_NOT_DISRUPT, INITIALIZED, NODEPOOL, REGISTERED
from karpool.model.managers import ManagerKind, left_alone, manager_of
from karpool.model.nodepool import NodePool
from karpool.model.reasons import Reason


class NodeInfo(Protocol):
    """A node as these rules see it."""

    @property
    def name(self) -> str:
        """Its name, or that of its NodeClaim."""

    @property
    def state(self) -> StateNode:
        """The Node and its NodeClaim."""

    @property
    def pool(self) -> NodePool | None:
        """Its NodePool, if that exists."""


_LEFT_ALONE: Final = {
    ManagerKind.CONTROL_PLANE: ReasonCode.CONTROL_PLANE_NODE,
    ManagerKind.FARGATE: ReasonCode.FARGATE_NODE,
    ManagerKind.VIRTUAL: ReasonCode.VIRTUAL_NODE,
    ManagerKind.WINDOWS: ReasonCode.WINDOWS_NODE,
    ManagerKind.AUTO_MODE: ReasonCode.AUTO_MODE_NODE,
    ManagerKind.AUTOPILOT: ReasonCode.AUTOPILOT_NODE,
}
CODES_OF_MANAGERS: Final = frozenset({*_LEFT_ALONE.values(), ReasonCode.NOT_MANAGED})
"""The codes that say of a node who manages it, or that nobody does."""
NodeCheck = Callable[[NodeInfo, Catalog], Reason | None]


def node_refusal(node: NodeInfo, catalog: Catalog) -> Reason | None:
    """Why a node may not be disrupted, its pods and what is under way aside."""
    return next((reason for _, check in NODE_CHECKS if (reason := check(node, catalog)) is not None), None)


def about_node(node: NodeInfo, code: ReasonCode, message: str) -> Reason:
    """A reason that concerns a node."""
    return Reason(code, message, f"Node {node.name}")


def unmanaged(node: NodeInfo, _catalog: Catalog) -> Reason | None:
    """Why a node stays that no NodeClaim and no place in a node group make anybody's."""
    if node.state.managed or node.state.node is None:
        return None
    manager = manager_of(node.state.node, claimed=False)
    code = _LEFT_ALONE.get(manager.kind, ReasonCode.NOT_MANAGED)
    if manager.kind is ManagerKind.NODE_GROUP:
        message = f"belongs to node group {manager.name}, and no NodePool manages it"
    elif manager.kind is ManagerKind.NODE_POOL:
        message = f"its NodePool is {manager.name}, but it has no NodeClaim"
    else:
        message = left_alone(manager.kind)
    return about_node(node, code, message)


def without_node(node: NodeInfo, _catalog: Catalog) -> Reason | None:
    """Why a NodeClaim without a Node stays."""
    if node.state.node is not None:
        return None
    return Reason(ReasonCode.NO_NODE, "its NodeClaim has no Node yet", f"NodeClaim {node.name}")


def rebooting(node: NodeInfo, _catalog: Catalog) -> Reason | None:
    """Why a node that is being rebooted stays."""
    return about_node(node, ReasonCode.NODE_REBOOTING, "is being rebooted") if node.state.rebooting else None


def _uninitialized(node: NodeInfo, _catalog: Catalog) -> Reason | None:
    if node.state.initialized:
        return None
    return about_node(node, ReasonCode.NODE_NOT_INITIALIZED, f"is not initialized: {_awaited(node.state)}")


def _awaited(state: StateNode) -> str:
    """What a node waits for before it counts as initialized."""
    if state.node is None or state.claim is None:
        return "it has no Node yet"
    if not state.registered:
        return f"it has no label {REGISTERED}=true"
    obstacle = not_initialized(state.claim, state.node)
    return f"it has no label {INITIALIZED}=true" if obstacle is None else obstacle[1]


def deleting(node: NodeInfo, _catalog: Catalog) -> Reason | None:
    """Why a node that is being deleted is left alone."""
    return about_node(node, ReasonCode.NODE_DELETING, "is being deleted already") if node.state.deleting else None


def _protected(node: NodeInfo, _catalog: Catalog) -> Reason | None:
    if node.state.annotations.get(DO_NOT_DISRUPT) != "true":
        return None
    return about_node(node, ReasonCode.NODE_DO_NOT_DISRUPT, f"has the annotation {DO_NOT_DISRUPT}")


def _scale_down_disabled(node: NodeInfo, _catalog: Catalog) -> Reason | None:
    if not node.state.group or node.state.annotations.get(SCALE_DOWN_DISABLED) != "true":
        return None
    message = f"has {SCALE_DOWN_DISABLED}, so the autoscaler would not remove it"
    return about_node(node, ReasonCode.SCALE_DOWN_DISABLED, message)


def without_pool(node: NodeInfo, catalog: Catalog) -> Reason | None:
    """Why a node stays whose pool nobody knows, or of which nobody knows what could replace it."""
    if unmanaged(node, catalog) is not None:
        return None
    if not node.state.pool:
        return about_node(node, ReasonCode.MISSING_NODE_POOL_LABEL, f"has no label {NODEPOOL}")
    if node.pool is None:
        return about_node(node, ReasonCode.NODE_POOL_NOT_FOUND, f"its NodePool {node.state.pool} does not exist")
    if not catalog.types and not node.state.group:
        return about_node(node, ReasonCode.NO_INSTANCE_TYPES, "the catalogue has no instance types")
    return None


NODE_CHECKS: Final[tuple[tuple[str, NodeCheck], ...]] = (
    ("managed by a NodePool or a node group", unmanaged),
    ("has a Node", without_node),
    ("not being rebooted", rebooting),
    ("not being deleted", deleting),
    ("initialized", _uninitialized),
    ("not marked do-not-disrupt", _protected),
    ("its autoscaler may remove it", _scale_down_disabled),
    ("its pool is known", without_pool),
)
