"""A stand-in for kube-scheduler: filters nodes, and scores them by how full they are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from karpool.cluster.arrays import Array
from karpool.cluster.devices.ledger import DeviceLedger
from karpool.controller.cluster_state import ClusterState
from karpool.model.gangs import gang_of
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.packing.kernels.fullness import NOBODY
from karpool.packing.scheduler_choice import favourite
from karpool.virtual.changes import with_condition, with_status
from karpool.virtual.control_plane.device_drivers import DeviceDrivers
from karpool.virtual.control_plane.feasible_nodes import depends_on_no_other_pod, feasible_nodes
from karpool.virtual.world import VirtualWorld

MOST_ALLOCATED = "MostAllocated"
_LATENCY = 0.1


class _Members(NamedTuple):
    """A gang that waits: the keys of its pods, and how many of them need room at once."""

    keys: tuple[str, ...]
    missing: int


class Scheduler:
    def __init__(
        self, world: VirtualWorld, cluster_state: ClusterState, scoring: str, drivers: DeviceDrivers | None = None
    ) -> None:
        """`drivers`: who writes down which devices the claims of pods have."""
        self.world = world
        self.drivers = drivers
        self._ledger: tuple[int, DeviceLedger] | None = None
        self.cluster_state = cluster_state
        self.packs = scoring == MOST_ALLOCATED
        self._pending: dict[str, None] = {}
        self._in_gangs: set[str] = set()
        """The keys of those that wait and are marked as part of a gang."""
        self._unschedulable: set[str] = set()
        self._queued = False
        world.store.pods.watch(self._pod_changed)
        world.store.nodes.watch(self._node_changed)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and not new.bound and new.active:
            (self._in_gangs.discard if gang_of(new) is None else self._in_gangs.add)(new.key)
            if old is None or old.metadata.uid != new.metadata.uid:
                self._pending[new.key] = None
                self._enqueue()
            return
        if old is not None and not old.bound:
            self._pending.pop(old.key, None)
            self._in_gangs.discard(old.key)
            self._unschedulable.discard(old.key)
        if new is None and self._pending:
            self._enqueue()

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if self._pending and new is not None and (old is None or old.spec != new.spec or old.ready != new.ready):
            self._enqueue()

    def _enqueue(self) -> None:
        if not self._queued:
            self._queued = True
            self.world.queue.after(_LATENCY, self._schedule_pending)

    def _schedule_pending(self) -> None:
        self._queued = False
        get = self.world.store.pods.get
        pods = [(key, pod) for key in self._pending if (pod := get(key)) is not None]
        if any(pod.spec.priority for _, pod in pods):
            pods.sort(key=lambda entry: -(entry[1].spec.priority or 0))
        infeasible: set[int] = set()
        together = self._gangs([key for key, _ in pods])
        for key, pod in pods:
            if key in together:
                if key == together[key].keys[0]:
                    self._schedule_gang(together[key])
                continue
            # Pods of one workload share their spec: if none fits one of them, none fits any.
            node = None if id(pod.spec) in infeasible else self._node_for(pod, infeasible)
            if node is not None:
                self._bind(pod, node)
            elif key not in self._unschedulable:
                self._mark_unschedulable(pod)

    def _gangs(self, keys: Sequence[str]) -> dict[str, _Members]:
        """By pod that waits with a gang: the keys of the gang, and how many of them need room at once."""
        if not self._in_gangs:
            return {}
        snapshot = self.cluster_state.snapshot
        pods = snapshot.pods
        # Whether a claim on devices can be fulfilled is known only when those before it are written down.
        rows = [row for key in keys if (row := pods.rows[key]) not in pods.device_rows]
        members = (
            _Members(tuple(pods.get(row).key for row in gang.rows), gang.missing)
            for gang in snapshot.gangs.waiting(pods.objects, rows, pods.on_nodes())
        )
        return {key: gang for gang in members for key in gang.keys}

    def _schedule_gang(self, gang: _Members) -> None:
        """Bind the pods of a gang that find room, if they are enough; none otherwise."""
        snapshot, get = self.cluster_state.snapshot, self.world.store.pods.get
        places: dict[str, str] = {}
        for key in gang.keys:
            node = self.select_node(snapshot.pods.rows[key])
            if node is not None:
                snapshot.move(snapshot.pods.rows[key], node)
                places[key] = node
        for key in places:
            snapshot.restore(snapshot.pods.rows[key])
        if len(places) < gang.missing:
            places.clear()
        for key in gang.keys:
            pod = get(key)
            if pod is not None and key in places:
                self._bind(pod, places[key])
            elif pod is not None and key not in self._unschedulable:
                self._mark_unschedulable(pod)

    def _node_for(self, pod: Pod, infeasible: set[int]) -> str | None:
        row = self.cluster_state.snapshot.pods.rows[pod.key]
        node = self.select_node(row)
        if node is None and depends_on_no_other_pod(self.cluster_state.snapshot, row):
            infeasible.add(id(pod.spec))
        return node

    def select_node(self, pod: int) -> str | None:
        """The feasible node with the best score for the pod of a row, the first by name if several have it."""
        snapshot = self.cluster_state.snapshot
        usable = self.cluster_state.open
        if pod in snapshot.pods.device_rows:
            usable = self._with_devices(pod, usable)
        nodes, mask = snapshot.nodes, feasible_nodes(snapshot, pod, usable)
        row = favourite(snapshot, pod, mask, self.cluster_state.avoided, packs=self.packs)
        return None if row == NOBODY else nodes.get(row).name

    def _with_devices(self, pod: int, usable: Array) -> Array:
        """The nodes of a mask on which the claims of a pod can be fulfilled."""
        ledger, mask = self._devices(), np.zeros_like(usable)
        rows = ledger.nodes_for(pod, np.flatnonzero(usable).tolist())
        mask[rows] = usable[rows]
        return mask

    def _devices(self) -> DeviceLedger:
        snapshot = self.cluster_state.snapshot
        if self._ledger is None or self._ledger[0] != snapshot.version or self._ledger[1].snapshot is not snapshot:
            self._ledger = (snapshot.version, DeviceLedger.of(snapshot, None))
        return self._ledger[1]

    def _bind(self, pod: Pod, node: str) -> None:
        now = self.world.queue.moment
        snapshot = self.cluster_state.snapshot
        row = snapshot.pods.rows[pod.key]
        if self.drivers is not None and row in snapshot.pods.device_rows:
            ledger = self._devices()
            pod = self.drivers.reserve(pod, node, ledger, ledger.grants(row, snapshot.nodes.rows[node]))
        scheduled = with_status(with_condition(pod, "PodScheduled", "True", now), start_time=now)
        self.world.store.pods.put(replace(scheduled, spec=replace(pod.spec, node_name=node)))

    def _mark_unschedulable(self, pod: Pod) -> None:
        self._unschedulable.add(pod.key)
        now = self.world.queue.moment
        self.world.store.pods.put(with_condition(pod, "PodScheduled", "False", now, reason="Unschedulable"))
