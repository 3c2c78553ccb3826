"""Deployments: interchangeable pods of a ReplicaSet, scaled up and down, rolled over by a new revision."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from karpool.disruption.costs import deletion_cost
from karpool.model.pod import Pod
from karpool.virtual.api import Api
from karpool.virtual.changes import with_label
from karpool.virtual.owners import Owner, ready, reference
from karpool.virtual.random_streams import share
from karpool.virtual.scenario import Workload
from karpool.virtual.world import VirtualWorld

REVISION: Final = "pod-template-hash"
SURGE: Final = 0.25
"""The share of pods that may be too many, and that may be missing, while a new revision rolls out."""


class DeploymentOwner(Owner):
    """Keeps as many ready pods of the newest revision as are wanted."""

    def __init__(self, world: VirtualWorld, api: Api, workload: Workload) -> None:
        super().__init__(world, api, workload)
        self._of_revision: Counter[str] = Counter()
        self._serving: Counter[str] = Counter()
        self._shared_labels: dict[str, str] = {}

    @property
    def replica_set(self) -> str:
        """The name of the ReplicaSet of the newest revision."""
        return f"{self.workload.name}-{self.revision}"

    def hold(self, key: str, before: Pod | None, after: Pod | None) -> None:
        """Know a live pod, and count pods, and those that serve, by revision."""
        super().hold(key, before, after)
        for held, change in ((before, -1), (after, 1)):
            if held is not None:
                revision = _revision(held)
                self._of_revision[revision] += change
                self._serving[revision] += change * ready(held)

    def reconcile(self) -> None:
        """Scale the newest revision, or roll it out a little further."""
        revision = str(self.revision)
        newest = self._of_revision[revision]
        old = len(self.pods) - newest
        if newest > self.wanted:
            young = [pod for pod in self.pods.values() if _revision(pod) == revision]
            self._delete(list(islice(self._first_to_go(young), newest - self.wanted)))
        surge = math.ceil(SURGE * self.wanted) if old else 0
        missing = min(self.wanted - newest, self.wanted + surge - len(self.pods))
        for _ in range(max(0, missing)):
            self._create()
        if old:
            self._retire(old, revision)

    def _retire(self, count: int, newest: str) -> None:
        """Delete old pods that do not serve, and as many that do as others can stand in for."""
        serving = self._serving.total()
        spare = max(0, serving - (self.wanted - math.floor(SURGE * self.wanted)))
        if not spare and serving - self._serving[newest] == count:
            return
        old = [pod for pod in self.pods.values() if _revision(pod) != newest]
        idle = [pod for pod in old if not ready(pod)]
        busy = list(islice(filter(ready, self._first_to_go(old)), spare))
        self._delete(idle)
        self._delete(busy)

    def adopt(self, pod: Pod) -> None:
        """A pod that was there before counts as one of the newest revision."""
        super().adopt(with_label(pod, REVISION, str(self.revision)))

    def _create(self) -> None:
        # Pods of a revision share one dictionary: whoever has seen it knows the labels of them all.
        if self._shared_labels.get(REVISION) != str(self.revision):
            self._shared_labels = {**self.labels, REVISION: str(self.revision)}
        owner = reference("ReplicaSet", self.replica_set)
        self.create(self.next_name(self.replica_set), owner, labels=self._shared_labels)

    def _delete(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self.api.delete_pod(pod.key)

    def _first_to_go(self, pods: list[Pod]) -> Iterator[Pod]:
        """Pods in the order in which a ReplicaSet gives them up: not placed, not ready, crowded, then young ones.

        Ages count by their order of magnitude only, and of equals chance decides, as in Kubernetes.
        """
        crowd = Counter([pod.spec.node_name for pod in pods])
        alike: defaultdict[tuple[bool, bool, float, int], list[Pod]] = defaultdict(list)
        for pod in pods:
            node = pod.spec.node_name
            alike[node != "", ready(pod), deletion_cost(pod) or 0.0, -crowd[node]].append(pod)
        for candidate in sorted(alike):
            yield from sorted(alike[candidate], key=self._age_and_luck)

    def _age_and_luck(self, pod: Pod) -> tuple[int, float]:
        now = self.world.queue.moment
        age = max(1.0, (now - (pod.metadata.creation_timestamp or now)).total_seconds())
        return int(math.log2(age)), share(self.world.seed, "scale-down", pod.key)


def _revision(pod: Pod) -> str:
    return pod.metadata.labels[REVISION]
