"""Nodes, and what is attached to them."""

from msgspec import field

from karpool.model.pod import Amounts
from karpool.model.scheduling import Taint
from karpool.wire.objects import Condition, Object, Wire, is_true


class NodeSpec(Wire):
    provider_id: str = field(name="providerID", default="")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeSystemInfo(Wire):
    boot_id: str = field(name="bootID", default="")
    """Another one after each boot."""


class NodeStatus(Wire):
    capacity: Amounts = {}
    allocatable: Amounts = {}
    conditions: tuple[Condition, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(Object):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        return is_true(self.status.conditions, "Ready")


class CSIDriverAllocatable(Wire):
    count: int | None = None


class CSIDriver(Wire):
    name: str
    allocatable: CSIDriverAllocatable = CSIDriverAllocatable()


class CSINodeSpec(Wire):
    drivers: tuple[CSIDriver, ...] = ()


class CSINode(Object):
    spec: CSINodeSpec = CSINodeSpec()
