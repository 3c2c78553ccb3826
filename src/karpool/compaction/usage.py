"""How much of a node its pods request."""

from collections.abc import Iterable
from dataclasses import dataclass

from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests
from karpool.wire.quantity import ZERO, Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """What a node has for pods, and what its pods request, as the scheduler counts it."""

    cpu: Quantity
    memory: Quantity
    requested_cpu: Quantity
    requested_memory: Quantity

    @property
    def cpu_ratio(self) -> float | None:
        """The part of its CPU that is requested; None for a node that says it has none."""
        return _ratio(self.requested_cpu, self.cpu)

    @property
    def memory_ratio(self) -> float | None:
        """The part of its memory that is requested; None for a node that says it has none."""
        return _ratio(self.requested_memory, self.memory)


def usage(node: Node, pods: Iterable[Pod]) -> NodeUsage:
    """What unfinished pods request of a node."""
    cpu = memory = ZERO
    for pod in pods:
        wanted = effective_requests(pod)
        cpu += wanted.get("cpu", ZERO)
        memory += wanted.get("memory", ZERO)
    room = node.status.allocatable
    return NodeUsage(
        cpu=room.get("cpu", ZERO), memory=room.get("memory", ZERO), requested_cpu=cpu, requested_memory=memory
    )


def _ratio(part: Quantity, whole: Quantity) -> float | None:
    return part.nano / whole.nano if whole.nano > 0 else None
