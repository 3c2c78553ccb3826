"""The history of a virtual cluster as a recording, as `karpool record` would have written it."""

from pathlib import Path
from typing import Final, Self

from karpool.catalog.pricing import node_price
from karpool.execution.actions import Action, DeletePod
from karpool.model.pod import Pod
from karpool.recording.observer import Observer
from karpool.recording.prices import prices_of
from karpool.recording.records import LeaveCause
from karpool.recording.watching import record_store
from karpool.recording.writer import RecordingWriter
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.control_plane.pdb_controller import EvictionStatus
from karpool.virtual.curves import seconds
from karpool.virtual.replays.recorded_policy import settings_of_policy
from karpool.wire.problems import InputError

_EVERY: Final = 300.0


class RecordedCluster:
    """Records a cluster from the end of its warm-up until it is closed."""

    def __init__(self, cluster: VirtualCluster, path: Path) -> None:
        if path.exists():
            raise InputError.at(str(path), "is there already; name a new file")
        self._cluster = cluster
        begin = seconds(cluster.scenario.warm_up)
        self._writer = RecordingWriter(path, cluster.queue.moment_at(begin), source="simulation")
        self._observer = Observer(self._writer.history, self._writer.write)
        cluster.queue.at(begin, self._begin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._writer:
            self._look()

    def _begin(self) -> None:
        for controller in self._cluster.controller_manager.controllers:
            controller.show()
        record_store(self._cluster.store, self._observer, lambda: self._cluster.now)
        settings = settings_of_policy(self._cluster.policy, self._cluster.scenario)
        self._observer.consolidated(settings, self._cluster.now)
        self._cluster.api.on_eviction.append(self._eviction)
        self._cluster.actuator.observers.append(self._action)
        self._every()

    def _every(self) -> None:
        self._look()
        self._cluster.queue.after(_EVERY, self._every)

    def _look(self) -> None:
        now = self._cluster.now
        catalog = self._cluster.cloud.catalog
        self._observer.priced(prices_of(self._cluster.store.nodes, lambda labels: node_price(catalog, labels)), now)
        self._observer.alive(now)

    def _eviction(self, pod: Pod, status: EvictionStatus) -> None:
        if status is EvictionStatus.CREATED:
            self._observer.evicted(pod.key, self._cluster.now)

    def _action(self, action: Action) -> None:
        """A pod that the controller deletes was given all the time that there was."""
        if isinstance(action, DeletePod):
            self._observer.evicted(action.key, self._cluster.now, LeaveCause.FORCED)
