"""Nodes, and what is attached to them."""

from msgspec import field

from karpool.model.pod import Amounts
from karpool.model.scheduling import Taint
from karpool.wire.objects import Condition, Object, Wire, is_true


class NodeSpec(Wire):
    """Taints, cordon and the machine behind a node."""

    provider_id: str = field(name="providerID", default="")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(Wire):
    """A node's size and health."""

    capacity: Amounts = {}
    allocatable: Amounts = {}
    conditions: tuple[Condition, ...] = ()


class Node(Object):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        """Whether the node's Ready condition is True."""
        return is_true(self.status.conditions, "Ready")


class CSIDriverAllocatable(Wire):
    """How many volumes of a driver a node can attach."""

    count: int | None = None


class CSIDriver(Wire):
    """A CSI driver on a node."""

    name: str
    allocatable: CSIDriverAllocatable = CSIDriverAllocatable()


class CSINodeSpec(Wire):
    """The CSI drivers of a node."""

    drivers: tuple[CSIDriver, ...] = ()


class CSINode(Object):
    """What CSI drivers say of a node."""

    spec: CSINodeSpec = CSINodeSpec()
