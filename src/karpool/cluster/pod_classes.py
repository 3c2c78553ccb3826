"""Pod classes: pods with the same requests and the same rules are evaluated once.

A class is one level of relaxing preferences; it points to the next one. What a class demands of nodes alone (labels,
taints, volumes) is its signature, which many classes share.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from karpool.cluster.arrays import Array, ColumnTable, Ragged, column
from karpool.cluster.constraints import (
    ANY_ADDRESS,
    Constraints,
    Level,
    Port,
    host_ports,
    uses_devices,
    without_node_affinity,
)
from karpool.cluster.resources import ATTACH, CPU, MEMORY, ResourceTable
from karpool.cluster.topology import Topology
from karpool.model.operating_systems import WINDOWS
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests, stated_requests
from karpool.model.requirements import Requirements
from karpool.model.scheduling import Toleration

NO_CLASS = -1
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Signature:
    """What pods demand of a node alone."""

    requirements: Requirements
    tolerations: tuple[Toleration, ...]
    volumes: tuple[Requirements, ...]


class _Demands(NamedTuple):
    """What a level of rules comes to, in numbers of signatures, port sets, groups and rows of counts per host."""

    signature: int
    ports: int
    owned: list[int]
    declared: list[int]
    blocked: list[int]
    taken: list[int]


class ClassTable(ColumnTable):
    """Classes in columns."""

    signature: Annotated[Array, column(np.int32, "classes")]
    next: Annotated[Array, column(np.int32, "classes")]
    refused: Annotated[Array, column(np.uint8, "classes")]
    requests: Annotated[Array, column(np.int64, "classes", "resources")]
    ports_id: Annotated[Array, column(np.int32, "classes")]

    def __init__(self, resources: ResourceTable, topology: Topology) -> None:
        super().__init__()
        self.resources = resources
        self.topology = topology
        self.size = 0
        self.owned = Ragged()
        self.declared = Ragged()
        self.blocked_rows = Ragged()
        self.taken_rows = Ragged()
        self.shared_rows = Ragged()
        self.shared_columns = Ragged()
        self.sizes: list[tuple[int, int]] = []
        self.levels: list[Level] = []
        self.constraints: list[Constraints] = []
        self.signatures: list[Signature] = []
        self.signature_ids: dict[Signature, int] = {}
        self._groups: dict[int, frozenset[int]] = {}
        self.port_sets: dict[tuple[Port, ...], int] = {(): 0}
        # Rules are compared by identity: comparing them by value costs more than the few classes it would save.
        self._known: dict[tuple[int, tuple[tuple[int, int], ...], tuple[str, ...]], int] = {}
        self._demands: dict[tuple[int, int], _Demands] = {}

    def add(self, rules: Constraints, requests: dict[int, int], shared: frozenset[str]) -> int:
        """The first class of pods with these rules and requests, made with all its levels if it is new."""
        taken = dict(requests)
        common = [(driver, claim) for driver, claim in rules.attached if claim in shared]
        for driver, claim in rules.attached:
            if claim not in shared:
                resource = self.resources.column(ATTACH + driver)
                taken[resource] = taken.get(resource, 0) + 1
        key = (id(rules), tuple(sorted(taken.items())), tuple(claim for _, claim in common))
        first = self._known.get(key)
        if first is None:
            first = self._known[key] = self.size
            for level in rules.levels:
                self._append(rules, level, taken, common)
            self.next[self.size - 1] = NO_CLASS
        return first

    def _append(self, rules: Constraints, level: Level, taken: dict[int, int], common: list[tuple[str, str]]) -> None:
        number = self.size
        self.size += 1
        self.fit(classes=self.size, resources=len(self.resources))
        for resource, amount in taken.items():
            self.requests[number, resource] = amount
        self.sizes.append((taken.get(CPU, 0), taken.get(MEMORY, 0)))
        self.levels.append(level)
        self.constraints.append(rules)
        demands = self._read(rules, level)
        self.signature[number] = demands.signature
        self.next[number] = number + 1
        self.refused[number] = bool(rules.refusal)
        self.ports_id[number] = demands.ports
        self.owned.append(demands.owned)
        self.declared.append(demands.declared)
        self.blocked_rows.append(demands.blocked)
        attached = [self.topology.host_row(("claim", claim)) for _, claim in common]
        self.taken_rows.append(demands.taken + attached)
        self.shared_rows.append(attached)
        self.shared_columns.append([self.resources.column(ATTACH + driver) for driver, _ in common])
        self.fit(resources=len(self.resources))

    def _read(self, rules: Constraints, level: Level) -> _Demands:
        """The numbers behind a level of rules, worked out once."""
        demands = self._demands.get((id(rules), id(level)))
        if demands is None:
            demands = self._demands[id(rules), id(level)] = _Demands(
                signature=self._signature(Signature(level.requirements, level.tolerations, rules.volumes)),
                ports=self.port_sets.setdefault(rules.ports, len(self.port_sets)),
                owned=[self.topology.group(group) for group in level.groups],
                declared=[self.topology.group(group) for group in rules.inverse],
                blocked=sorted({row for port in rules.ports for row in self._blocked_by(port)}),
                taken=[row for port in rules.ports for row in self._taken_by(port)],
            )
        return demands

    def groups_of(self, number: int) -> frozenset[int]:
        """The groups that pods of a class have a rule about, at any level of their preferences."""
        if number not in self._groups:
            level, groups = number, set[int]()
            while level != NO_CLASS:
                groups.update(self.owned.row(level))
                level = int(self.next[level])
            self._groups[number] = frozenset(groups)
        return self._groups[number]

    def _signature(self, signature: Signature) -> int:
        number = self.signature_ids.setdefault(signature, len(self.signatures))
        if number == len(self.signatures):
            self.signatures.append(signature)
        return number

    def _blocked_by(self, port: Port) -> tuple[int, ...]:
        address, number, protocol = port
        if address == ANY_ADDRESS:
            return (self.topology.host_row(("port", number, protocol)),)
        return tuple(self.topology.host_row(("port", number, protocol, at)) for at in (ANY_ADDRESS, address))

    def _taken_by(self, port: Port) -> tuple[int, ...]:
        address, number, protocol = port
        rows = self.topology.host_row
        return (rows(("port", number, protocol)), rows(("port", number, protocol, address)))


def rules_key(pod: Pod, *, pinned: bool) -> bytes:
    """What a pod's rules depend on, as bytes; pods with equal keys and equal volumes have equal rules.

    A pinned pod (a daemon or a mirror) never moves, so what it demands of its node does not matter.
    """
    spec, meta = pod.spec, pod.metadata
    affinity = without_node_affinity(spec.affinity) if pinned else spec.affinity
    spread = spec.topology_spread_constraints
    pods_matter = bool(spread) or (affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity))
    ports = host_ports(pod)
    devices = uses_devices(pod)
    selects_by_label = pods_matter and _uses_own_labels(pod)
    windows = spec.os is not None and spec.os.name == WINDOWS
    if not (spec.node_selector or affinity or spread or ports or spec.tolerations or devices or windows):
        return b""
    return _encode(
        (
            spec.node_selector,
            affinity,
            spec.tolerations,
            spread,
            ports,
            devices,
            windows,
            meta.namespace if pods_matter else "",
            meta.labels if selects_by_label else {},
        )
    )


def _uses_own_labels(pod: Pod) -> bool:
    if any(constraint.match_label_keys for constraint in pod.spec.topology_spread_constraints):
        return True
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    terms = [
        term
        for side in sides
        if side is not None
        for term in (*side.required, *(weighted.pod_affinity_term for weighted in side.preferred))
    ]
    return any(term.match_label_keys or term.mismatch_label_keys for term in terms)


def requests_key(pod: Pod) -> tuple[object, ...]:
    """What a pod's requests depend on; pods with equal keys have equal requests."""
    spec = pod.spec
    whole = spec.resources.requests or spec.resources.limits
    if len(spec.containers) == 1 and not (spec.init_containers or spec.overhead or whole):
        only = stated_requests(spec.containers[0])
        if not _resized(pod):
            return (*only, *[amount.nano for amount in only.values()])
    if spec.init_containers or spec.overhead or whole or _resized(pod):
        amounts = effective_requests(pod)
        return tuple((name, amount.nano) for name, amount in sorted(amounts.items()))
    return tuple(
        (name, amount.nano) for container in spec.containers for name, amount in stated_requests(container).items()
    )


def _resized(pod: Pod) -> bool:
    statuses = pod.status.container_statuses
    return bool(statuses) and any(status.allocated_resources or status.resources.requests for status in statuses)
