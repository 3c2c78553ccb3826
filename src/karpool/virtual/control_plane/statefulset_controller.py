"""StatefulSets: pods with ordinals, created one after the other, and again under the same name."""

from typing import Final

from msgspec.structs import replace

from karpool.model.pod import Pod, PodSpec
from karpool.virtual.changes import with_label
from karpool.virtual.control_plane.api import Api
from karpool.virtual.control_plane.workload_controller import WorkloadController, owned, ready, reference
from karpool.virtual.scenario import ScenarioWorkload
from karpool.virtual.world import VirtualWorld

REVISION: Final = "controller-revision-hash"


class StatefulSetController(WorkloadController):
    first = 0
    """The ordinal of the first pod."""

    def __init__(self, world: VirtualWorld, api: Api, workload: ScenarioWorkload) -> None:
        super().__init__(world, api, workload)
        self._adopted: dict[str, tuple[dict[str, str], PodSpec]] = {}

    def become(self, workload: ScenarioWorkload) -> None:
        """Roll out other pods; those of the initial cluster keep their labels and volumes, but not their specs."""
        super().become(workload)
        self._adopted = {
            name: (labels, replace(self.spec, volumes=spec.volumes)) for name, (labels, spec) in self._adopted.items()
        }

    def reconcile(self) -> None:
        """Take one step: create the next missing pod, remove the last surplus one, or replace an old one."""
        for number in self._ordinals:
            pod = self.world.store.pods.get(f"{self.workload.namespace}/{self.workload.name}-{number}")
            if pod is None:
                self._create(number)
                return
            if not pod.active or not ready(pod):
                return
        surplus = [pod for pod in self.pods.values() if ordinal(pod) not in self._ordinals]
        old = [pod for pod in self.pods.values() if pod.metadata.labels[REVISION] != str(self.revision)]
        chosen = max(surplus or old, key=ordinal, default=None)
        if chosen is not None:
            self.api.delete_pod(chosen.key)

    @property
    def _ordinals(self) -> range:
        return range(self.first, self.first + self.replicas)

    def adopt(self, pod: Pod) -> None:
        """A pod of the initial cluster keeps its labels and its volumes whenever it is recreated."""
        self._adopted[pod.name] = pod.metadata.labels, replace(self.spec, volumes=pod.spec.volumes)
        owner = reference("StatefulSet", self.workload.name)
        super().adopt(owned(with_label(pod, REVISION, str(self.revision)), owner))

    def _create(self, number: int) -> None:
        name = f"{self.workload.name}-{number}"
        own, spec = self._adopted.get(name, ({}, self.spec))
        labels = {**own, **self.labels, REVISION: str(self.revision)}
        self.create(name, reference("StatefulSet", self.workload.name), labels=labels, spec=spec)


def ordinal(pod: Pod) -> int:
    return int(pod.name.rpartition("-")[2])
