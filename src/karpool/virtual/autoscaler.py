"""A stand-in for Cluster Autoscaler: node groups grow for pending pods and shrink when under-used.

It removes a node whose pods request less than half of its cpu and memory for ten minutes and fit elsewhere. Such nodes
are drained one at a time; empty ones, cordoned or not, are removed in any number.
"""

from functools import partial

import numpy as np
from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.catalog.pricing import launchable
from karpool.cluster.nodes import StateNode
from karpool.cluster.resources import CPU, MEMORY
from karpool.controller.cluster_state import ClusterState
from karpool.disruption.candidates.pods import evictable
from karpool.model import autoscaler_rules as rules
from karpool.model import labels as names
from karpool.model.node import Node
from karpool.model.pod import Pod
from karpool.model.requirements import Requirements, one_of
from karpool.virtual.cloud import VirtualCloud, node_of
from karpool.virtual.control_plane.feasible_nodes import feasible_nodes
from karpool.virtual.curves import seconds
from karpool.virtual.scenario import GROUP, AutoscalerSettings, ScenarioError, ScenarioNodeGroup
from karpool.virtual.world import VirtualWorld


class Autoscaler:
    def __init__(
        self,
        world: VirtualWorld,
        cluster_state: ClusterState,
        cloud: VirtualCloud,
        groups: tuple[ScenarioNodeGroup, ...],
        settings: AutoscalerSettings,
    ) -> None:
        self.world = world
        self.cluster_state = cluster_state
        self.cloud = cloud
        self.groups = groups
        self.settings = settings
        self._offers = {group.name: _offers(group, cloud.catalog) for group in groups}
        self._starting: dict[str, int] = dict.fromkeys(self._offers, 0)
        self._count: dict[str, int] = dict.fromkeys(self._offers, 0)
        self._unneeded: dict[str, float] = {}
        self._draining: dict[str, None] = {}
        self._last_addition = -np.inf

    def start(self) -> None:
        """Bring every group to its size at once, as far as a real cluster has not, then start to scan."""
        for group in self.groups:
            for _ in range(max(group.size, group.least) - len(self.members(group))):
                self._register(group, self._next_name(group))
        self._scan()

    def _scan(self) -> None:
        self._remove_drained()
        self._scale_up()
        self._scale_down()
        self.world.queue.after(seconds(self.settings.scan_interval), self._scan)

    def members(self, group: ScenarioNodeGroup) -> list[Node]:
        return [node for node in self.world.store.nodes if node.metadata.labels.get(GROUP) == group.name]

    # -- scale-up --------------------------------------------------------------------------------------------------

    def _scale_up(self) -> None:
        """Add nodes to the first group that could hold a pending pod, enough for all that it could hold."""
        pending = [pod for pod in self.world.store.pods if pod.provisionable and pod.active]
        starting = sum(self._starting.values())
        for group in self.groups:
            fitting_pods = [pod for pod in pending if self._would_fit(group, pod)]
            missing = self._nodes_for(group, fitting_pods) - starting
            room = group.most - len(self.members(group)) - self._starting[group.name]
            for _ in range(max(0, min(missing, room))):
                self._starting[group.name] += 1
                self._last_addition = self.world.queue.time
                name = self._next_name(group)
                launch = self.world.jittered(self.world.timings.launch, "launch", name)
                registration = self.world.jittered(self.world.timings.registration, "registration", name)
                self.world.queue.after(launch + registration, partial(self._started, group, name))
            pending = [pod for pod in pending if pod not in fitting_pods]

    def _would_fit(self, group: ScenarioNodeGroup, pod: Pod) -> bool:
        """Whether an empty node of the group could hold the pod: labels, taints and room, not other pods."""
        if not self._offers[group.name]:
            return False
        snapshot = self.cluster_state.snapshot
        rows = [snapshot.nodes.rows[node.name] for node in self.members(group) if node.name in snapshot.nodes.rows]
        number = int(snapshot.pods.class_of[snapshot.pods.rows[pod.key]])
        suits = snapshot.shapes.suits[snapshot.classes.signature[number], snapshot.nodes.shape[rows]]
        entry, _ = self._offers[group.name][0]
        requests, room = snapshot.classes.requests[number], snapshot.resources.room(entry.allocatable)
        return bool((not rows or suits.any()) and (requests[: len(room)] <= room).all())

    def _nodes_for(self, group: ScenarioNodeGroup, pods: list[Pod]) -> int:
        """How many empty nodes hold these pods, by their sum."""
        if not pods:
            return 0
        snapshot = self.cluster_state.snapshot
        rows = [snapshot.pods.class_of[snapshot.pods.rows[pod.key]] for pod in pods]
        entry, _ = self._offers[group.name][0]
        room = snapshot.resources.room(entry.allocatable)
        requests = snapshot.classes.requests[rows, : len(room)].sum(axis=0)
        return int(np.max(np.ceil(requests[room > 0] / room[room > 0])))

    def _next_name(self, group: ScenarioNodeGroup) -> str:
        self._count[group.name] += 1
        return f"{group.name}-{self._count[group.name]:04d}"

    def _started(self, group: ScenarioNodeGroup, name: str) -> None:
        self._starting[group.name] -= 1
        self._register(group, name)

    def _register(self, group: ScenarioNodeGroup, name: str) -> None:
        offers = self._offers[group.name]
        entry, offering = offers[self._count[group.name] % len(offers)]
        instance = self.cloud.start(name, entry, offering)
        labels = {**group.labels, GROUP: group.name, names.HOSTNAME: name}
        self.cloud.api.create_node(node_of(instance, labels, group.taints))

    # -- scale-down ------------------------------------------------------------------------------------------------

    def _scale_down(self) -> None:
        now = self.world.queue.time
        removable = {group.name: len(self.members(group)) - group.least for group in self.groups}
        waited = now - self._last_addition >= seconds(self.settings.scale_down_delay_after_add)
        for state in self._ready_nodes():
            name = state.name
            if name in self._draining or _disabled(state) or not self._underused(state):
                self._unneeded.pop(name, None)
                continue
            since = self._unneeded.setdefault(name, now)
            group = state.labels[GROUP]
            if waited and removable[group] > 0 and now - since >= seconds(self.settings.scale_down_unneeded_time):
                removable[group] -= self._drain(state)

    def _ready_nodes(self) -> list[StateNode]:
        nodes = self.cluster_state.snapshot.nodes
        states = [nodes.get(row) for _, row in sorted(nodes.rows.items())]
        known = {group.name for group in self.groups}
        grouped = [state for state in states if state.labels.get(GROUP) in known]
        return [state for state in grouped if state.node is not None and state.node.ready]

    def _underused(self, state: StateNode) -> bool:
        nodes = self.cluster_state.snapshot.nodes
        row = nodes.rows[state.name]
        used = (nodes.taken[row] - nodes.daemon_taken[row])[[CPU, MEMORY]] / nodes.room[row][[CPU, MEMORY]]
        return bool(used.max() < self.settings.scale_down_utilization_threshold)

    def _drain(self, state: StateNode) -> bool:
        """Drain a node whose pods fit elsewhere; whether it does."""
        snapshot = self.cluster_state.snapshot
        row = snapshot.nodes.rows[state.name]
        pods = [at for at in sorted(snapshot.pods_on(row)) if snapshot.pods.get(at).reschedulable]
        group = next(group for group in self.groups if group.name == state.labels[GROUP])
        if any(self._keeps(snapshot.pods.get(at), group) for at in sorted(snapshot.pods_on(row))):
            return False
        if pods and (self._draining or not self._fit_elsewhere(pods, row)):
            return False
        self._draining[state.name] = None
        self._cordon(state.name)
        for at in pods:
            self.cloud.api.evict(snapshot.pods.get(at).key)
        return True

    def _keeps(self, pod: Pod, group: ScenarioNodeGroup) -> bool:
        """Whether Cluster Autoscaler leaves a node alone because of a pod."""
        if rules.unsafe_to_evict(pod):
            return True
        if pod.is_daemon or pod.is_mirror or not pod.reschedulable or rules.safe_to_evict(pod):
            return False
        local = group.local_storage_stays and rules.local_volume(pod) is not None
        covered = any(pdb.matches(pod.metadata.namespace, pod.metadata.labels) for pdb in self.world.store.pdbs)
        return local or not rules.replicated(pod) or rules.kept_as_system_pod(pod, covered=covered)

    def _fit_elsewhere(self, pods: list[int], row: int) -> bool:
        """Whether each pod fits on another node, one after the other; the snapshot is restored afterwards."""
        snapshot, now = self.cluster_state.snapshot, self.world.queue.moment
        moved: list[int] = []
        try:
            for at in pods:
                pod = snapshot.pods.get(at)
                usable = self.cluster_state.open.copy()
                usable[row] = 0
                mask = feasible_nodes(snapshot, at, usable)
                if not evictable(pod, now) or not mask.any():
                    return False
                order = snapshot.nodes.order
                moved.append(at)
                snapshot.move(at, snapshot.nodes.get(int(order[mask[order]][0])).name)
            return True
        finally:
            for at in moved:
                snapshot.restore(at)

    def _cordon(self, name: str) -> None:
        node = self.world.store.nodes.get(name)
        if node is not None:
            self.world.store.nodes.put(replace(node, spec=replace(node.spec, unschedulable=True)))

    def _remove_drained(self) -> None:
        """Remove nodes that are empty; evict pods again that PodDisruptionBudgets held back."""
        snapshot = self.cluster_state.snapshot
        for name in list(self._draining):
            row = snapshot.nodes.rows.get(name)
            pods = [] if row is None else [snapshot.pods.get(at) for at in sorted(snapshot.pods_on(row))]
            staying = [pod for pod in pods if not pod.is_daemon and not pod.is_mirror]
            for pod in staying:
                if pod.active:
                    self.cloud.api.evict(pod.key)
            if not staying:
                del self._draining[name]
                self.cloud.end(name)
                self.world.store.nodes.remove(name)


def _disabled(state: StateNode) -> bool:
    return state.annotations.get(rules.SCALE_DOWN_DISABLED) == "true"


def _offers(group: ScenarioNodeGroup, catalog: Catalog) -> list[tuple[InstanceType, Offering]]:
    """The offerings of a group, one per zone, in the order of its zones."""
    entry = catalog.by_name.get(group.instance_type)
    requirements = Requirements([(names.CAPACITY_TYPE, one_of(group.capacity_type))])
    offerings = [] if entry is None else list(launchable(entry, requirements))
    if group.zones:
        offerings = [offering for zone in group.zones for offering in offerings if offering.zone == zone]
    if not offerings and (group.learned or 0 < group.most <= group.size):
        return []  # it never grows, so nobody has to know what a new node would be
    if entry is None or not offerings:
        where = f" in {', '.join(group.zones)}" if group.zones else ""
        message = f"node group {group.name}: the catalogue offers no {group.capacity_type} {group.instance_type}{where}"
        raise ScenarioError("nodeGroups", message)
    return [(entry, offering) for offering in offerings]
