"""Faults of the cluster itself: zones, machines and containers that fail."""

import random
from collections import Counter
from functools import partial
from typing import Final

from tests.robustness import fault_plan as faults
from tests.robustness.recorder import HistoryRecorder

from karpool.model.pod import ContainerState, ContainerStatus, Pod, Waiting
from karpool.virtual.changes import with_condition, with_status

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
APP_LABEL: Final = "app.kubernetes.io/name"
WARNING: Final = 60.0
_CRASHED: Final = ContainerStatus(state=ContainerState(waiting=Waiting(reason="CrashLoopBackOff")))


class ClusterFaults:
    """What happens to nodes and pods, whoever controls them."""

    def __init__(self, recorder: HistoryRecorder, rng: random.Random) -> None:
        self._recorder = recorder
        self._cluster = recorder.cluster
        self._queue = recorder.queue
        self._rng = rng
        self._crashing: dict[str, int] = {}
        """Workloads whose new pods crash, and how many faults make them."""
        self._cluster.store.pods.watch(self._pod_changed)

    # -- zones -----------------------------------------------------------------------------------------------------

    def lose_zone(self, seconds: float) -> None:
        """No node of a zone answers for a while, and their pods count as not ready."""
        store = self._cluster.store
        zones = sorted(node.metadata.labels.get(ZONE_LABEL, "") for node in store.nodes)
        if not zones:
            return
        zone = self._rng.choice(zones)
        self._recorder.fault(faults.ZONE, zone, seconds)
        lost = [node.name for node in store.nodes if node.metadata.labels.get(ZONE_LABEL) == zone and node.ready]
        for name in lost:
            self._ready(name, "Unknown", "False")
            self._queue.after(seconds, partial(self._ready, name, "True", "True"))

    def _ready(self, name: str, node_status: str, pod_status: str) -> None:
        store, now = self._cluster.store, self._queue.moment
        node = store.nodes.get(name)
        if node is None or name not in self._cluster.cloud.instances:
            return
        store.nodes.put(with_condition(node, "Ready", node_status, now))
        for pod in store.pods:
            if pod.spec.node_name == name and pod.status.phase == "Running" and not pod.status.container_statuses:
                store.pods.put(with_condition(pod, "Ready", pod_status, now))

    # -- machines --------------------------------------------------------------------------------------------------

    def run_short(self, seconds: float) -> None:
        """The scenario itself has the shortage."""
        self._recorder.fault(faults.SHORTAGE, seconds=seconds)

    def interrupt(self) -> None:
        """The cloud takes an instance back after a short warning."""
        cloud = self._cluster.cloud
        names = sorted(name for name in cloud.instances if name in self._cluster.store.nodes)
        if names:
            name = self._rng.choice(names)
            self._recorder.fault(faults.INTERRUPTED, name)
            cloud._interrupt(name, cloud.instances[name], WARNING)

    # -- containers ------------------------------------------------------------------------------------------------

    def crash(self, seconds: float) -> None:
        """Pods of a workload that start from now on crash again and again; those that run go on."""
        apps = sorted(_app(pod) for pod in self._cluster.store.pods if pod.active and not pod.is_daemon and _app(pod))
        if apps:
            app, _ = Counter(apps).most_common(1)[0]
            self._recorder.fault(faults.CRASHES, app, seconds)
            self._crashing[app] = self._crashing.get(app, 0) + 1
            self._queue.after(seconds, partial(self._mend, app))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or _app(new) not in self._crashing or new.status.container_statuses or not new.active:
            return
        starts = new.status.phase == "Running" and (old is None or old.status.phase != "Running")
        if starts:
            self._queue.after(0.0, partial(self._crash, new.key, new.metadata.uid))

    def _crash(self, key: str, uid: str) -> None:
        pod = self._cluster.store.pods.get(key)
        if pod is not None and pod.metadata.uid == uid and pod.active and _app(pod) in self._crashing:
            down = with_condition(pod, "Ready", "False", self._queue.moment)
            self._cluster.store.pods.put(with_status(down, container_statuses=(_CRASHED,)))

    def _mend(self, app: str) -> None:
        self._crashing[app] -= 1
        if self._crashing[app]:
            return
        del self._crashing[app]
        store = self._cluster.store
        for pod in [pod for pod in store.pods if _app(pod) == app and pod.status.container_statuses]:
            up = with_condition(pod, "Ready", "True", self._queue.moment) if pod.active else pod
            store.pods.put(with_status(up, container_statuses=()))


def _app(pod: Pod) -> str:
    return pod.metadata.labels.get(APP_LABEL, "")
