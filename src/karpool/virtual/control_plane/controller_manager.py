"""The controllers of a scenario's workloads, as kube-controller-manager runs them."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from msgspec.structs import asdict

from karpool.model.pod import Pod
from karpool.model.selectors import LabelSelector
from karpool.model.workloads import BudgetSpec, PodDisruptionBudget
from karpool.virtual.control_plane.api import Api
from karpool.virtual.control_plane.daemonset_controller import DaemonSetController
from karpool.virtual.control_plane.deployment_controller import DeploymentController
from karpool.virtual.control_plane.job_controller import JobController
from karpool.virtual.control_plane.statefulset_controller import StatefulSetController
from karpool.virtual.control_plane.workload_controller import APP, OWNER, WorkloadController
from karpool.virtual.curves import DAY, seconds
from karpool.virtual.random_streams import poisson, random_stream
from karpool.virtual.scenario import ScenarioWorkload
from karpool.virtual.world import VirtualWorld
from karpool.wire.objects import Metadata

CONTROLLERS: Final[dict[str, type[WorkloadController]]] = {
    "Deployment": DeploymentController,
    "StatefulSet": StatefulSetController,
    "Job": JobController,
    "DaemonSet": DaemonSetController,
}


def budget_of(workload: ScenarioWorkload) -> PodDisruptionBudget | None:
    protection = workload.protection
    if protection is None:
        return None
    return PodDisruptionBudget(
        metadata=Metadata(name=workload.name, namespace=workload.namespace),
        spec=BudgetSpec(
            selector=LabelSelector(match_labels={APP: workload.labels.get(APP, workload.name)}),
            **asdict(protection),
        ),
    )


class ControllerManager:
    def __init__(self, world: VirtualWorld, workloads: Iterable[ScenarioWorkload]) -> None:
        self.world = world
        self.workloads = tuple(workloads)
        self.controllers: list[WorkloadController] = []
        self._by_key: dict[str, WorkloadController] = {}
        world.store.pods.watch(self._pod_changed)

    def install(self, api: Api) -> None:
        """Make the controllers; DaemonSets are in the store before the start."""
        for workload in self.workloads:
            self.add(CONTROLLERS[workload.kind](self.world, api, workload))

    def add(self, controller: WorkloadController) -> None:
        """One more controller; who adds it after the start starts it."""
        self.controllers.append(controller)
        self._by_key[controller.key] = controller
        if isinstance(controller, DaemonSetController):
            controller.create_daemon_set()

    def named(self, namespace: str, kind: str, name: str) -> WorkloadController | None:
        return self._by_key.get(f"{namespace}/{kind}/{name}")

    def start(self) -> None:
        for controller in self.controllers:
            controller.start()
            for after in controller.workload.deploys:
                self.world.queue.at(seconds(after), controller.deploy)
            if controller.workload.deploys_per_day:
                self._draw_deploys(controller)

    def _draw_deploys(self, controller: WorkloadController, day: int = 0) -> None:
        workload = controller.workload
        random = random_stream(self.world.seed, "deploys", workload.namespace, workload.name, str(day))
        for _ in range(poisson(random, workload.deploys_per_day)):
            self.world.queue.at((day + random.random()) * DAY, controller.deploy)
        self.world.queue.at((day + 1) * DAY, partial(self._draw_deploys, controller, day + 1))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new if new is not None else old
        controller = None if pod is None else self.controller_of(pod)
        if controller is not None:
            controller.pod_changed(old, new)

    def controller_of(self, pod: Pod) -> WorkloadController | None:
        return self._by_key.get(pod.metadata.annotations.get(OWNER, ""))

    def workload_of(self, pod: Pod) -> ScenarioWorkload | None:
        controller = self.controller_of(pod)
        return None if controller is None else controller.workload

    def scale_target(self, pod: Pod) -> str:
        """The key of what scales a pod; empty if nothing does."""
        controller = self.controller_of(pod)
        return controller.key if isinstance(controller, DeploymentController | StatefulSetController) else ""

    def desired_replicas(self, key: str) -> int | None:
        """How many pods a scale target wants; None if it is unknown."""
        controller = self._by_key.get(key)
        return None if controller is None else controller.replicas
