"""Tasks of a recording: pods of Jobs, and pods that stand alone. Each runs as long as it really ran.

A task whose pod is evicted begins again from its start, as a Job's does.
"""

from functools import partial
from typing import Final

from msgspec.structs import replace

from karpool.controller.store import ClusterStore
from karpool.model.pod import Pod, PodStatus
from karpool.virtual.changes import with_annotation, with_condition, with_metadata, with_status
from karpool.virtual.control_plane.api import Api, get_by_uid
from karpool.virtual.control_plane.workload_controller import OWNER, WorkloadController, ready
from karpool.virtual.initial_cluster import placed_pod
from karpool.virtual.replays.demand import Task
from karpool.virtual.scenario import ScenarioWorkload
from karpool.virtual.world import VirtualWorld
from karpool.wire.objects import condition

_NAME: Final = "recorded-tasks"


class TaskController(WorkloadController):
    """Keeps the pods of tasks until they are done."""

    def __init__(self, world: VirtualWorld, api: Api) -> None:
        super().__init__(world, api, ScenarioWorkload(name=_NAME, replicas=0))
        self._tasks: dict[str, Task] = {}
        self._missing: list[Task] = []

    def begin(self, task: Task) -> None:
        self._create(task)
        if task.ends is not None:
            self.world.queue.at(task.ends, partial(self._end, task))

    def adopt_task(self, task: Task, pod: Pod, store: ClusterStore) -> None:
        """A task that was there at the beginning goes on where it is."""
        there = placed_pod(pod, store, self.world.queue.moment)
        if there is None:
            return
        self._tasks[pod.key] = task
        self.world.store.pods.put(with_annotation(there, OWNER, self.key))
        said = condition(pod.status.conditions, "Ready")
        if task.length is not None and ready(pod) and said is not None and said.last_transition_time is not None:
            ran = (self.world.queue.moment - said.last_transition_time).total_seconds()
            uid = there.metadata.uid
            self.world.queue.after(max(0.0, task.length - ran), partial(self._complete, pod.key, uid))
        if task.ends is not None:
            self.world.queue.at(task.ends, partial(self._end, task))

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new if new is not None else old
        task = None if pod is None else self._tasks.get(pod.key)
        if task is None or pod is None:
            return
        super().pod_changed(old, new)
        if new is None:
            del self._tasks[pod.key]
            self._missing.append(task)
        elif task.length is not None and ready(new) and (old is None or not ready(old)):
            self.world.queue.after(task.length, partial(self._complete, new.key, new.metadata.uid))

    def reconcile(self) -> None:
        """Create again what was evicted."""
        missing, self._missing = self._missing, []
        for task in missing:
            self._create(task)

    def _create(self, task: Task) -> None:
        meta = task.template.metadata
        name = task.name
        while f"{meta.namespace}/{name}" in self.world.store.pods:
            name = self.next_name(task.name)
        self._tasks[f"{meta.namespace}/{name}"] = task
        labelled = with_metadata(
            task.template, name=name, annotations={**meta.annotations, OWNER: self.key}, labels=meta.labels
        )
        self.api.create_pod(replace(labelled, status=PodStatus(phase="Pending")))

    def _complete(self, key: str, uid: str) -> None:
        """The work is done; the pod goes, as Jobs are cleaned up."""
        pod = get_by_uid(self.world.store.pods, key, uid)
        if pod is None or not pod.active or key not in self._tasks:
            return
        del self._tasks[key]
        self.pods.pop(key, None)
        ended = with_condition(pod, "Ready", "False", self.world.queue.moment)
        self.world.store.pods.put(with_status(ended, phase="Succeeded"))
        self.world.queue.after(1.0, partial(self.api.delete_pod, key))

    def _end(self, task: Task) -> None:
        """Somebody deleted the pod, wherever it is now."""
        self._missing = [entry for entry in self._missing if entry is not task]
        for key in [key for key, entry in self._tasks.items() if entry is task]:
            del self._tasks[key]
            self.pods.pop(key, None)
            self.api.delete_pod(key)
