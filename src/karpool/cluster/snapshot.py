"""The cluster as columns: nodes, pods, what is free, and who counts where.

Built once from objects, then updated in place: `put_pod`, `put_node` and their removals cost microseconds, unless they
bring a rule that no pod had before, which all nodes are then checked for. What pods depend on (volumes, storage
classes, namespaces) classes only those pods anew. Rules stay when the last pod that had them goes; `interned` tells how
many there are, so that the owner of a snapshot that lives for weeks can build it anew when most of them are dead.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from karpool.cluster.changes import Impact, node_change, pod_change
from karpool.cluster.constraints import Preferences
from karpool.cluster.daemons import Daemon, DaemonIndex
from karpool.cluster.node_shapes import ShapeTable
from karpool.cluster.node_table import NodeTable
from karpool.cluster.nodes import StateNode
from karpool.cluster.pairing import join
from karpool.cluster.pod_classes import ClassTable
from karpool.cluster.pod_table import END, NOWHERE, PodTable
from karpool.cluster.resources import ATTACH, ResourceTable
from karpool.cluster.seals import UnreadableIndex, seals, withheld_pools
from karpool.cluster.topology import Topology
from karpool.cluster.volumes import VolumeIndex, claims_of
from karpool.model.node import CSINode
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reasons import Reason
from karpool.model.scheduling import Taint
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from karpool.model.workloads import DaemonSet, Namespace


class Snapshot:
    """Columns of a cluster; row numbers of nodes and pods stay the same until the object goes."""

    def __init__(self, objects: Objects, *, preferences: Preferences = Preferences.RESPECT) -> None:
        states = join(objects.nodes, objects.node_claims)
        self.objects = objects
        self.version = 0
        self.resources = ResourceTable()
        self.topology = Topology()
        self.classes = ClassTable(self.resources, self.topology)
        self.shapes = ShapeTable()
        self._daemon_index = DaemonIndex(objects.daemon_sets, objects.pods)
        self.pods = PodTable(
            self.classes,
            self.topology,
            volumes=VolumeIndex(objects),
            namespaces={entry.name: entry for entry in objects.namespaces},
            preferences=preferences,
            soft_taints=_soft_taints(objects, states),
        )
        limits = _attach_limits(objects)
        self.nodes = NodeTable(
            self.resources, self.topology, self.classes, self.shapes, daemons=self.daemons, attach_limits=limits
        )
        self.unreadable = UnreadableIndex(objects)
        self._seals: dict[int, Reason] = {}
        self._sealed_at = (-1, -1, -1)
        self._withheld: frozenset[str] = frozenset()
        self._awaiting_node: dict[str, set[int]] = {}
        self._counted_groups = 0
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
        self._bind_all()
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

    def _bind_all(self) -> None:
        """Bind every pod to its node at once, then count each group once."""
        pods, nodes = self.pods, self.nodes
        for row, pod in enumerate(pods.objects):
            if pod is not None and pod.spec.node_name:
                self._link(row, pod.spec.node_name)
        size, width = len(pods.objects), len(self.resources)
        bound = np.flatnonzero(pods.node_of[:size] >= 0)
        amounts = self.classes.requests[pods.class_of[bound], :width]
        np.add.at(nodes.taken[:, :width], pods.node_of[bound], amounts)
        daemon = pods.daemon[bound] == 1
        np.add.at(nodes.daemon_taken[:, :width], pods.node_of[bound[daemon]], amounts[daemon])
        for row in bound[(self.classes.taken_rows.length[pods.class_of[bound]] > 0)]:
            self._occupy(int(pods.class_of[row]), int(pods.node_of[row]), 1)
        nodes.refresh_all()
        self._count_new_groups()

    def _link(self, row: int, name: str) -> int:
        node = self.nodes.rows.get(name, NOWHERE)
        if node == NOWHERE:
            self._awaiting_node.setdefault(name, set()).add(row)
            return NOWHERE
        self.pods.node_of[row] = node
        self.pods.next[row] = self.nodes.head[node]
        self.nodes.head[node] = row
        self.nodes.pods[node][row] = None
        return node

    def _unlink(self, row: int) -> None:
        node = int(self.pods.node_of[row])
        rows = self.nodes.pods[node]
        before = END
        for at in reversed(rows):
            if at == row:
                break
            before = at
        if before == END:
            self.nodes.head[node] = self.pods.next[row]
        else:
            self.pods.next[before] = self.pods.next[row]
        del rows[row]
        self.pods.node_of[row], self.pods.next[row] = NOWHERE, END

    def pods_on(self, node: int) -> list[int]:
        """The rows of the pods on a node, in no order that means anything."""
        return list(reversed(self.nodes.pods[node]))

    # -- counts --------------------------------------------------------------------------------------------------

    def _count_new_groups(self) -> None:
        """Count the pods of groups that are new."""
        pods, topology = self.pods, self.topology
        fresh = range(self._counted_groups, len(topology.groups))
        if not fresh:
            return
        self._counted_groups = len(topology.groups)
        size = len(pods.objects)
        rows = np.flatnonzero((pods.node_of[:size] >= 0) & (pods.counted[:size] == 1))
        by_labels = _rows_by(pods.labels_of[rows], rows)
        for number, members in by_labels.items():
            for group in topology.counted_by.row(number):
                if group in fresh:
                    self._tally(group, members)
        by_class = _rows_by(pods.class_of[rows], rows)
        for number, members in by_class.items():
            for group in self.classes.declared.row(number):
                if group in fresh:
                    self._tally(group, members)

    def _tally(self, group: int, rows: "np.typing.NDArray[np.int64]") -> None:
        topology, nodes = self.topology, self.nodes
        at = self.pods.node_of[rows]
        at = at[self.shapes.seen_by[topology.filter[group], nodes.shape[at]] == 1]
        if topology.groups[group].by_host:
            np.add.at(topology.by_host[topology.row[group]], at, 1)
            topology.total[group] += len(at)
        else:
            domains = nodes.domain[at, topology.key[group]]
            domains = domains[domains >= 0]
            np.add.at(topology.by_domain[group], domains, 1)
            topology.total[group] += len(domains)

    def _count(self, row: int, change: int) -> None:
        """Count a bound pod in, or out of, every group that it takes part in."""
        pods, topology = self.pods, self.topology
        if not pods.counted[row]:
            return
        node, number, labels = int(pods.node_of[row]), int(pods.class_of[row]), int(pods.labels_of[row])
        if not topology.counted_by.length[labels] and not self.classes.declared.length[number]:
            return
        for group in topology.counted_by.row(labels) + self.classes.declared.row(number):
            if not self.shapes.seen_by[topology.filter[group], self.nodes.shape[node]]:
                continue
            if topology.groups[group].by_host:
                topology.by_host[topology.row[group], node] += change
                topology.total[group] += change
            elif (domain := int(self.nodes.domain[node, topology.key[group]])) >= 0:
                topology.by_domain[group, domain] += change
                topology.total[group] += change

    def _occupy(self, number: int, node: int, change: int) -> None:
        """Note ports and shared volumes that a pod of a class brings to a node, or takes away."""
        classes, by_host = self.classes, self.topology.by_host
        if not classes.taken_rows.length[number]:
            return
        for row in classes.taken_rows.row(number):
            by_host[row, node] += change
        # A shared volume is attached with its first pod and detached with its last.
        alone = 1 if change > 0 else 0
        for row, column in zip(classes.shared_rows.row(number), classes.shared_columns.row(number), strict=True):
            if by_host[row, node] == alone:
                self.nodes.taken[node, column] += change

    # -- what cannot be read -------------------------------------------------------------------------------------

    @property
    def seals(self) -> Mapping[int, Reason]:
        """By row of a node: what bears on it and cannot be read, so that it neither gives pods away nor takes any."""
        self.reseal()
        return self._seals

    @property
    def withheld_pools(self) -> frozenset[str]:
        """Pools that supply no nodes because one of theirs cannot be read; the same set until it changes."""
        withheld = withheld_pools(self) if self.unreadable else frozenset()
        if withheld != self._withheld:
            self._withheld = withheld
        return self._withheld

    def reseal(self) -> None:
        """Let sealed nodes take no pods, and those that are sealed no longer take some again."""
        if not self.unreadable and not self._seals:
            return
        basis = (self.unreadable.changes, self.version, self.nodes.changes)
        if basis == self._sealed_at:
            return
        before, self._seals = self._seals, seals(self)
        rows = [row for row in before.keys() | self._seals.keys() if self.nodes.states[row] is not None]
        changed = [row for row in sorted(rows) if self.nodes.seal(row, sealed=row in self._seals)]
        self.version += bool(changed)
        self._sealed_at = (self.unreadable.changes, self.version, self.nodes.changes)

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
            self._bind(row, pod.spec.node_name)
        self.version += 1

    def _remove(self, row: int) -> None:
        pod = self.pods.get(row)
        self._leave(row)
        self.pods.drop(row)
        self.pods.forget_claims(pod)
        for other in self._only_users(pod):
            self._reclass(other)
        self.version += 1

    def _only_users(self, pod: Pod) -> list[int]:
        """The pods that share a claim with nobody before this one comes, or after it went."""
        if not pod.spec.volumes:
            return []
        users = [self.pods.claim_users.get(name, set()) - {pod.key} for name in claims_of(pod)]
        return [self.pods.rows[key] for key in dict.fromkeys(next(iter(keys)) for keys in users if len(keys) == 1)]

    def _reclass(self, row: int) -> None:
        self._leave(row)
        self.pods.reclass(row)
        self._absorb_rules()
        name = self.pods.get(row).spec.node_name
        if name:
            self._bind(row, name)
        self.version += 1

    def _rebind(self, row: int, pod: Pod) -> None:
        """Take note of a pod that is on another node now, or on its way out."""
        node = self.pods.node_of[row]
        if node >= 0 and node == self.nodes.rows.get(pod.spec.node_name):
            self._count(row, -1)
            self.pods.replace(row, pod)
            self._count(row, 1)
            self.nodes.touch(int(node))
        else:
            self._leave(row)
            self.pods.replace(row, pod)
            if pod.spec.node_name:
                self._bind(row, pod.spec.node_name)
        self.version += 1

    def _leave(self, row: int) -> None:
        """Take a pod away from its node, or from those that wait for their node to come back."""
        if self.pods.node_of[row] >= 0:
            self._unbind(row)
        name = self.pods.get(row).spec.node_name
        waiting = self._awaiting_node.get(name)
        if waiting is not None:
            waiting.discard(row)
            if not waiting:
                del self._awaiting_node[name]

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
        if self._counted_groups < len(self.topology.groups):
            self.nodes.recount()
            self._count_new_groups()
        self.nodes.widen()

    def _bind(self, row: int, name: str) -> None:
        node = self._link(row, name)
        if node != NOWHERE:
            self.nodes.touch(node)
            self._occupy(int(self.pods.class_of[row]), node, 1)
            self._count(row, 1)
            self._take(row, node, 1)

    def _unbind(self, row: int) -> None:
        node = int(self.pods.node_of[row])
        self.nodes.touch(node)
        self._occupy(int(self.pods.class_of[row]), node, -1)
        self._count(row, -1)
        self._unlink(row)
        self._take(row, node, -1)

    def _touch(self, row: int) -> None:
        """Note that a pod, and with it its node, changed in something that decisions read."""
        node = int(self.pods.node_of[row])
        if node != NOWHERE:
            self.nodes.touch(node)

    def _take(self, row: int, node: int, sign: int) -> None:
        width, nodes = len(self.resources), self.nodes
        amounts = self.classes.requests[int(self.pods.class_of[row]), :width]
        # Views, changed in place: an item that is assigned would be copied once more.
        taken, free = nodes.taken[node, :width], nodes.free[node, :width]
        if self.pods.daemon[row] or self.resources.attach:
            taken += sign * amounts
            if self.pods.daemon[row]:
                nodes.daemon_taken[node, :width] += sign * amounts
            nodes.refresh(node)
        elif sign > 0:
            taken += amounts
            free -= amounts
        else:
            taken -= amounts
            free += amounts

    def move(self, row: int, name: str) -> None:
        """Bind a pod to a node, wherever it is now."""
        if self.pods.node_of[row] >= 0:
            self._unbind(row)
        self._bind(row, name)
        self.version += 1

    def restore(self, row: int) -> None:
        """Bind a pod to the node that it names, wherever it is now; or to none, if it names none."""
        if self.pods.node_of[row] >= 0:
            self._unbind(row)
        name = self.pods.get(row).spec.node_name
        if name:
            self._bind(row, name)
        self.version += 1

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
        if node is None:
            self.nodes.add((state,))
        else:
            self._renew(node, state)
        for row in sorted(self._awaiting_node.pop(state.name, ())):
            self._bind(row, state.name)
        self.version += 1
        return impact

    def _renew(self, node: int, state: StateNode) -> None:
        """Take note of a change of a node; its pods may count elsewhere now."""
        rows = self.pods_on(node)
        for row in rows:
            self._count(row, -1)
        self.nodes.replace(node, state)
        for row in rows:
            self._count(row, 1)

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
            self._unbind(row)
        self.nodes.drop(node)
        if waiting:
            self._awaiting_node[name] = set(waiting)
        self.version += 1


def _rows_by(
    keys: "np.typing.NDArray[np.int32]", rows: "np.typing.NDArray[np.int64]"
) -> dict[int, "np.typing.NDArray[np.int64]"]:
    if not len(rows):
        return {}
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    parts = np.split(rows[order], starts[1:])
    return dict(zip(distinct.tolist(), parts, strict=True))


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
