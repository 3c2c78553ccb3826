"""Drives a virtual cluster with what a recorded one asked for."""

from typing import Any, Final

from msgspec.structs import replace

from karpool.kube.store import Store
from karpool.model import labels as names
from karpool.model.nodepool import NodePool
from karpool.model.pod import Pod
from karpool.model.workloads import DaemonSet
from karpool.virtual.control_plane.api import Api
from karpool.virtual.control_plane.controller_manager import CONTROLLERS, ControllerManager
from karpool.virtual.control_plane.daemonset_controller import DaemonSetController
from karpool.virtual.event_queue import FINEST
from karpool.virtual.initial_cluster import Group, workload_like
from karpool.virtual.replays.demand import Appearance, Demand, Event, ObjectGone, ObjectPut, Rollout, Scale, Task
from karpool.virtual.replays.tasks import TaskController
from karpool.virtual.scenario import Policy, patched
from karpool.virtual.world import VirtualWorld
from karpool.wire.objects import Object

_STORES: Final = {
    "PodDisruptionBudget": "pdbs",
    "PersistentVolumeClaim": "volume_claims",
    "PersistentVolume": "volumes",
    "StorageClass": "storage_classes",
    "Namespace": "namespaces",
    "CapacityBuffer": "buffers",
}
_OWN: Final = (names.NODEPOOL_HASH, names.NODEPOOL_HASH_VERSION, names.DISRUPTIONS, names.HARM)
"""Annotations of a pool that the simulated controller writes."""


class Replay:
    """Carries out the events of a demand, each at its time."""

    def __init__(
        self, world: VirtualWorld, api: Api, manager: ControllerManager, demand: Demand, policy: Policy
    ) -> None:
        self.world = world
        self.api = api
        self.manager = manager
        self.policy = policy
        self.tasks = TaskController(world, api)
        self._events = demand.events
        self._next = 0
        manager.add(self.tasks)

    def load(self, demand: Demand) -> None:
        """Take over the tasks that are there at the beginning."""
        for pod in demand.pods:
            self.tasks.adopt_task(demand.running[pod.key], pod, self.world.store)

    def start(self) -> None:
        """Carry out what is due, and come back for the rest."""
        while self._next < len(self._events) and self._due() <= self.world.queue.time:
            _, event = self._events[self._next]
            self._next += 1
            self._happen(event)
        if self._next < len(self._events):
            self.world.queue.at(self._due(), self.start)

    def _due(self) -> float:
        """When the next event is as the clock counts, which rounds; else it might never be quite as late as that."""
        return round(self._events[self._next][0], FINEST)

    def _happen(self, event: Event) -> None:
        match event:
            case Scale():
                controller = self.manager.named(*event.group)
                if controller is not None:
                    controller.scale(event.replicas)
            case Appearance() | Rollout():
                self._appear(event.group, event.template)
            case Task():
                self.tasks.begin(event)
            case ObjectPut():
                self._put(event.kind, event.object)
            case ObjectGone():
                self._remove(event.kind, event.key)

    def _appear(self, group: Group, template: Pod) -> None:
        """A new workload, or other pods for one that is there."""
        written = template.spec if group[1] == "DaemonSet" else None
        workload, controller = workload_like(template, group, written=written), self.manager.named(*group)
        if controller is not None:
            controller.become(workload)
            return
        controller = CONTROLLERS[workload.kind](self.world, self.api, workload)
        self.manager.add(controller)
        controller.start()

    # -- objects -------------------------------------------------------------------------------------------------

    def _put(self, kind: str, obj: Object) -> None:
        if isinstance(obj, NodePool):
            self._put_pool(obj)
        elif isinstance(obj, DaemonSet):
            template = Pod(metadata=obj.spec.template.metadata, spec=obj.spec.template.spec)
            self._appear((obj.metadata.namespace, "DaemonSet", obj.name), template)
        else:
            self._store(kind).put(obj)
            self._budgets_changed(kind)

    def _put_pool(self, pool: NodePool) -> None:
        """The pool as people have it, with the changes of the policy, and what the controller keeps on it."""
        (changed,) = patched((pool,), self.policy)
        there = self.world.store.pools.get(pool.name)
        if there is not None:
            own = {key: value for key, value in there.metadata.annotations.items() if key in _OWN}
            meta = replace(there.metadata, labels=changed.metadata.labels)
            changed = replace(
                changed,
                metadata=replace(meta, annotations={**changed.metadata.annotations, **own}),
                status=there.status,
            )
        self.world.store.pools.put(changed)

    def _remove(self, kind: str, key: str) -> None:
        if kind == "NodePool":
            self.world.store.pools.remove(key)
        elif kind == "DaemonSet":
            namespace, _, name = key.partition("/")
            controller = self.manager.named(namespace, kind, name)
            if isinstance(controller, DaemonSetController):
                controller.retire()
        else:
            self._store(kind).remove(key)
            self._budgets_changed(kind)

    def _store(self, kind: str) -> Store[Any]:
        store: Store[Any] = getattr(self.world.store, _STORES[kind])
        return store

    def _budgets_changed(self, kind: str) -> None:
        if kind == "PodDisruptionBudget":
            self.api.pdb_controller.reread()
