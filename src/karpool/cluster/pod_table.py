"""Pods as rows: class, labels and place in the queue."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated

import numpy as np
from msgspec import structs

from karpool.cluster.arrays import Array, ColumnTable, column
from karpool.cluster.constraints import Constraints, Preferences, constraints, selects_namespaces
from karpool.cluster.pod_classes import ClassTable, requests_key, rules_key
from karpool.cluster.ranking import Ranking
from karpool.cluster.topology import Topology
from karpool.cluster.volumes import NO_VOLUMES, VolumeIndex, VolumeNeeds, attached_by
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.operating_systems import WINDOWS
from karpool.model.pod import Pod, PodSystem
from karpool.model.requests import effective_requests
from karpool.model.workloads import Namespace

NOWHERE = -1
END = -1
NO_WORKLOAD = -1
_PINNED = frozenset(("DaemonSet", "Node"))
_SPREAD = frozenset(("ReplicaSet", "ReplicationController", "StatefulSet"))
"""Controllers whose pods a scheduler spreads, if these have no constraints of their own."""
SortKey = tuple[int, int, float, str, str]


class PodTable(ColumnTable):
    """Unfinished pods in columns; a pod keeps its row until it goes."""

    node_of: Annotated[Array, column(np.int32, "pods", fill=NOWHERE)]
    class_of: Annotated[Array, column(np.int32, "pods")]
    labels_of: Annotated[Array, column(np.int32, "pods")]
    workload_of: Annotated[Array, column(np.int32, "pods", fill=NO_WORKLOAD)]
    """Whom a scheduler spreads a pod among, unasked."""
    next: Annotated[Array, column(np.int32, "pods", fill=END)]
    counted: Annotated[Array, column(np.uint8, "pods")]
    daemon: Annotated[Array, column(np.uint8, "pods")]
    protected: Annotated[Array, column(np.uint8, "pods")]
    """Whether a pod has the annotation do-not-disrupt, whatever it says."""

    def __init__(
        self,
        classes: ClassTable,
        topology: Topology,
        *,
        volumes: VolumeIndex,
        namespaces: Mapping[str, Namespace],
        preferences: Preferences,
        soft_taints: bool,
        devices: bool = False,
    ) -> None:
        super().__init__()
        self.classes = classes
        self.topology = topology
        self.volumes = volumes
        self.namespaces = dict(namespaces)
        self.preferences = preferences
        self.soft_taints = soft_taints
        self._devices = devices
        self.device_rows: set[int] = set()
        """The rows of pods with claims on devices, if somebody looks at claims."""
        self.objects: list[Pod | None] = []
        self.rows: dict[str, int] = {}
        self.sort_keys: list[SortKey] = []
        self.ranking: Ranking[SortKey] = Ranking()
        """The order in which pods are placed: largest first, then oldest."""
        self.claim_users: dict[str, set[str]] = {}
        self.windows: set[str] = set()
        """The names of nodes that run Windows, whose pods run nowhere else."""
        self._vacant: list[int] = []
        self._classes: dict[tuple[object, ...], int] = {}
        self._workloads: dict[tuple[str, str, str], int] = {}
        self._rules: dict[tuple[bytes, VolumeNeeds], Constraints] = {}
        self._selective: set[bytes] = set()
        """Rules that select namespaces by their labels, of pods that are gone, too."""

    def note_claims(self, pods: Iterable[Pod]) -> None:
        """Remember which pods use which volume claims: a claim that several use is attached only once per node."""
        for pod in pods:
            if pod.spec.volumes:
                for name in attached_by(pod):
                    self.claim_users.setdefault(name, set()).add(pod.key)

    def forget_claims(self, pod: Pod) -> None:
        """Forget that a pod uses its volume claims."""
        if pod.spec.volumes:
            for name in attached_by(pod):
                users = self.claim_users.get(name, set())
                users.discard(pod.key)
                if not users:
                    self.claim_users.pop(name, None)

    def add(self, pod: Pod) -> int:
        """Give a pod a row."""
        row = self._vacant.pop() if self._vacant else len(self.objects)
        if row == len(self.objects):
            self.objects.append(None)
            self.sort_keys.append((0, 0, 0.0, "", ""))
            self.fit(pods=row + 1)
        entries = self._write(pod, row)
        self.ranking.add(self.sort_keys[row], row)
        self.class_of[row], self.labels_of[row], self.counted[row], self.daemon[row], self.protected[row] = entries[:5]
        self.workload_of[row] = entries[5]
        self.node_of[row], self.next[row] = NOWHERE, END
        return row

    def add_all(self, pods: Sequence[Pod]) -> None:
        """Give many pods rows at once; none has one so far."""
        count = len(pods)
        self.objects = [None] * count
        self.sort_keys = [(0, 0, 0.0, "", "")] * count
        self.fit(pods=count)
        entries = [self._write(pod, row) for row, pod in enumerate(pods)]
        self.ranking.fill(zip(self.sort_keys, range(count), strict=True))
        if entries:
            columns = np.array(entries, dtype=np.int32)
            self.class_of[:count], self.labels_of[:count] = columns[:, 0], columns[:, 1]
            self.counted[:count], self.daemon[:count] = columns[:, 2], columns[:, 3]
            self.protected[:count], self.workload_of[:count] = columns[:, 4], columns[:, 5]

    def _write(self, pod: Pod, row: int) -> tuple[int, int, bool, bool, bool, int]:
        """Put a pod on a row; its class, its labels, whether it is counted, a daemon, do-not-disrupt; its workload."""
        meta, key = pod.metadata, pod.key
        number = self.class_number(pod)
        cpu, memory = self.classes.sizes[number]
        self.objects[row] = pod
        self.rows[key] = row
        if self._devices and pod.spec.resource_claims:
            self.device_rows.add(row)
        self.sort_keys[row] = (-cpu, -memory, _seconds(meta.creation_timestamp), meta.uid, key)
        labels = self.topology.labels(meta.namespace, meta.labels)
        counted, protected = meta.deletion_timestamp is None, DO_NOT_DISRUPT in meta.annotations
        return number, labels, counted, pod.is_daemon, protected, self._workload(pod)

    def _workload(self, pod: Pod) -> int:
        owner = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
        if owner is None or owner.kind not in _SPREAD or pod.spec.topology_spread_constraints:
            return NO_WORKLOAD
        return self._workloads.setdefault((pod.metadata.namespace, owner.kind, owner.name), len(self._workloads))

    def replace(self, row: int, pod: Pod) -> None:
        """Put a pod in the place of one with the same class, labels and age."""
        self.objects[row] = pod
        self.counted[row] = pod.metadata.deletion_timestamp is None
        self.protected[row] = DO_NOT_DISRUPT in pod.metadata.annotations

    def reclass(self, row: int) -> None:
        """Class a pod anew, because its volumes or what taints ask of pods changed."""
        self.class_of[row] = self.class_number(self.get(row))

    def drop(self, row: int) -> None:
        """Take a pod's row away."""
        pod = self.objects[row]
        if pod is not None:
            self.objects[row] = None
            self.device_rows.discard(row)
            del self.rows[pod.key]
            self.ranking.drop(self.sort_keys[row])
            self._vacant.append(row)

    def get(self, row: int) -> Pod:
        """The pod of a row that is taken."""
        pod = self.objects[row]
        if pod is None:
            raise KeyError(row)
        return pod

    def on_nodes(self) -> Iterator[int]:
        """The rows of pods that have a node, which are looked for when the first one is asked for."""
        yield from np.flatnonzero(self.node_of[: len(self.objects)] >= 0).tolist()

    def class_number(self, pod: Pod) -> int:
        """The first class of a pod, made if need be."""
        pinned = not _PINNED.isdisjoint([owner.kind for owner in pod.metadata.owner_references])
        if self.windows and pod.spec.node_name in self.windows:
            pod = structs.replace(pod, spec=structs.replace(pod.spec, os=PodSystem(name=WINDOWS)))
        needs = self.volumes.needs(pod) if pod.spec.volumes else NO_VOLUMES
        if pinned and needs is not NO_VOLUMES:
            needs = VolumeNeeds(attached=needs.attached)
        shared = self._shared(needs)
        needs = needs.without_names(shared)
        rules, requests = rules_key(pod, pinned=pinned), requests_key(pod)
        key = (rules, requests) if needs is NO_VOLUMES else (rules, requests, needs, shared)
        number = self._classes.get(key)
        if number is None:
            amounts = self.classes.resources.request(effective_requests(pod))
            number = self._classes[key] = self.classes.add(self._read(pod, rules, needs), amounts, shared)
        return number

    def _read(self, pod: Pod, rules: bytes, needs: VolumeNeeds) -> Constraints:
        """A pod's rules, read once for all pods that have the same."""
        known = self._rules.get((rules, needs))
        if known is None:
            if selects_namespaces(pod):
                self._selective.add(rules)
            known = self._rules[rules, needs] = constraints(
                pod,
                namespaces=self.namespaces,
                volumes=needs,
                preferences=self.preferences,
                soft_taints=self.soft_taints,
                pinned=pod.is_daemon or pod.is_mirror,
                devices=self._devices,
            )
        return known

    def forget_classes(self) -> None:
        """Class pods from scratch when they are next added."""
        self._classes.clear()
        self._rules.clear()

    def set_namespace(self, name: str, entry: Namespace | None) -> list[int]:
        """Take note of a namespace; the rows of the pods whose rules depend on its labels, which are read anew."""
        if entry is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = entry
        if not self._selective:
            return []
        self._rules = {key: rules for key, rules in self._rules.items() if key[0] not in self._selective}
        self._classes = {key: number for key, number in self._classes.items() if key[0] not in self._selective}
        self._selective.clear()
        return [row for row, pod in enumerate(self.objects) if pod is not None and selects_namespaces(pod)]

    def _shared(self, needs: VolumeNeeds) -> frozenset[str]:
        if not needs.attached:
            return frozenset()
        return frozenset(claim for _, claim in needs.attached if len(self.claim_users.get(claim, ())) > 1)


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0
