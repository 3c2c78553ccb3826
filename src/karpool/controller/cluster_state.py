"""One snapshot for all decisions, kept in step with the store by its changes.

Changes are written into the columns as they come. A snapshot that mostly holds rules of dead pods is built anew when it
is next asked for: each time, at least as much has come and gone as there is, so that a change costs little on average.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

import numpy as np
from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog
from karpool.cluster import changes
from karpool.cluster.arrays import Array, grown
from karpool.cluster.changes import Impact
from karpool.cluster.constraints import Preferences
from karpool.cluster.nodes import StateNode, is_steering
from karpool.cluster.pairing import Pairing, PairingChange
from karpool.cluster.snapshot import Snapshot
from karpool.controller.as_if import AsIf
from karpool.controller.headroom_index import HeadroomIndex
from karpool.controller.store import ClusterStore
from karpool.model.devices import DeviceClass, DeviceObject, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from karpool.model.gangs import PodGroup, Workload
from karpool.model.node import CSINode, Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod
from karpool.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from karpool.model.workloads import ConfigMap, DaemonSet, Namespace, PodDisruptionBudget
from karpool.wire.objects import Object

ExpectedLaunch = Callable[[NodeClaim], NodeClaim]
_SPARE: Final = 2_000


class ClusterState:
    """The cluster as columns; `open` says which nodes a scheduler may use now."""

    def __init__(
        self,
        store: ClusterStore,
        expected_launch: ExpectedLaunch = lambda claim: claim,
        *,
        preferences: Preferences = Preferences.RESPECT,
        capacity_buffers: bool = True,
        ignore_dra_requests: bool = True,
    ) -> None:
        """`capacity_buffers`: whether pods of headroom are in the columns."""
        self.store = store
        self.headroom = HeadroomIndex(store) if capacity_buffers else None
        self._expected_launch = expected_launch
        self._preferences = preferences
        self._ignore_dra_requests = ignore_dra_requests
        self._pairing = Pairing(store.nodes, map(self._expected, store.claims))
        self._pairing.states()
        self._catalog: Catalog | None = None
        self.spare = _SPARE
        """How many label sets, rules and counts of pods that are gone may always be kept."""
        self.stale = False
        """Whether the columns miss a change, until `current` builds them anew."""
        self.opportunities = 0
        """Counts changes that may make new commands possible."""
        self._pools: tuple[NodePool, ...] = store.pools.listed()
        self._rebuild()
        store.pods.watch(self._pod)
        store.nodes.watch(self._node)
        store.claims.watch(self._claim)
        store.pdbs.watch(self._budget)
        store.pools.watch(self._pool)
        store.daemon_sets.watch(self._daemon_set)
        store.namespaces.watch(self._namespace)
        store.pauses.watch(self._pause)
        store.volume_claims.watch(self._volume_claim)
        store.volumes.watch(self._volume)
        store.storage_classes.watch(self._storage_class)
        store.csi_nodes.watch(self._csi_node)
        store.pod_groups.watch(self._pod_group)
        store.workloads.watch(self._workload)
        if not ignore_dra_requests:
            store.resource_claims.watch(partial(self._device_object, ResourceClaim))
            store.resource_claim_templates.watch(partial(self._device_object, ResourceClaimTemplate))
            store.resource_slices.watch(partial(self._device_object, ResourceSlice))
            store.device_classes.watch(partial(self._device_object, DeviceClass))
        if self.headroom is not None:
            self.headroom.on_change = self._headroom

    # -- the whole -----------------------------------------------------------------------------------------------

    def current(self) -> Snapshot:
        """The snapshot, built anew if it has to be."""
        if self.stale or self.snapshot.interned > 2 * self._interned + self.spare:
            self.stale = False
            self._rebuild()
        return self.snapshot

    def use_catalog(self, catalog: Catalog) -> None:
        """Expect claims that are not launched yet to become the nodes that a catalog says."""
        if catalog is self._catalog:
            return
        self._catalog = catalog
        for claim in self.store.claims:
            if not claim.status.provider_id:
                self._claim(claim, claim)

    def pools(self) -> tuple[NodePool, ...]:
        """The pools; the same tuple until one changes in a way that matters for decisions."""
        return self._pools

    def _rebuild(self) -> None:
        objects = self.store.objects()
        claims = tuple(map(self._expected, objects.node_claims))
        pods = objects.pods if self.headroom is None else (*objects.pods, *self.headroom.pods.values())
        self.snapshot = Snapshot(
            replace(objects, node_claims=claims, pods=pods),
            preferences=self._preferences,
            ignore_dra_requests=self._ignore_dra_requests,
        )
        self.snapshot.objects = objects
        self.snapshot.unreadable.on_change = self._readability_changed
        self._interned = self.snapshot.interned
        self.open: Array = np.zeros(self.snapshot.nodes.live.shape, dtype=np.uint8)
        self.avoided: Array = np.zeros_like(self.open)
        for row, state in enumerate(self.snapshot.nodes.states):
            self.open[row] = state is not None and _takes_pods(state)
            self.avoided[row] = state is not None and state.steered

    @contextmanager
    def as_if(self) -> Iterator[AsIf]:
        """The columns as if more had happened, once they are told what; afterwards they are as they were."""
        pretended = AsIf(self.snapshot)
        try:
            yield pretended
        finally:
            pretended.show((), ())
            self._fit()

    def _fit(self) -> None:
        """Have room for nodes that the columns have got."""
        nodes = self.snapshot.nodes
        if len(self.open) < len(nodes.live):
            self.open, self.avoided = (grown(known, nodes.live.shape) for known in (self.open, self.avoided))

    def _readability_changed(self) -> None:
        self.opportunities += 1

    def _namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        if changes.namespace_changed(old, new):
            self.opportunities += bool(self.snapshot.put_namespace(_key(old, new), new))

    def _storage_class(self, old: StorageClass | None, new: StorageClass | None) -> None:
        if changes.storage_class_changed(old, new):
            self.opportunities += bool(self.snapshot.put_storage_class(_key(old, new), new))

    # -- rules ---------------------------------------------------------------------------------------------------

    def _pool(self, old: NodePool | None, new: NodePool | None) -> None:
        if changes.pool_changed(old, new):
            self._pools = self.store.pools.listed()
            self.snapshot.put_pool(_key(old, new), new)
            self.opportunities += 1

    def _budget(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        self.opportunities += changes.pdb_opened(old, new)

    def _pause(self, _old: ConfigMap | None, _new: ConfigMap | None) -> None:
        self.opportunities += 1

    def _daemon_set(self, old: DaemonSet | None, new: DaemonSet | None) -> None:
        if self.snapshot.put_daemon_set(_key(old, new), new):
            self.opportunities += 1

    def _pod_group(self, old: PodGroup | None, new: PodGroup | None) -> None:
        self.snapshot.put_pod_group(_key(old, new), new)
        self.opportunities += 1

    def _workload(self, old: Workload | None, new: Workload | None) -> None:
        self.snapshot.put_workload(_key(old, new), new)
        self.opportunities += 1

    # -- volumes -------------------------------------------------------------------------------------------------

    def _volume_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if changes.volume_claim_changed(old, new):
            self.opportunities += bool(self.snapshot.put_volume_claim(_key(old, new), new))

    def _volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if changes.volume_changed(old, new):
            self.opportunities += bool(self.snapshot.put_volume(_key(old, new), new))

    def _csi_node(self, old: CSINode | None, new: CSINode | None) -> None:
        if changes.csi_node_changed(old, new):
            self.snapshot.put_csi_node(_key(old, new), new)
            self.opportunities += 1

    # -- devices -------------------------------------------------------------------------------------------------

    def _device_object(self, kind: type[DeviceObject], old: DeviceObject | None, new: DeviceObject | None) -> None:
        if changes.device_object_changed(old, new):
            self.opportunities += self.snapshot.put_device_object(kind, _key(old, new), new)

    # -- pods ----------------------------------------------------------------------------------------------------

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        snapshot = self.snapshot
        daemons = snapshot.daemons
        if new is not None:
            impact = snapshot.put_pod(new)
            # A new pod only takes room, so it makes nothing possible.
            if old is not None and impact is not Impact.NONE:
                self.opportunities += impact is not Impact.FACTS or changes.frees_pod(old, new)
        elif old is not None:
            snapshot.remove_pod(old.key)
            self.opportunities += 1
        if snapshot.daemons is not daemons:
            self.opportunities += 1

    def _headroom(self, gone: Sequence[str], changed: Sequence[Pod]) -> None:
        for key in gone:
            self.snapshot.remove_pod(key)
        for pod in changed:
            self.snapshot.put_pod(pod)
        self.opportunities += 1

    # -- machines ------------------------------------------------------------------------------------------------

    def claim_of(self, node: Node) -> NodeClaim | None:
        """The claim behind a node."""
        claim = self._pairing.claim_of(node)
        return None if claim is None else self.store.claims.get(claim.name)

    def node_name(self, claim: NodeClaim) -> str:
        """The name of the node behind a claim; empty if there is none yet."""
        node = self._pairing.node_of(claim)
        return "" if node is None else node.name

    def _claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        claim = None if new is None else self._expected(new)
        self.snapshot.unreadable.note(NodeClaim, _key(old, new), new)
        self._apply(self._pairing.set_claim(_key(old, new), claim))

    def _node(self, old: Node | None, new: Node | None) -> None:
        self.snapshot.unreadable.note(Node, _key(old, new), new)
        self._apply(self._pairing.set_node(_key(old, new), new))

    def _expected(self, claim: NodeClaim) -> NodeClaim:
        """What a claim is expected to become; nobody knows that of one that cannot be read."""
        return claim if claim.unreadable else self._expected_launch(claim)

    def _apply(self, change: PairingChange) -> None:
        for name in change.gone:
            self._remove_node(name)
        for state in change.states:
            self._put_node(state)

    def _put_node(self, state: StateNode) -> None:
        nodes = self.snapshot.nodes
        before = nodes.states[nodes.rows[state.name]] if state.name in nodes.rows else None
        impact = self.snapshot.put_node(state)
        self.opportunities += impact is not Impact.NONE
        if before is not None and before.node is state.node and impact is not Impact.COLUMNS:
            return  # whether a node takes pods follows from its columns
        row = nodes.rows[state.name]
        self._fit()
        self.open[row], self.avoided[row] = _takes_pods(state), state.steered

    def _remove_node(self, name: str) -> None:
        row = self.snapshot.nodes.rows.get(name)
        if row is not None:
            self.open[row] = 0
            self.snapshot.remove_node(name)
            self.opportunities += 1


def _key(old: Object | None, new: Object | None) -> str:
    """The key of an object that came, changed or went."""
    entry = old if new is None else new
    return "" if entry is None else entry.key


def _takes_pods(state: StateNode) -> bool:
    """Whether the node is ready and has none of the taints that decisions ignore because they will go away."""
    node = state.node
    if node is None or node.unreadable or state.deleting:
        return False
    lasting = {taint for taint in node.spec.taints if not is_steering(taint)}
    return node.ready and lasting <= set(state.taints)
