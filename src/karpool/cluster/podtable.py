"""Pods as rows: each one's class, labels and place in the queue."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import numpy as np

from karpool.cluster.arrays import grown
from karpool.cluster.classes import ClassTable, requests_key, rules_key
from karpool.cluster.constraints import Preferences, constraints
from karpool.cluster.resources import CPU, MEMORY
from karpool.cluster.topology import Topology
from karpool.cluster.volumes import NO_VOLUMES, VolumeIndex, VolumeNeeds
from karpool.model.pod import Pod
from karpool.model.requests import effective_requests
from karpool.model.workloads import Namespace

NOWHERE = -1
END = -1
SortKey = tuple[int, int, float, str, str]


class PodTable:
    """Unfinished pods in columns; a pod keeps its row until it goes."""

    def __init__(
        self,
        classes: ClassTable,
        topology: Topology,
        *,
        volumes: VolumeIndex,
        namespaces: Mapping[str, Namespace],
        preferences: Preferences,
        soft_taints: bool,
    ) -> None:
        self.classes = classes
        self.topology = topology
        self.volumes = volumes
        self.namespaces = namespaces
        self.preferences = preferences
        self.soft_taints = soft_taints
        self.objects: list[Pod | None] = []
        self.rows: dict[str, int] = {}
        self.sort_keys: list[SortKey] = []
        self.node_of = np.full(16, NOWHERE, dtype=np.int32)
        self.class_of = np.zeros(16, dtype=np.int32)
        self.labels_of = np.zeros(16, dtype=np.int32)
        self.next = np.full(16, END, dtype=np.int32)
        self.counted = np.zeros(16, dtype=np.uint8)
        self.claim_users: dict[str, set[str]] = {}
        self._vacant: list[int] = []
        self._classes: dict[tuple[bytes, tuple[object, ...], VolumeNeeds, frozenset[str]], int] = {}

    def note_claims(self, pods: Iterable[Pod]) -> None:
        """Remember which pods use which volume claims: a claim that several use is attached only once per node."""
        for pod in pods:
            if pod.spec.volumes:
                for name in claims_of(pod):
                    self.claim_users.setdefault(name, set()).add(pod.key)

    def add(self, pod: Pod) -> int:
        """Give a pod a row."""
        row = self._vacant.pop() if self._vacant else len(self.objects)
        if row == len(self.objects):
            self.objects.append(None)
            self.sort_keys.append((0, 0, 0.0, "", ""))
            if row >= len(self.node_of):
                self._grow(row + 1)
        meta = pod.metadata
        self.objects[row] = pod
        self.rows[pod.key] = row
        self.class_of[row] = number = self.class_number(pod)
        self.labels_of[row] = self.topology.labels(meta.namespace, meta.labels)
        self.node_of[row], self.next[row] = NOWHERE, END
        self.counted[row] = meta.deletion_timestamp is None
        requests = self.classes.requests
        self.sort_keys[row] = (
            -int(requests[number, CPU]),
            -int(requests[number, MEMORY]),
            _seconds(meta.creation_timestamp),
            meta.uid,
            pod.key,
        )
        return row

    def _grow(self, size: int) -> None:
        self.node_of = grown(self.node_of, (size,), NOWHERE)
        self.class_of = grown(self.class_of, (size,))
        self.labels_of = grown(self.labels_of, (size,))
        self.next = grown(self.next, (size,), END)
        self.counted = grown(self.counted, (size,))

    def drop(self, row: int) -> None:
        """Take a pod's row away."""
        pod = self.objects[row]
        if pod is not None:
            self.objects[row] = None
            del self.rows[pod.key]
            self._vacant.append(row)

    def get(self, row: int) -> Pod:
        """The pod of a row that is taken."""
        pod = self.objects[row]
        if pod is None:
            raise KeyError(row)
        return pod

    def class_number(self, pod: Pod) -> int:
        """The first class of a pod, made if need be."""
        pinned = pod.is_daemon or pod.is_mirror
        needs = self.volumes.needs(pod) if pod.spec.volumes else NO_VOLUMES
        if pinned and needs is not NO_VOLUMES:
            needs = VolumeNeeds(attached=needs.attached)
        shared = self._shared(needs)
        key = (rules_key(pod, pinned=pinned), requests_key(pod), needs, shared)
        found = self._classes.get(key)
        if found is None:
            rules = constraints(
                pod,
                namespaces=self.namespaces,
                volumes=needs,
                preferences=self.preferences,
                soft_taints=self.soft_taints,
                pinned=pinned,
            )
            requests = self.classes.resources.request(effective_requests(pod))
            found = self._classes[key] = self.classes.add(rules, requests, shared)
        return found

    def forget_classes(self) -> None:
        """Class pods from scratch when they are next added."""
        self._classes.clear()

    def _shared(self, needs: VolumeNeeds) -> frozenset[str]:
        if not needs.attached:
            return frozenset()
        return frozenset(claim for _, claim in needs.attached if len(self.claim_users.get(claim, ())) > 1)


def claims_of(pod: Pod) -> list[str]:
    """The volume claims that a pod names, as `namespace/name`."""
    named = [volume.persistent_volume_claim for volume in pod.spec.volumes]
    return [f"{pod.metadata.namespace}/{claim.claim_name}" for claim in named if claim is not None]


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0
