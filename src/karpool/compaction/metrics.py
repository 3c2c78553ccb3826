"""The compactor's gauges, under the names that dashboards of estafette-k8s-node-compactor use."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from karpool.compaction.decide import CompactionDecision, CompactionVerdict

PREFIX: Final = "estafette_node_compactor_"
_MEBI: Final = 2**20

HELP: Final = {
    "total_node_count": "Nodes of the pool.",
    "underutilized_node_count": "Nodes of the pool that are under its limits and may take part in a scale-down.",
    "marked_for_removal_node_count": "Nodes of the pool that are marked for removal.",
    "scale_down_in_progress_node_count": "Nodes of the pool that are drained, or wait for their removal.",
    "allocatable_cpu": "Allocatable CPU of the node, in millicores.",
    "allocatable_memory": "Allocatable memory of the node, in MiB.",
    "total_cpu_requests": "CPU requested by the node's pods, in millicores.",
    "total_memory_requests": "Memory requested by the node's pods, in MiB.",
    "utilized_cpu_ratio": "Ratio of requested to allocatable CPU of the node.",
    "utilized_memory_ratio": "Ratio of requested to allocatable memory of the node.",
}


class GaugeSample(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


def measure(decision: CompactionDecision) -> list[GaugeSample]:
    return [*_of_pools(decision), *(sample for verdict in decision.nodes for sample in _of_node(verdict))]


def _of_pools(decision: CompactionDecision) -> Iterator[GaugeSample]:
    for pool in decision.pools:
        labels = {"nodepool": pool.name}
        yield GaugeSample(f"{PREFIX}total_node_count", labels, pool.nodes)
        yield GaugeSample(f"{PREFIX}underutilized_node_count", labels, pool.underutilized)
        yield GaugeSample(f"{PREFIX}marked_for_removal_node_count", labels, pool.marked)
        yield GaugeSample(f"{PREFIX}scale_down_in_progress_node_count", labels, pool.in_progress)


def _of_node(verdict: CompactionVerdict) -> Iterator[GaugeSample]:
    used = verdict.view.usage
    labels = {"node": verdict.view.name, "nodepool": verdict.view.pool}
    yield GaugeSample(f"{PREFIX}allocatable_cpu", labels, used.cpu.milli)
    yield GaugeSample(f"{PREFIX}allocatable_memory", labels, used.memory.units / _MEBI)
    yield GaugeSample(f"{PREFIX}total_cpu_requests", labels, used.requested_cpu.milli)
    yield GaugeSample(f"{PREFIX}total_memory_requests", labels, used.requested_memory.units / _MEBI)
    # An unknown ratio has no series: zero would look like an empty node.
    if used.cpu_ratio is not None:
        yield GaugeSample(f"{PREFIX}utilized_cpu_ratio", labels, used.cpu_ratio)
    if used.memory_ratio is not None:
        yield GaugeSample(f"{PREFIX}utilized_memory_ratio", labels, used.memory_ratio)
