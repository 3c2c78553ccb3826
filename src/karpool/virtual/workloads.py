"""All owners of pods: made from a scenario's workloads, told of changes of their pods."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from karpool.model.pod import Pod
from karpool.model.selectors import LabelSelector
from karpool.model.workloads import BudgetSpec, PodDisruptionBudget
from karpool.virtual.api import Api
from karpool.virtual.curves import DAY, seconds
from karpool.virtual.daemonsets import DaemonSetOwner
from karpool.virtual.deployments import DeploymentOwner
from karpool.virtual.jobs import JobOwner
from karpool.virtual.owners import APP, OWNER, Owner
from karpool.virtual.random_streams import poisson, stream
from karpool.virtual.scenario import Workload
from karpool.virtual.statefulsets import StatefulSetOwner
from karpool.virtual.world import VirtualWorld
from karpool.wire.duration import Duration
from karpool.wire.objects import Metadata

KINDS: Final[dict[str, type[Owner]]] = {
    "Deployment": DeploymentOwner,
    "StatefulSet": StatefulSetOwner,
    "Job": JobOwner,
    "DaemonSet": DaemonSetOwner,
}


def budget_of(workload: Workload) -> PodDisruptionBudget | None:
    """The PodDisruptionBudget that a workload asks for."""
    asked = workload.protection
    if asked is None:
        return None
    return PodDisruptionBudget(
        metadata=Metadata(name=workload.name, namespace=workload.namespace),
        spec=BudgetSpec(
            selector=LabelSelector(match_labels={APP: workload.labels.get(APP, workload.name)}),
            min_available=asked.min_available,
            max_unavailable=asked.max_unavailable,
            unhealthy_pod_eviction_policy=asked.unhealthy_pod_eviction_policy,
        ),
    )


class Workloads:
    """Finds the owner of a pod."""

    def __init__(self, world: VirtualWorld, workloads: Iterable[Workload]) -> None:
        self.world = world
        self.described = tuple(workloads)
        self.owners: list[Owner] = []
        self._by_name: dict[str, Owner] = {}
        world.store.pods.watch(self._pod)

    def install(self, api: Api) -> None:
        """Make the owners; DaemonSets are known from the beginning."""
        for workload in self.described:
            owner = KINDS[workload.kind](self.world, api, workload)
            owner.on_scale = api.watchman.scaled
            self.owners.append(owner)
            self._by_name[owner.controller] = owner
            if isinstance(owner, DaemonSetOwner):
                owner.declare()

    def start(self) -> None:
        """Let every owner begin."""
        for owner in self.owners:
            owner.start()
            for after in owner.workload.deploys:
                self.world.queue.at(seconds(after), owner.deploy)
            if owner.workload.deploys_per_day:
                self._draw_deploys(owner)

    def _draw_deploys(self, owner: Owner, day: int = 0) -> None:
        """Draw the deploys of a day, and come back on the next."""
        workload = owner.workload
        random = stream(self.world.seed, "deploys", workload.namespace, workload.name, str(day))
        for _ in range(poisson(random, workload.deploys_per_day)):
            self.world.queue.at((day + random.random()) * DAY, owner.deploy)
        self.world.queue.at((day + 1) * DAY, partial(self._draw_deploys, owner, day + 1))

    def owner_of(self, pod: Pod) -> Owner | None:
        """The owner of a pod."""
        return self._by_name.get(pod.metadata.annotations.get(OWNER, ""))

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        known = new if new is not None else old
        owner = None if known is None else self.owner_of(known)
        if owner is not None:
            owner.notice(old, new)

    # -- what others ask -----------------------------------------------------------------------------------------

    def controller_of(self, pod: Pod) -> str:
        """The name of what scales a pod; empty if nothing does."""
        owner = self.owner_of(pod)
        return owner.controller if isinstance(owner, DeploymentOwner | StatefulSetOwner) else ""

    def scale(self, controller: str) -> int | None:
        """How many pods a controller wants; None if nobody can say."""
        owner = self._by_name.get(controller)
        return None if owner is None else owner.wanted

    def start_time(self, pod: Pod) -> Duration | None:
        """How long a pod takes to start, if its workload says."""
        owner = self.owner_of(pod)
        return None if owner is None else owner.workload.start_time

    def stop_time(self, pod: Pod) -> Duration | None:
        """How long a pod takes to stop, if its workload says."""
        owner = self.owner_of(pod)
        return None if owner is None else owner.workload.stop_time

    def run_time(self, pod: Pod) -> Duration | None:
        """How long a pod runs, if it ever ends."""
        owner = self.owner_of(pod)
        return owner.workload.runs if isinstance(owner, JobOwner) else None
