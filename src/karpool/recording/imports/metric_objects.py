"""Objects as far as the metrics of kube-state-metrics tell them: by their labels, and their values."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from karpool.model import labels as names
from karpool.model.node import Node, NodeSpec, NodeStatus
from karpool.model.pod import Container, Pod, PodSpec, PodStatus, Resources
from karpool.model.workloads import Deployment, StatefulSet, WorkloadSpec
from karpool.wire.objects import Condition, Metadata, OwnerReference
from karpool.wire.quantity import Quantity, parse_quantity

_RESOURCES: Final = {
    "ephemeral_storage": "ephemeral-storage",
    "nvidia_com_gpu": "nvidia.com/gpu",
    "amd_com_gpu": "amd.com/gpu",
}
_LABEL: Final = "label_"
_KNOWN_LABELS: Final = (
    names.HOSTNAME, names.ARCH, names.OS, names.ZONE, names.REGION, names.INSTANCE_TYPE, names.NODEPOOL,
    names.CAPACITY_TYPE, names.REGISTERED, names.INITIALIZED, names.ZONE_ID,
    "eks.amazonaws.com/capacityType", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool",
    "cloud.google.com/gke-spot", "agentpool", "kubernetes.azure.com/agentpool", "kubernetes.azure.com/scalesetpriority",
)  # fmt: skip
_TEMPLATE_HASH: Final = "pod-template-hash"
_LARGEST: Final = 2.0**60
_LATEST: Final = 4_102_444_800.0


def sanitized(name: str) -> str:
    """A name of a label as kube-state-metrics writes it."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name)


_NAMES: Final = {f"{_LABEL}{sanitized(name)}": name for name in _KNOWN_LABELS}


@dataclass(slots=True)
class PodFacts:
    """What metrics say of a pod."""

    info: Mapping[str, str]
    created: float | None = None
    requests: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """By kind of container, container and resource."""

    def pod(self, now: datetime, *, node: str, ready: datetime | None, phase: str = "") -> Pod:
        said = self.info
        name, kind, owner = said.get("pod", ""), said.get("created_by_kind", ""), said.get("created_by_name", "")
        owned = kind not in ("", "<none>") and owner not in ("", "<none>")
        owners = (OwnerReference(kind=kind, name=owner, controller=True),) if owned else ()
        labels = {_TEMPLATE_HASH: owner.rpartition("-")[2]} if kind == "ReplicaSet" and "-" in owner else {}
        created = now if self.created is None else datetime.fromtimestamp(self.created, UTC)
        meta = Metadata(
            name=name,
            namespace=said.get("namespace", ""),
            labels=labels,
            owner_references=owners,
            creation_timestamp=created,
        )
        spec = PodSpec(
            node_name=node,
            containers=self._containers("container"),
            init_containers=self._containers("init"),
            priority_class_name=said.get("priority_class", ""),
        )
        conditions = () if ready is None else (Condition(type="Ready", status="True", last_transition_time=ready),)
        shown: Any = phase or ("Running" if ready is not None else "Pending")
        return Pod(metadata=meta, spec=spec, status=PodStatus(phase=shown, conditions=conditions))

    def _containers(self, kind: str) -> tuple[Container, ...]:
        by_name: dict[str, dict[str, Quantity]] = {}
        for (which, container, resource), value in sorted(self.requests.items()):
            amount = quantity(resource, value)
            if which == kind and amount is not None:
                by_name.setdefault(container, {})[resource_name(resource)] = amount
        return tuple(Container(name=name, resources=Resources(requests=wants)) for name, wants in by_name.items())


@dataclass(slots=True)
class MetricNode:
    """What metrics say of a node."""

    info: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: dict[str, str] = field(default_factory=dict)
    capacity: dict[str, str] = field(default_factory=dict)
    created: float | None = None

    def node(self, now: datetime) -> Node:
        name = self.info.get("node", "")
        labels = {_NAMES[key]: value for key, value in self.labels.items() if key in _NAMES}
        created = now if self.created is None else datetime.fromtimestamp(self.created, UTC)
        room, whole = _amounts(self.allocatable.items()), _amounts(self.capacity.items())
        ready = Condition(type="Ready", status="True", last_transition_time=now)
        return Node(
            metadata=Metadata(name=name, labels={names.HOSTNAME: name, **labels}, creation_timestamp=created),
            spec=NodeSpec(provider_id=self.info.get("provider_id", "")),
            status=NodeStatus(allocatable=room, capacity=whole or room, conditions=(ready,)),
        )


def workload(kind: str, namespace: str, name: str, replicas: int) -> Deployment | StatefulSet:
    meta, spec = Metadata(name=name, namespace=namespace), WorkloadSpec(replicas=replicas)
    return StatefulSet(metadata=meta, spec=spec) if kind == "StatefulSet" else Deployment(metadata=meta, spec=spec)


def resource_name(text: str) -> str:
    """The name of a resource; of one that is not known, as it is written on nodes, too."""
    return _RESOURCES.get(text, text)


def number(text: str) -> float | None:
    """A value of a sample; None for what is none, or absurd."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= _LARGEST else None


def stamp(text: str) -> float | None:
    """A time as a value of a sample."""
    value = number(text)
    return value if value is not None and value <= _LATEST else None


def quantity(resource: str, text: str) -> Quantity | None:
    value = number(text)
    if value is None:
        return None
    return parse_quantity(f"{round(value * 1000)}m" if resource == "cpu" else str(math.ceil(value)))


def _amounts(entries: Iterable[tuple[str, str]]) -> dict[str, Quantity]:
    amounts = ((resource_name(name), quantity(name, text)) for name, text in entries)
    return {name: amount for name, amount in amounts if amount is not None}
