"""Kubelets: pods start and stop after a while, nodes become ready after a while."""

from collections import defaultdict
from collections.abc import Callable
from functools import partial

from karpool.controller.cluster_state import ClusterState
from karpool.model.labels import NODEPOOL, REGISTERED
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.provisioning.machines import NOT_READY
from karpool.virtual.changes import pod_fares, set_condition, with_node_condition, with_taints
from karpool.virtual.curves import seconds
from karpool.virtual.world import VirtualWorld
from karpool.wire.duration import Duration

Durations = Callable[[Pod], Duration | None]


class Kubelets:
    """All kubelets at once; `start_time`, `stop_time` and `run_time` know what is particular about a pod."""

    def __init__(
        self,
        world: VirtualWorld,
        cluster_state: ClusterState,
        *,
        start_time: Durations,
        stop_time: Durations,
        run_time: Durations,
    ) -> None:
        self.world = world
        self.cluster_state = cluster_state
        self._start_time = start_time
        self._stop_time = stop_time
        self._run_time = run_time
        self._arrivals: dict[str, int] = {}
        self._on: dict[str, set[str]] = defaultdict(set)
        world.store.pods.watch(self._pod)
        world.store.nodes.watch(self._node)

    # -- pods ----------------------------------------------------------------------------------------------------

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        self._note_place(old, new)
        if new is None or not new.bound or new.terminal:
            return
        meta = new.metadata
        if meta.deletion_timestamp is not None:
            if old is None or old.metadata.deletion_timestamp != meta.deletion_timestamp:
                self._stop(new)
        elif new.status.phase != "Running" and (old is None or not old.bound):
            wait = self._start_time(new) or self.world.timings.pod_start
            delay = self.world.strayed(wait, "start", new.key)
            self.world.queue.after(delay, partial(self._ready, new.key, meta.uid))

    def _note_place(self, old: Pod | None, new: Pod | None) -> None:
        """Know which pods are on a node, and in which order pods came."""
        if old is None and new is not None:
            self._arrivals[new.key] = self.world.store.version
        elif new is None and old is not None:
            del self._arrivals[old.key]
        left, entered = "" if old is None else old.spec.node_name, "" if new is None else new.spec.node_name
        if left != entered:
            if old is not None and left:
                self._on[left].discard(old.key)
            if new is not None and entered:
                self._on[entered].add(new.key)

    def _held(self, key: str, uid: str) -> Pod | None:
        pod = self.world.store.pods.get(key)
        return pod if pod is not None and pod.metadata.uid == uid else None

    def _ready(self, key: str, uid: str) -> None:
        pod = self._held(key, uid)
        if pod is None or not pod.active:
            return
        conditions = set_condition(pod.status.conditions, "Ready", "True", self.world.queue.moment)
        self.world.store.pods.put(pod_fares(pod, phase="Running", conditions=conditions))
        length = self._run_time(pod)
        if length is not None:
            self.world.queue.after(self.world.strayed(length, "run", key), partial(self._finish, key, uid))

    def _finish(self, key: str, uid: str) -> None:
        pod = self._held(key, uid)
        if pod is not None and pod.active:
            conditions = set_condition(pod.status.conditions, "Ready", "False", self.world.queue.moment)
            self.world.store.pods.put(pod_fares(pod, phase="Succeeded", conditions=conditions))

    def _stop(self, pod: Pod) -> None:
        ends = pod.metadata.deletion_timestamp
        if ends is None:
            return
        grace = max(0.0, (ends - self.world.queue.moment).total_seconds())
        wait = self._stop_time(pod) or self.world.timings.pod_stop
        delay = min(grace, self.world.strayed(wait, "stop", pod.key))
        self.world.queue.after(delay, partial(self._gone, pod.key, pod.metadata.uid))

    def _gone(self, key: str, uid: str) -> None:
        if self._held(key, uid) is not None:
            self.world.store.pods.remove(key)

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None:
                self.world.queue.after(0.0, partial(self._collect, old.name))
        elif old is None:
            if not new.ready:
                delay = self.world.strayed(self.world.timings.readiness, "ready", new.name)
                self.world.queue.after(delay, partial(self._node_ready, new.name))
        elif new.ready and new.metadata.labels.get(REGISTERED) == "true" and self._startup_taints(new):
            self.world.queue.after(seconds(self.world.timings.reaction), partial(self._started, new.name))

    def _collect(self, name: str) -> None:
        """Pods of a node that is gone go too."""
        if name in self.world.store.nodes:
            return
        for key in sorted(self._on[name], key=self._arrivals.__getitem__):
            self.world.store.pods.remove(key)
        del self._on[name]

    def _node_ready(self, name: str) -> None:
        node = self.world.store.nodes.get(name)
        if node is not None:
            ready = with_node_condition(node, "Ready", "True", self.world.queue.moment)
            taints = tuple(taint for taint in ready.spec.taints if taint.key != NOT_READY)
            self.world.store.nodes.put(with_taints(ready, taints))

    def _startup_taints(self, node: Node) -> bool:
        claim = self.cluster_state.claim_of(node) if NODEPOOL in node.metadata.labels else None
        return claim is not None and any(taint in node.spec.taints for taint in claim.spec.startup_taints)

    def _started(self, name: str) -> None:
        """Whatever had to be set up on a node is set up, and takes its taint away."""
        node = self.world.store.nodes.get(name)
        claim = None if node is None else self.cluster_state.claim_of(node)
        if node is not None and claim is not None:
            taints = tuple(t for t in node.spec.taints if t not in claim.spec.startup_taints)
            self.world.store.nodes.put(with_taints(node, taints))
