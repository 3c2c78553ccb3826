"""The cluster as columns: nodes, pods, what is free, and who counts where.

Built once from objects, then updated in place: `put_pod`, `put_node` and their removals cost microseconds, unless they
bring a rule that no pod had before, which all nodes are then checked for. What pods depend on (volumes, storage
classes, namespaces) classes only those pods anew. Rules stay when the last pod that had them goes; `interned` tells how
many there are, so that the owner of a snapshot that lives for weeks can build it anew when most of them are dead.
"""

from collections.abc import Iterable, Mapping, Sequence

from karpool.cluster.attach_limits import AttachLimits
from karpool.cluster.bindings import Bindings
from karpool.cluster.changes import Impact, node_change, pod_change
from karpool.cluster.constraints import Preferences
from karpool.cluster.daemons import Daemon, DaemonIndex
from karpool.cluster.devices.state import DeviceState
from karpool.cluster.gangs import GangIndex
from karpool.cluster.group_counts import GroupCounts
from karpool.cluster.node_shapes import ShapeTable
from karpool.cluster.node_table import ForeseenNode, NodeTable
from karpool.cluster.nodes import StateNode
from karpool.cluster.pairing import join
from karpool.cluster.pod_classes import ClassTable
from karpool.cluster.pod_table import NOWHERE, PodTable
from karpool.cluster.resources import ATTACH, ResourceTable
from karpool.cluster.seals import Seals, UnreadableIndex
from karpool.cluster.topology import Topology
from karpool.cluster.volumes import VolumeIndex, attached_by
from karpool.model.gangs import PodGroup, Workload
from karpool.model.node import CSINode
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.operating_systems import runs_windows
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.model.scheduling import Taint
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from karpool.model.workloads import DaemonSet, Namespace
from karpool.wire.objects import Object


