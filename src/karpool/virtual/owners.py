"""What all owners of pods share: how their pods look, and who wants how many."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from karpool.model.pod import Amounts, Container, Pod, PodSpec, PodStatus
from karpool.virtual.api import Api
from karpool.virtual.changes import with_metadata
from karpool.virtual.curves import Curve, Player, seconds
from karpool.virtual.random_streams import stream
from karpool.virtual.scenario import Workload
from karpool.virtual.world import VirtualWorld
from karpool.wire.objects import Metadata, OwnerReference, is_true

APP: Final = "app.kubernetes.io/name"
OWNER: Final = "karpool.sh/virtual-owner"
"""The annotation that says whose a pod is; labels belong to whoever wrote the workload."""


def pod_spec(workload: Workload) -> PodSpec:
    """What each pod of a workload asks for: its spec, with a container of the given size if it names none."""
    sizes = {"cpu": workload.cpu, "memory": workload.memory}
    requests: Amounts = {name: amount for name, amount in sizes.items() if amount is not None}
    if not requests:
        return workload.spec
    first, *rest = workload.spec.containers or (Container(name="main"),)
    asked = replace(first.resources, requests={**first.resources.requests, **requests})
    return replace(workload.spec, containers=(replace(first, resources=asked), *rest))


def ready(pod: Pod) -> bool:
    """Whether the pod serves."""
    return is_true(pod.status.conditions, "Ready")


class Owner(ABC):
    """Base of the owners: knows its live pods and is asked to put things right soon after one changes."""

    def __init__(self, world: VirtualWorld, api: Api, workload: Workload) -> None:
        self.world = world
        self.api = api
        self.workload = workload
        self.spec = pod_spec(workload)
        self.controller = f"{workload.namespace}/{workload.kind}/{workload.name}"
        """The name of what scales these pods."""
        self.labels = {APP: workload.name, **workload.labels}
        self.annotations = {**workload.annotations, OWNER: self.controller}
        self.pods: dict[str, Pod] = {}
        self.wanted = 0
        self.revision = 1
        self.on_scale: Callable[[str], None] | None = None
        self._due = False
        self._count = 0

    # -- over time -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to follow the curve of replicas."""
        replicas = self.workload.replicas
        if isinstance(replicas, Curve):
            random = stream(self.world.seed, "curve", self.workload.namespace, self.workload.name)
            self._follow(Player(replicas, self.world.queue.start, random))
        else:
            self.want(replicas)

    def _follow(self, player: Player) -> None:
        self.want(player.whole(self.world.queue.time))
        self.world.queue.after(seconds(player.curve.every), partial(self._follow, player))

    def want(self, count: int) -> None:
        """Want another number of pods."""
        if count != self.wanted:
            self.wanted = count
            if self.on_scale is not None:
                self.on_scale(self.controller)
            self.soon()

    def deploy(self) -> None:
        """Begin to replace all pods by those of a new revision, where pods have one."""
        self.revision += 1
        self.soon()

    # -- changes -------------------------------------------------------------------------------------------------

    def notice(self, old: Pod | None, new: Pod | None) -> None:
        """Take note of a change of one of its pods."""
        pod = new if new is not None else old
        if pod is None:
            return
        key = pod.key
        before, after = self.pods.get(key), new if new is not None and new.active else None
        self.hold(key, before, after)
        if before is None or after is None or ready(before) != ready(after):
            self.soon()

    def hold(self, key: str, before: Pod | None, after: Pod | None) -> None:
        """Know a live pod as it is after a change, or forget it."""
        if after is not None:
            self.pods[key] = after
        elif before is not None:
            del self.pods[key]

    def soon(self) -> None:
        """Put things right in a moment."""
        if not self._due:
            self._due = True
            self.world.queue.after(seconds(self.world.timings.reaction), self._act)

    def _act(self) -> None:
        self._due = False
        self.reconcile()

    @abstractmethod
    def reconcile(self) -> None:
        """Bring the pods closer to what is wanted."""

    # -- pods ----------------------------------------------------------------------------------------------------

    def next_name(self, prefix: str) -> str:
        """A name that no other pod has."""
        self._count += 1
        return f"{prefix}-{self._count:05x}"

    def create(
        self, name: str, owner: OwnerReference, *, labels: dict[str, str], node: str = "", spec: PodSpec | None = None
    ) -> None:
        """Create a pod; without a spec of its own it has the one that all share."""
        meta = Metadata(
            name=name,
            namespace=self.workload.namespace,
            labels=labels,
            annotations=self.annotations,
            owner_references=(owner,),
        )
        asked = self.spec if spec is None else spec
        placed = replace(asked, node_name=node) if node else asked
        start = self.world.queue.moment if node else None
        self.api.create_pod(Pod(metadata=meta, spec=placed, status=PodStatus(phase="Pending", start_time=start)))

    def adopt(self, pod: Pod) -> None:
        """Take over a pod that was there before: its age, its place and how it fares stay as they are."""
        held = pod.metadata
        self.world.store.pods.put(
            with_metadata(
                pod, labels={**held.labels, **self.labels}, annotations={**held.annotations, OWNER: self.controller}
            )
        )


def reference(kind: str, name: str) -> OwnerReference:
    """A reference to the object that controls a pod."""
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return OwnerReference(kind=kind, name=name, api_version=version, controller=True)
