"""Deployments: pods of a ReplicaSet, scaled up and down, and replaced by a rolling update."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from karpool.disruption.candidates.costs import deletion_cost
from karpool.model.pod import Pod
from karpool.virtual.changes import with_label
from karpool.virtual.control_plane.api import Api
from karpool.virtual.control_plane.workload_controller import WorkloadController, owned, ready, reference
from karpool.virtual.random_streams import random_fraction
from karpool.virtual.scenario import ScenarioWorkload
from karpool.virtual.world import VirtualWorld

REVISION: Final = "pod-template-hash"
SURGE: Final = 0.25
"""`maxSurge` and `maxUnavailable` of a rolling update, as a fraction of the replicas."""


class DeploymentController(WorkloadController):
    def __init__(self, world: VirtualWorld, api: Api, workload: ScenarioWorkload) -> None:
        super().__init__(world, api, workload)
        self._of_revision: Counter[str] = Counter()
        self._ready: Counter[str] = Counter()
        self._shared_labels: dict[str, str] = {}
        self._ties: dict[str, float] = {}
        """What breaks ties, by key of a pod that was among those that could go."""

    @property
    def replica_set(self) -> str:
        return f"{self.workload.name}-{self.revision}"

    def track(self, key: str, before: Pod | None, after: Pod | None) -> None:
        super().track(key, before, after)
        if after is None:
            self._ties.pop(key, None)
        for pod, change in ((before, -1), (after, 1)):
            if pod is not None:
                revision = _revision(pod)
                self._of_revision[revision] += change
                self._ready[revision] += change * ready(pod)

    def reconcile(self) -> None:
        revision = str(self.revision)
        newest = self._of_revision[revision]
        old = len(self.pods) - newest
        if newest > self.replicas:
            young = [pod for pod in self.pods.values() if _revision(pod) == revision]
            self._delete(list(islice(self._deletion_order(young), newest - self.replicas)))
        surge = math.ceil(SURGE * self.replicas) if old else 0
        missing = min(self.replicas - newest, self.replicas + surge - len(self.pods))
        for _ in range(max(0, missing)):
            self._create()
        if old:
            self._delete_old(old, revision)

    def _delete_old(self, count: int, newest: str) -> None:
        """Delete old pods that are not ready, and as many ready ones as `maxUnavailable` allows."""
        ready_pods = self._ready.total()
        spare = max(0, ready_pods - (self.replicas - math.floor(SURGE * self.replicas)))
        if not spare and ready_pods - self._ready[newest] == count:
            return
        old = [pod for pod in self.pods.values() if _revision(pod) != newest]
        idle = [pod for pod in old if not ready(pod)]
        busy = list(islice(filter(ready, self._deletion_order(old)), spare))
        self._delete(idle)
        self._delete(busy)

    def adopt(self, pod: Pod) -> None:
        """A pod of the initial cluster counts as one of the newest revision, as those that come after it do."""
        super().adopt(owned(with_label(pod, REVISION, str(self.revision)), reference("ReplicaSet", self.replica_set)))

    def _create(self) -> None:
        # Pods of a revision share one dictionary, so that caches by its identity serve all of them.
        if self._shared_labels.get(REVISION) != str(self.revision):
            self._shared_labels = {**self.labels, REVISION: str(self.revision)}
        owner = reference("ReplicaSet", self.replica_set)
        self.create(self.next_name(self.replica_set), owner, labels=self._shared_labels)

    def _delete(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self.api.delete_pod(pod.key)

    def _deletion_order(self, pods: list[Pod]) -> Iterator[Pod]:
        """Pods in the order in which a ReplicaSet deletes them: not bound, not ready, crowded, then young ones.

        Ages count by their order of magnitude only, and ties are broken at random, as in Kubernetes.
        """
        per_node = Counter([pod.spec.node_name for pod in pods])
        ranks: defaultdict[tuple[bool, bool, float, int], list[Pod]] = defaultdict(list)
        for pod in pods:
            node = pod.spec.node_name
            ranks[node != "", ready(pod), deletion_cost(pod) or 0.0, -per_node[node]].append(pod)
        for rank in sorted(ranks):
            yield from sorted(ranks[rank], key=self._age_and_tie_break)

    def _age_and_tie_break(self, pod: Pod) -> tuple[int, float]:
        now = self.world.queue.moment
        age = max(1.0, (now - (pod.metadata.creation_timestamp or now)).total_seconds())
        key = pod.key
        if key not in self._ties:
            self._ties[key] = random_fraction(self.world.seed, "scale-down", key)
        return int(math.log2(age)), self._ties[key]


def _revision(pod: Pod) -> str:
    return pod.metadata.labels[REVISION]