class Snapshot:
    """Columns of a cluster; row numbers of nodes and pods stay the same until the object goes."""

    def __init__(
        self, objects: Objects, *, preferences: Preferences = Preferences.RESPECT, ignore_dra_requests: bool = True
    ) -> None:
        states = join(objects.nodes, objects.node_claims)
        self.objects = objects
        self.version = 0
        self.resources = ResourceTable()
        self.topology = Topology()
        self.classes = ClassTable(self.resources, self.topology)
        self.shapes = ShapeTable()
        self.devices = DeviceState(objects)
        self.gangs = GangIndex(objects)
        self._daemon_index = DaemonIndex(objects.daemon_sets, objects.pods)
        self.pods = PodTable(
            self.classes,
            self.topology,
            volumes=VolumeIndex(objects),
            namespaces={entry.name: entry for entry in objects.namespaces},
            preferences=preferences,
            soft_taints=_soft_taints(objects, states),
            devices=not ignore_dra_requests,
        )
        limits = _attach_limits(objects)
        self.nodes = NodeTable(
            self.resources,
            self.topology,
            self.classes,
            self.shapes,
            daemons=self.daemons,
            attach_limits=AttachLimits(limits),
        )
        self.counts = GroupCounts(self.pods, self.nodes, self.shapes)
        self.bindings = Bindings(self.pods, self.nodes, self.counts, self.resources)
        self.unreadable = UnreadableIndex(objects)
        self._seals = Seals()
        self.pods.windows.update(state.name for state in states if runs_windows(state.labels))
        self._learn_resources(states, limits)
        self._load(states)

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """What DaemonSets put on nodes; the same tuple until one of them changes."""
        return self._daemon_index.daemons

    @property
    def interned(self) -> int:
        """How many label sets, rules, shapes and counts are kept, those that no pod has any more among them."""
        topology, classes, shapes = self.topology, self.classes, self.shapes
        named = sum(map(len, topology.domains.values)) + len(topology.label_sets) + len(topology.host_rows)
        rules = classes.size + len(classes.signatures) + len(topology.groups) + len(topology.filters)
        links = topology.counted_by.used + topology.kept_off_by.used
        return named + rules + links + shapes.size + len(shapes.taint_sets) + len(self.resources)

    def _learn_resources(self, states: list[StateNode], limits: Mapping[str, Mapping[str, int]]) -> None:
        for state in states:
            self.resources.learn(state.allocatable)
            self.resources.learn(state.capacity)
        for daemon in self.daemons:
            self.resources.learn(daemon.requests)
        for driver in {driver for drivers in limits.values() for driver in drivers}:
            self.resources.column(ATTACH + driver)

    def _load(self, states: list[StateNode]) -> None:
        unfinished = [pod for pod in self.objects.pods if not pod.terminal]
        self.pods.note_claims(unfinished)
        self.pods.add_all(unfinished)
        self._learn_rules()
        self.nodes.add(states)
        self.bindings.bind_all()
        self.version += 1

    def _learn_rules(self) -> None:
        """Judge shapes for signatures and filters that are new."""
        signatures, filters = self.classes.signatures, self.topology.filters
        others = [alternative for s in signatures for alternative in s.volumes]
        others += [alternative for nodes in filters for alternative in nodes.alternatives]
        others += [alternative for daemon in self.daemons for alternative in daemon.alternatives]
        self.nodes.widen()
        new = self.shapes.learn((s.requirements for s in signatures), hosts=False)
        if self.shapes.learn(others, hosts=True) or new:
            self.shapes.forget()
            self.nodes.reshape()
        else:
            self.nodes.judge()

    # -- who is where --------------------------------------------------------------------------------------------

    def pods_on(self, node: int) -> list[int]:
        """The rows of the pods on a node, in no order that means anything."""
        return list(reversed(self.nodes.pods[node]))

    # -- what cannot be read -------------------------------------------------------------------------------------

    @property
    def seals(self) -> Mapping[int, Reason]:
        """By row of a node: what bears on it and cannot be read, so that it neither gives pods away nor takes any."""
        self.reseal()
        return self._seals.of_rows

    @property
    def withheld_pools(self) -> frozenset[str]:
        """Pools that supply no nodes because one of theirs cannot be read; the same set until it changes."""
        return self._seals.withheld(self)

    def reseal(self) -> None:
        """Let sealed nodes take no pods, and those that are sealed no longer take some again."""
        self._seals.renew(self)

    # -- updates -------------------------------------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> Impact:
        """Take note of a pod that is new or has changed; a finished one goes."""
        row = self.pods.rows.get(pod.key)
        self.unreadable.note(Pod, pod.key, pod)
        if pod.terminal:
            self.remove_pod(pod.key)
            return Impact.NONE if row is None else Impact.COLUMNS
        if row is None:
            self._add(pod)
            self._note_daemon(None, pod)
            return Impact.COLUMNS
        old = self.pods.get(row)
        impact = pod_change(old, pod)
        if impact is Impact.BINDING and (self.pods.volumes.holds_to_host(pod) or self._changes_system(old, pod)):
            impact = Impact.COLUMNS
        if impact is Impact.COLUMNS:
            self._remove(row)
            self._add(pod)
        elif impact is Impact.BINDING:
            self._rebind(row, pod)
        else:
            self.pods.replace(row, pod)
            if impact is Impact.FACTS:
                self._touch(row)
        if impact >= Impact.BINDING:
            self._note_daemon(old, pod)
        return impact

    def _changes_system(self, old: Pod, new: Pod) -> bool:
        """Whether a pod has come to a node that runs Windows, or left one."""
        windows = self.pods.windows
        return bool(windows) and (old.spec.node_name in windows) is not (new.spec.node_name in windows)

    def remove_pod(self, key: str) -> None:
        """Forget a pod."""
        self.unreadable.note(Pod, key, None)
        row = self.pods.rows.get(key)
        if row is not None:
            pod = self.pods.get(row)
            self._remove(row)
            self._note_daemon(pod, None)

    def _add(self, pod: Pod) -> None:
        others = self._only_users(pod)
        self.pods.note_claims((pod,))
        for row in others:
            self._reclass(row)
        row = self.pods.add(pod)
        self._absorb_rules()
        if pod.spec.node_name:
            self.bindings.bind(row, pod.spec.node_name)
        self.version += 1

    def _remove(self, row: int) -> None:
        pod = self.pods.get(row)
        self.bindings.leave(row)
        self.pods.drop(row)
        self.pods.forget_claims(pod)
        for other in self._only_users(pod):
            self._reclass(other)
        self.version += 1

    def _only_users(self, pod: Pod) -> list[int]:
        """The pods that share a claim with nobody before this one comes, or after it went."""
        if not pod.spec.volumes:
            return []
        users = [self.pods.claim_users.get(name, set()) - {pod.key} for name in attached_by(pod)]
        return [self.pods.rows[key] for key in dict.fromkeys(next(iter(keys)) for keys in users if len(keys) == 1)]

    def _reclass(self, row: int) -> None:
        self.bindings.leave(row)
        self.pods.reclass(row)
        self._absorb_rules()
        name = self.pods.get(row).spec.node_name
        if name:
            self.bindings.bind(row, name)
        self.version += 1

    def _rebind(self, row: int, pod: Pod) -> None:
        """Take note of a pod that is on another node now, or on its way out."""
        node = self.pods.node_of[row]
        if node >= 0 and node == self.nodes.rows.get(pod.spec.node_name):
            self.counts.count(row, -1)
            self.pods.replace(row, pod)
            self.counts.count(row, 1)
            self.nodes.touch(int(node))
        else:
            self.bindings.leave(row)
            self.pods.replace(row, pod)
            if pod.spec.node_name:
                self.bindings.bind(row, pod.spec.node_name)
        self.version += 1

    # -- what pods and nodes depend on ---------------------------------------------------------------------------

    def put_volume_claim(self, key: str, claim: PersistentVolumeClaim | None) -> list[int]:
        """Take note of a claim that is new, has changed, or is gone; the rows of the pods that use it."""
        self.unreadable.note(PersistentVolumeClaim, key, claim)
        self.pods.volumes.set_claim(key, claim)
        return self._reclass_users((key,))

    def put_volume(self, name: str, volume: PersistentVolume | None) -> list[int]:
        """Take note of a volume that is new, has changed, or is gone; the rows of the pods that use it."""
        self.unreadable.note(PersistentVolume, name, volume)
        return self._reclass_users(self.pods.volumes.set_volume(name, volume))

    def put_storage_class(self, name: str, entry: StorageClass | None) -> list[int]:
        """Take note of a class that is new, has changed, or is gone; the rows of pods with volumes still to come."""
        self.unreadable.note(StorageClass, name, entry)
        return self._reclass_users(self.pods.volumes.set_class(name, entry))

    def put_namespace(self, name: str, entry: Namespace | None) -> list[int]:
        """Take note of a namespace that is new, has changed, or is gone; the rows of pods that select by its labels."""
        self.unreadable.note(Namespace, name, entry)
        rows = self.pods.set_namespace(name, entry)
        for row in rows:
            self._reclass(row)
        return rows

    def _reclass_users(self, claims: Iterable[str]) -> list[int]:
        users = sorted({user for key in claims for user in self.pods.claim_users.get(key, ())})
        rows = [self.pods.rows[user] for user in users]
        for row in rows:
            self._reclass(row)
        return rows

    def put_device_object(self, kind: type[Object], key: str, entry: Object | None) -> bool:
        """Take note of a claim, a claim template, a slice or a device class; whether pods have claims at all."""
        self.devices.put(kind, key, entry)
        if not self.pods.device_rows:
            return False
        # What is said of a pod with claims depends on every node, so it is enough that one has changed.
        for row in list(self.nodes.rows.values())[:1]:
            self.nodes.touch(row)
        self.version += 1
        return True

    def put_pod_group(self, key: str, entry: PodGroup | None) -> None:
        """Take note of how many pods a gang needs."""
        self.gangs.put_group(key, entry)
        self.version += 1

    def put_workload(self, key: str, entry: Workload | None) -> None:
        """Take note of how many pods the gangs of a workload need."""
        self.gangs.put_workload(key, entry)
        self.version += 1

    def put_csi_node(self, name: str, entry: CSINode | None) -> None:
        """Take note of how many volumes a node can attach."""
        self.unreadable.note(CSINode, name, entry)
        self.nodes.set_attach_limits(name, {} if entry is None else _limits(entry))
        self.version += 1

    def put_daemon_set(self, key: str, entry: DaemonSet | None) -> bool:
        """Take note of a DaemonSet that is new, has changed, or is gone; whether nodes must reserve something else."""
        self.unreadable.note(DaemonSet, key, entry)
        changed = self._daemon_index.set_daemon_set(key, entry)
        if changed:
            self._reserve()
        return changed

    def _note_daemon(self, old: Pod | None, new: Pod | None) -> None:
        """What a daemon takes of the next node follows what its pods really request."""
        if self._daemon_index.change_pod(old, new):
            self._reserve()

    def _reserve(self) -> None:
        for daemon in self.daemons:
            self.resources.learn(daemon.requests)
        self.nodes.set_daemons(self.daemons)
        self._learn_rules()
        self.nodes.refresh_all()
        self.version += 1

    def put_pool(self, name: str, pool: NodePool | None) -> None:
        """Take note of a pool that is new, has changed, or is gone: its nodes may begin to ask pods to stay away."""
        self.unreadable.note(NodePool, name, pool)
        if pool is not None and not self.pods.soft_taints and _is_soft(pool.spec.template.spec.taints):
            self._soften()

    def _absorb_rules(self) -> None:
        """Bring shapes, domains and counts up to date with rules that a new pod brought."""
        if not self.shapes.is_current(self.classes.signatures, self.topology.filters):
            self._learn_rules()
        if self.counts.behind:
            self.nodes.recount()
            self.counts.count_new_groups()
        self.nodes.widen()

    def _touch(self, row: int) -> None:
        """Note that a pod, and with it its node, changed in something that decisions read."""
        node = int(self.pods.node_of[row])
        if node != NOWHERE:
            self.nodes.touch(node)

    def move(self, row: int, name: str) -> None:
        """Bind a pod to a node, wherever it is now."""
        if self.pods.node_of[row] >= 0:
            self.bindings.unbind(row)
        self.bindings.bind(row, name)
        self.version += 1

    def restore(self, row: int) -> None:
        """Bind a pod to the node that it names, wherever it is now; or to none, if it names none."""
        if self.pods.node_of[row] >= 0:
            self.bindings.unbind(row)
        name = self.pods.get(row).spec.node_name
        if name:
            self.bindings.bind(row, name)
        self.version += 1

    def move_all(self, rows: Sequence[int], nodes: Sequence[int]) -> None:
        """Bind many pods at once, wherever they are now, each to the node of a row."""
        if rows:
            self.bindings.rebind(rows, nodes)
            self.version += 1

    def restore_all(self, rows: Sequence[int]) -> None:
        """Bind many pods at once to the nodes that they name, wherever they are now."""
        names = [self.pods.get(row).spec.node_name for row in rows]
        for row, name in zip(rows, names, strict=True):
            if name and name not in self.nodes.rows:
                self.bindings.awaiting_node.setdefault(name, set()).add(row)
        self.move_all(rows, [self.nodes.rows.get(name, NOWHERE) for name in names])

    def put_node(self, state: StateNode) -> Impact:
        """Take note of a node that is new or has changed."""
        node = self.nodes.rows.get(state.name)
        impact = Impact.COLUMNS if node is None else node_change(self.nodes.get(node), state)
        if node is not None and impact < Impact.COLUMNS:
            self.nodes.states[node] = state
            self.nodes.touch(node)
            return impact
        if not self.pods.soft_taints and _is_soft(state.taints):
            self._soften()
        self._note_windows(state.name, () if node is None else self.pods_on(node), windows=runs_windows(state.labels))
        if node is None:
            self.nodes.add((state,))
        else:
            self._renew(node, state)
        for row in sorted(self.bindings.awaiting_node.pop(state.name, ())):
            self.bindings.bind(row, state.name)
        self.version += 1
        return impact

    def _note_windows(self, name: str, pods: Iterable[int], *, windows: bool) -> None:
        """Class the pods of a node anew, those that came before it, too, if it runs Windows now or no longer does."""
        known = self.pods.windows
        if windows is (name in known):
            return
        (known.add if windows else known.discard)(name)
        for row in sorted({*pods, *self.bindings.awaiting_node.get(name, ())}):
            self._reclass(row)

    def foresee(self, state: StateNode) -> ForeseenNode:
        """What the columns of a node would say that is not there yet; nothing else changes."""
        before = self.interned
        foreseen = self.nodes.foresee(state)
        self.version += self.interned != before
        return foreseen

    def _renew(self, node: int, state: StateNode) -> None:
        """Take note of a change of a node; its pods may count elsewhere now."""
        rows = self.pods_on(node)
        for row in rows:
            self.counts.count(row, -1)
        self.nodes.replace(node, state)
        for row in rows:
            self.counts.count(row, 1)

    def _soften(self) -> None:
        """From now on pods may have to tolerate a taint that only asks them to stay away: class all anew."""
        self.pods.soft_taints = True
        self.pods.forget_classes()
        for row in self.pods.rows.values():
            self._reclass(row)

    def remove_node(self, name: str) -> None:
        """Forget a node; pods that still name it wait for it to come back or to go themselves."""
        node = self.nodes.rows.get(name)
        if node is None:
            return
        waiting = self.pods_on(node)
        for row in waiting:
            self.bindings.unbind(row)
        self.nodes.drop(node)
        if waiting:
            self.bindings.awaiting_node[name] = set(waiting)
        self._note_windows(name, (), windows=False)
        self.version += 1


def _soft_taints(objects: Objects, states: list[StateNode]) -> bool:
    pools = (pool.spec.template.spec.taints for pool in objects.node_pools)
    return any(_is_soft(taints) for taints in (*pools, *(state.taints for state in states)))


def _is_soft(taints: tuple[Taint, ...]) -> bool:
    return any(taint.effect == "PreferNoSchedule" for taint in taints)


def _attach_limits(objects: Objects) -> dict[str, Mapping[str, int]]:
    return {entry.name: _limits(entry) for entry in objects.csi_nodes}


def _limits(entry: CSINode) -> dict[str, int]:
    drivers = entry.spec.drivers
    return {driver.name: driver.allocatable.count for driver in drivers if driver.allocatable.count is not None}
