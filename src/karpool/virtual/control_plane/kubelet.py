"""Kubelets: pods start and stop, and nodes become ready, each after a delay."""

from collections.abc import Callable
from functools import partial

from karpool.controller.cluster_state import ClusterState
from karpool.model.labels import NODEPOOL, REGISTERED
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.provisioning.instances import NOT_READY
from karpool.virtual.changes import with_condition, with_status, with_taints
from karpool.virtual.control_plane.api import get_by_uid
from karpool.virtual.curves import seconds
from karpool.virtual.scenario import ScenarioWorkload
from karpool.virtual.world import VirtualWorld


class Kubelets:
    """The kubelets of all nodes; `workload_of` finds the workload of a pod, which may have timings of its own.

    `pods_on` are the pods bound to a node, by its name.
    """

    def __init__(
        self,
        world: VirtualWorld,
        cluster_state: ClusterState,
        workload_of: Callable[[Pod], ScenarioWorkload | None],
        pods_on: Callable[[str], list[Pod]],
    ) -> None:
        self.world = world
        self.cluster_state = cluster_state
        self._workload_of = workload_of
        self._pods_on = pods_on
        world.store.pods.watch(self._pod_changed)
        world.store.nodes.watch(self._node_changed)

    # -- pods ----------------------------------------------------------------------------------------------------

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or not new.bound or new.terminal:
            return
        meta = new.metadata
        if meta.deletion_timestamp is not None:
            if old is None or old.metadata.deletion_timestamp != meta.deletion_timestamp:
                self._stop(new)
        elif new.status.phase != "Running" and (old is None or not old.bound):
            workload = self._workload_of(new)
            length = (workload and workload.start_time) or self.world.timings.pod_start
            delay = self.world.jittered(length, "start", new.key)
            self.world.queue.after(delay, partial(self._pod_ready, new.key, meta.uid))

    def _pod_ready(self, key: str, uid: str) -> None:
        pod = get_by_uid(self.world.store.pods, key, uid)
        if pod is None or not pod.active:
            return
        ready = with_condition(pod, "Ready", "True", self.world.queue.moment)
        self.world.store.pods.put(with_status(ready, phase="Running"))
        workload = self._workload_of(pod)
        if workload is not None and workload.kind == "Job":
            delay = self.world.jittered(workload.runs, "run", key)
            self.world.queue.after(delay, partial(self._complete, key, uid))

    def _complete(self, key: str, uid: str) -> None:
        pod = get_by_uid(self.world.store.pods, key, uid)
        if pod is not None and pod.active:
            ended = with_condition(pod, "Ready", "False", self.world.queue.moment)
            self.world.store.pods.put(with_status(ended, phase="Succeeded"))

    def _stop(self, pod: Pod) -> None:
        ends = pod.metadata.deletion_timestamp
        if ends is None:
            return
        grace = max(0.0, (ends - self.world.queue.moment).total_seconds())
        workload = self._workload_of(pod)
        length = (workload and workload.stop_time) or self.world.timings.pod_stop
        delay = min(grace, self.world.jittered(length, "stop", pod.key))
        self.world.queue.after(delay, partial(self._remove, pod.key, pod.metadata.uid))

    def _remove(self, key: str, uid: str) -> None:
        if get_by_uid(self.world.store.pods, key, uid) is not None:
            self.world.store.pods.remove(key)

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None:
                self.world.queue.after(0.0, partial(self._collect_garbage, old.name))
        elif old is None:
            if not new.ready:
                delay = self.world.jittered(self.world.timings.readiness, "ready", new.name)
                self.world.queue.after(delay, partial(self._node_ready, new.name))
        elif new.ready and new.metadata.labels.get(REGISTERED) == "true" and self._has_startup_taints(new):
            self.world.queue.after(seconds(self.world.timings.reaction), partial(self._remove_startup_taints, new.name))

    def _collect_garbage(self, name: str) -> None:
        if name in self.world.store.nodes:
            return
        for pod in self._pods_on(name):
            self.world.store.pods.remove(pod.key)

    def _node_ready(self, name: str) -> None:
        node = self.world.store.nodes.get(name)
        if node is not None:
            ready = with_condition(node, "Ready", "True", self.world.queue.moment)
            taints = tuple(taint for taint in ready.spec.taints if taint.key != NOT_READY)
            self.world.store.nodes.put(with_taints(ready, taints))

    def _has_startup_taints(self, node: Node) -> bool:
        claim = self.cluster_state.claim_of(node) if NODEPOOL in node.metadata.labels else None
        return claim is not None and any(taint in node.spec.taints for taint in claim.spec.startup_taints)

    def _remove_startup_taints(self, name: str) -> None:
        node = self.world.store.nodes.get(name)
        claim = None if node is None else self.cluster_state.claim_of(node)
        if node is not None and claim is not None:
            taints = tuple(t for t in node.spec.taints if t not in claim.spec.startup_taints)
            self.world.store.nodes.put(with_taints(node, taints))
