"""How much of a node its pods request."""

from collections.abc import Iterable
from dataclasses import dataclass

from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests
from karpool.wire.quantity import ZERO, Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """Allocatable resources of a node and requests of its pods, as the scheduler counts them."""

    cpu: Quantity
    memory: Quantity
    requested_cpu: Quantity
    requested_memory: Quantity

    @property
    def cpu_ratio(self) -> float | None:
        """Requested by allocatable CPU; None for a node without CPU."""
        return _ratio(self.requested_cpu, self.cpu)

    @property
    def memory_ratio(self) -> float | None:
        return _ratio(self.requested_memory, self.memory)


def usage(node: Node, pods: Iterable[Pod]) -> NodeUsage:
    cpu = memory = ZERO
    for pod in pods:
        requests = effective_requests(pod)
        cpu += requests.get("cpu", ZERO)
        memory += requests.get("memory", ZERO)
    allocatable = node.status.allocatable
    return NodeUsage(
        cpu=allocatable.get("cpu", ZERO),
        memory=allocatable.get("memory", ZERO),
        requested_cpu=cpu,
        requested_memory=memory,
    )


def _ratio(part: Quantity, whole: Quantity) -> float | None:
    return part.nano / whole.nano if whole.nano > 0 else None
