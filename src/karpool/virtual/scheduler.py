"""A stand-in for kube-scheduler: pods get the node that suits them best by how full it is."""

import numpy as np
from msgspec.structs import replace

from karpool.cluster.resources import CPU, MEMORY
from karpool.controller.cluster_state import ClusterState
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.packing.kernels.fullness import NOBODY, best
from karpool.virtual.changes import pod_fares, set_condition
from karpool.virtual.fitting import fitting, has_plain_rules
from karpool.virtual.world import VirtualWorld

MOST_ALLOCATED = "MostAllocated"
_LATENCY = 0.1
_SCORED = np.array([CPU, MEMORY])
"""The columns of resources that nodes are scored by."""


class Scheduler:
    """Binds waiting pods whenever something changed that may help them."""

    def __init__(self, world: VirtualWorld, cluster_state: ClusterState, scoring: str) -> None:
        self.world = world
        self.cluster_state = cluster_state
        self.packs = scoring == MOST_ALLOCATED
        self._waiting: dict[str, None] = {}
        self._told: set[str] = set()
        self._due = False
        world.store.pods.watch(self._pod)
        world.store.nodes.watch(self._node)

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and not new.bound and new.active:
            if old is None or old.metadata.uid != new.metadata.uid:
                self._waiting[new.key] = None
                self._wake()
            return
        if old is not None and not old.bound:
            self._waiting.pop(old.key, None)
            self._told.discard(old.key)
        if new is None and self._waiting:
            self._wake()

    def _node(self, old: Node | None, new: Node | None) -> None:
        if self._waiting and new is not None and (old is None or old.spec != new.spec or old.ready != new.ready):
            self._wake()

    def _wake(self) -> None:
        if not self._due:
            self._due = True
            self.world.queue.after(_LATENCY, self._round)

    def _round(self) -> None:
        self._due = False
        pods = [pod for key in self._waiting if (pod := self.world.store.pods.get(key)) is not None]
        pods.sort(key=lambda pod: -(pod.spec.priority or 0))
        hopeless: set[int] = set()
        for pod in pods:
            # Pods of one owner share their spec: what keeps one of them out keeps out all.
            if id(pod.spec) not in hopeless:
                self._place(pod, hopeless)
            elif pod.key not in self._told:
                self._give_up(pod)

    def _place(self, pod: Pod, hopeless: set[int]) -> None:
        row = self.cluster_state.snapshot.pods.rows[pod.key]
        node = self.choose(row)
        if node is not None:
            self._bind(pod, node)
            return
        if has_plain_rules(self.cluster_state.snapshot, row):
            hopeless.add(id(pod.spec))
        if pod.key not in self._told:
            self._give_up(pod)

    def choose(self, pod: int) -> str | None:
        """The best node for the pod of a row of the snapshot; of equals the first by name."""
        snapshot = self.cluster_state.snapshot
        nodes, mask = snapshot.nodes, fitting(snapshot, pod, self.cluster_state.open)
        row = best(nodes.order, mask, nodes.taken, nodes.room, _SCORED, self.packs)
        return None if row == NOBODY else nodes.get(row).name

    def _bind(self, pod: Pod, node: str) -> None:
        now = self.world.queue.moment
        conditions = set_condition(pod.status.conditions, "PodScheduled", "True", now)
        status = replace(pod.status, conditions=conditions, start_time=now)
        self.world.store.pods.put(replace(pod, spec=replace(pod.spec, node_name=node), status=status))

    def _give_up(self, pod: Pod) -> None:
        self._told.add(pod.key)
        conditions = set_condition(
            pod.status.conditions, "PodScheduled", "False", self.world.queue.moment, reason="Unschedulable"
        )
        self.world.store.pods.put(pod_fares(pod, conditions=conditions))
