"""State nodes: a Node and its NodeClaim as one object."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.node_group import GroupMember
from karpool.model.nodepool import REBOOTING, NodeClaim
from karpool.model.scheduling import Taint
from karpool.wire.objects import condition
from karpool.wire.quantity import ZERO, Quantity

_EPHEMERAL: Final = frozenset(
    {
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        (names.UNREGISTERED_TAINT, "NoExecute"),
    }
)
TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
"""The taint of a node that Cluster Autoscaler removes."""
UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
NOT_READY: Final = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
UNREACHABLE: Final = Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule")


def is_ephemeral(taint: Taint) -> bool:
    """Whether a taint only marks a node that is still starting."""
    return (taint.key, taint.effect) in _EPHEMERAL or taint.key.startswith("readiness.k8s.io/")


def is_leaving(node: Node) -> bool:
    """Whether a node is being removed, by its object or by the taint of an autoscaler."""
    return node.terminating or any(taint.key == TO_BE_DELETED for taint in node.spec.taints)


def is_steering(taint: Taint) -> bool:
    """Whether a taint only asks pods to stay away from a node that goes soon, which is no rule to decisions."""
    return taint.key == names.STEERING_TAINT and taint.effect == "PreferNoSchedule"


@dataclass(frozen=True)
class StateNode:
    """A machine as far as it is known: its Node, its NodeClaim, or both."""

    node: Node | None
    claim: NodeClaim | None
    alias: str = ""

    @cached_property
    def name(self) -> str:
        """The node's name; before there is a node, its claim's."""
        if self.node is not None:
            return self.node.name
        return self.alias or self._claim.status.node_name or self._claim.name

    @property
    def _claim(self) -> NodeClaim:
        if self.claim is None:
            raise ValueError("a state node has a Node or a NodeClaim")
        return self.claim

    @property
    def managed(self) -> bool:
        """Whether the node has a NodeClaim, or a place in a node group."""
        return self.claim is not None

    @cached_property
    def group(self) -> str:
        """The name of the node's group; empty if it is in none."""
        return self.claim.group if isinstance(self.claim, GroupMember) else ""

    @cached_property
    def registered(self) -> bool:
        """Whether the node speaks for itself."""
        return self.node is not None and (
            self.claim is None or bool(self.group) or self.node.metadata.labels.get(names.REGISTERED) == "true"
        )

    @cached_property
    def initialized(self) -> bool:
        """Whether the node is fully up."""
        return self.node is not None and (
            self.claim is None or bool(self.group) or self.node.metadata.labels.get(names.INITIALIZED) == "true"
        )

    @cached_property
    def deleting(self) -> bool:
        """Whether the machine is being deleted or terminated."""
        if self.claim is None or self.group:
            return self.node is not None and is_leaving(self.node)
        return self.claim.metadata.deletion_timestamp is not None or self.claim.is_true("InstanceTerminating")

    @cached_property
    def rebooting(self) -> bool:
        """Whether the machine is being rebooted, and comes back."""
        return self.claim is not None and self.claim.is_true(REBOOTING)

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """Labels under their current names, the hostname always among them."""
        own = self.node.metadata.labels if self.registered and self.node else self._early_labels()
        renamed = {names.canonical(key): value for key, value in own.items()}
        renamed.setdefault(names.HOSTNAME, self.name)
        return renamed

    def _early_labels(self) -> Mapping[str, str]:
        """A claim's labels, and whatever its requirements leave only one value for."""
        claim = self._claim
        single = {r.key: r.values[0] for r in claim.spec.requirements if r.operator == "In" and len(r.values) == 1}
        return {**single, **claim.metadata.labels}

    @cached_property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of the node once it is registered, of the claim before."""
        return self.node.metadata.annotations if self.registered and self.node else self._claim.metadata.annotations

    @cached_property
    def steered(self) -> bool:
        """Whether the node asks pods to stay away because it goes soon."""
        return self.node is not None and any(map(is_steering, self.node.spec.taints))

    @cached_property
    def taints(self) -> tuple[Taint, ...]:
        """Taints that count for scheduling: those of a machine that starts, and will go away, do not."""
        if self.initialized and self.node is not None and not self.rebooting:
            return _implied_taints(self.node)
        claim = self._claim
        taints = _implied_taints(self.node) if self.registered and self.node else claim.spec.taints
        passing = {(taint.key, taint.effect) for taint in claim.spec.startup_taints}
        if self.rebooting:
            passing.add((names.REBOOTING_TAINT, "NoSchedule"))
        return tuple(t for t in taints if (t.key, t.effect) not in passing and not is_ephemeral(t))

    @cached_property
    def capacity(self) -> Mapping[str, Quantity]:
        """What the machine has; gaps of a starting node are filled from its claim."""
        return self._amounts("capacity")

    @cached_property
    def allocatable(self) -> Mapping[str, Quantity]:
        """What the machine has for pods; gaps of a starting node are filled from its claim."""
        return self._amounts("allocatable")

    def _amounts(self, field: str) -> Mapping[str, Quantity]:
        own: Mapping[str, Quantity] = getattr(self.node.status, field) if self.node else {}
        if self.claim is None or self.initialized:
            return own
        expected: Mapping[str, Quantity] = getattr(self.claim.status, field)
        return {**expected, **{name: amount for name, amount in own.items() if amount != ZERO}}

    @property
    def pool(self) -> str:
        """The name of the node's pool or group; empty without one."""
        return self.group or self.labels.get(names.NODEPOOL, "")


def _implied_taints(node: Node) -> tuple[Taint, ...]:
    """A node's taints, and those that Kubernetes adds seconds after a cordon, or when its kubelet is in trouble."""
    ready = condition(node.status.conditions, "Ready")
    implied = [UNSCHEDULABLE] if node.spec.unschedulable else []
    if ready is not None and ready.status != "True":
        implied.append(NOT_READY if ready.status == "False" else UNREACHABLE)
    keys = {taint.key for taint in node.spec.taints if taint.effect == "NoSchedule"}
    lasting = (taint for taint in node.spec.taints if not is_steering(taint))
    return (*lasting, *(taint for taint in implied if taint.key not in keys))


def not_initialized(claim: NodeClaim, node: Node) -> tuple[str, str] | None:
    """What a node still waits for before it is initialized: a reason and a message; None if it waits for nothing."""
    if not node.ready:
        return "NodeNotReady", "the node is not ready"
    starting = {(taint.key, taint.effect) for taint in claim.spec.startup_taints}
    for taint in node.spec.taints:
        if (taint.key, taint.effect) in starting:
            return "StartupTaintsExist", f"the node still has its startup taint {taint}"
        if is_ephemeral(taint):
            return "KnownEphemeralTaintsExist", f"the node still has the ephemeral taint {taint}"
    for name, amount in sorted(claim.spec.resources.requests.items()):
        if amount != ZERO and node.status.allocatable.get(name, ZERO) == ZERO:
            return "ResourceNotRegistered", f"the node does not report {name} yet"
    return None
