"""The base of all workload controllers: what their pods look like, and how many there should be."""

from abc import ABC, abstractmethod
from functools import partial
from typing import Final

from msgspec.structs import replace

from karpool.model.pod import Amounts, Container, Pod, PodSpec, PodStatus
from karpool.model.workloads import Deployment, PodTemplateSpec, StatefulSet, WorkloadSpec
from karpool.virtual.changes import with_metadata
from karpool.virtual.control_plane.api import Api
from karpool.virtual.curves import Curve, CurveEvaluator, seconds
from karpool.virtual.random_streams import random_stream
from karpool.virtual.scenario import ScenarioWorkload
from karpool.virtual.world import VirtualWorld
from karpool.wire.objects import Metadata, OwnerReference, is_true

APP: Final = "app.kubernetes.io/name"
OWNER: Final = "karpool.sh/virtual-owner"
"""The annotation that names a pod's controller; labels are the workload's own."""


def pod_spec(workload: ScenarioWorkload) -> PodSpec:
    """The spec of a workload's pods; `cpu` and `memory` are the requests of its first container."""
    sizes = {"cpu": workload.cpu, "memory": workload.memory}
    requests: Amounts = {name: amount for name, amount in sizes.items() if amount is not None}
    if not requests:
        return workload.spec
    first, *rest = workload.spec.containers or (Container(name="main"),)
    resources = replace(first.resources, requests={**first.resources.requests, **requests})
    return replace(workload.spec, containers=(replace(first, resources=resources), *rest))


def ready(pod: Pod) -> bool:
    return is_true(pod.status.conditions, "Ready")


class WorkloadController(ABC):
    """Knows the active pods of its workload, and reconciles soon after one changes."""

    def __init__(self, world: VirtualWorld, api: Api, workload: ScenarioWorkload) -> None:
        self.world = world
        self.api = api
        self.workload = workload
        self.spec = pod_spec(workload)
        self.key = f"{workload.namespace}/{workload.kind}/{workload.name}"
        self.labels = {APP: workload.name, **workload.labels}
        self.annotations = {**workload.annotations, OWNER: self.key}
        self.pods: dict[str, Pod] = {}
        self.replicas = 0
        self.revision = 1
        self.is_shown = False
        self._queued = False
        self._names = 0

    # -- over time -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._publish()
        if isinstance(self.workload.replicas, Curve):
            self._follow(self.evaluator(self.workload.replicas))
        else:
            self.scale(self.workload.replicas)

    def evaluator(self, curve: Curve) -> CurveEvaluator:
        random = random_stream(self.world.seed, "curve", self.workload.namespace, self.workload.name)
        return CurveEvaluator(curve, self.world.queue.start, random)

    def _follow(self, evaluator: CurveEvaluator) -> None:
        self.scale(evaluator.whole(self.world.queue.time))
        self.world.queue.after(seconds(evaluator.curve.every), partial(self._follow, evaluator))

    def scale(self, replicas: int) -> None:
        if replicas != self.replicas:
            self.replicas = replicas
            self._publish()
            self.api.pdb_controller.scaled(self.key)
            self.enqueue()

    def show(self) -> None:
        """From now on the workload is there as an object."""
        self.is_shown = True
        self._publish()

    def _publish(self) -> None:
        """Show the workload as an object where CapacityBuffers may refer to it, or somebody wants to see it."""
        store = self.world.store
        if not (store.buffers or self.is_shown):
            return
        meta = Metadata(name=self.workload.name, namespace=self.workload.namespace)
        template = PodTemplateSpec(
            metadata=Metadata(labels=self.labels, annotations=self.workload.annotations), spec=self.spec
        )
        spec = WorkloadSpec(replicas=self.replicas, template=template)
        if self.workload.kind == "Deployment":
            store.deployments.put(Deployment(metadata=meta, spec=spec))
        elif self.workload.kind == "StatefulSet":
            store.stateful_sets.put(StatefulSet(metadata=meta, spec=spec))

    def deploy(self) -> None:
        """Roll out a new revision, where pods have one."""
        self.revision += 1
        self.enqueue()

    def become(self, workload: ScenarioWorkload) -> None:
        """Roll out other pods, as many as there are."""
        self.workload = replace(workload, replicas=self.workload.replicas)
        self.spec = pod_spec(workload)
        self.labels = {APP: workload.name, **workload.labels}
        self.annotations = {**workload.annotations, OWNER: self.key}
        self._publish()
        self.deploy()

    # -- changes -------------------------------------------------------------------------------------------------

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        key = pod.key
        before, after = self.pods.get(key), new if new is not None and new.active else None
        self.track(key, before, after)
        if before is None or after is None or ready(before) != ready(after):
            self.enqueue()

    def track(self, key: str, before: Pod | None, after: Pod | None) -> None:
        if after is not None:
            self.pods[key] = after
        elif before is not None:
            del self.pods[key]

    def enqueue(self) -> None:
        """Reconcile after the reaction time, unless that is queued already."""
        if not self._queued:
            self._queued = True
            self.world.queue.after(seconds(self.world.timings.reaction), self._process)

    def _process(self) -> None:
        self._queued = False
        self.reconcile()

    @abstractmethod
    def reconcile(self) -> None:
        """Bring the pods closer to the desired state."""

    # -- pods ----------------------------------------------------------------------------------------------------

    def next_name(self, prefix: str) -> str:
        """A name that no pod has: those of the initial cluster may be called alike."""
        self._names += 1
        while f"{self.workload.namespace}/{prefix}-{self._names:05x}" in self.world.store.pods:
            self._names += 1
        return f"{prefix}-{self._names:05x}"

    def create(
        self, name: str, owner: OwnerReference, *, labels: dict[str, str], node: str = "", spec: PodSpec | None = None
    ) -> None:
        meta = Metadata(
            name=name,
            namespace=self.workload.namespace,
            labels=labels,
            annotations=self.annotations,
            owner_references=(owner,),
        )
        spec = self.spec if spec is None else spec
        bound = replace(spec, node_name=node) if node else spec
        start = self.world.queue.moment if node else None
        self.api.create_pod(Pod(metadata=meta, spec=bound, status=PodStatus(phase="Pending", start_time=start)))

    def adopt(self, pod: Pod) -> None:
        """Take over a pod of the initial cluster; its age, its node and its status stay as they are."""
        labels = {**pod.metadata.labels, **self.labels}
        annotations = {**pod.metadata.annotations, OWNER: self.key}
        self.world.store.pods.put(with_metadata(pod, labels=labels, annotations=annotations))


def reference(kind: str, name: str) -> OwnerReference:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return OwnerReference(kind=kind, name=name, api_version=version, controller=True)


def owned(pod: Pod, owner: OwnerReference) -> Pod:
    """A pod of the initial cluster under the owner of those that come after it.

    Under another one those that are left would be short of the evicted ones for ever, and a paced drain wait for them.
    """
    return with_metadata(pod, owner_references=(owner,))
