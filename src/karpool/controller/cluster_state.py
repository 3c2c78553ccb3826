"""One snapshot for all decisions, kept in step with the store by its changes.

Changes of pods and nodes are written into the columns. What changes the meaning of all pods (volumes, namespaces,
daemon sets) makes the snapshot stale; it is built anew when somebody asks for it next.
"""

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from karpool.cluster.arrays import Array, grown
from karpool.cluster.nodes import StateNode
from karpool.cluster.snapshot import Snapshot
from karpool.controller.store import ClusterStore
from karpool.model.labels import UNREGISTERED_TAINT
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim, NodePool
from karpool.model.pod import Pod
from karpool.model.workloads import DaemonSet, Namespace, PodDisruptionBudget
from karpool.wire.objects import Object

Foresight = Callable[[NodeClaim], NodeClaim]


class ClusterState:
    """The cluster as columns; `open` says which nodes a scheduler may use now."""

    def __init__(self, store: ClusterStore, foreseen: Foresight = lambda claim: claim) -> None:
        self.store = store
        self._foreseen = foreseen
        self.snapshot = self._whole()
        self.stale = False
        """Whether the columns no longer show everything, until somebody asks for the `current` ones."""
        self.open: Array = self._opened()
        self.loosened = 0
        """Counts changes that may let decisions find something that they did not find before."""
        self.touched: set[int] = set()
        """Rows of nodes that changed, or whose pods did, since somebody asked."""
        self.tightened: set[str] = set()
        """Keys of PodDisruptionBudgets that keep pods now that they did not keep, since somebody asked."""
        self._claim_of: dict[str, str] = {}
        self._node_of: dict[str, str] = {}
        for claim in store.claims:
            self._claim(None, claim)
        for node in store.nodes:
            self._node(None, node)
        store.pods.watch(self._pod)
        store.nodes.watch(self._node)
        store.claims.watch(self._claim)
        store.pdbs.watch(self._budget)
        store.pools.watch(self._pool)
        store.daemon_sets.watch(self._daemon_set)
        store.namespaces.watch(self._namespace)
        store.volume_claims.watch(self._other)
        store.volumes.watch(self._other)
        store.storage_classes.watch(self._other)
        store.csi_nodes.watch(self._other)
        self._pools: tuple[NodePool, ...] = store.pools.listed()

    # -- the whole -----------------------------------------------------------------------------------------------

    def current(self) -> Snapshot:
        """The snapshot, built anew if it has to be."""
        if self.stale:
            self.stale = False
            self.loosened += 1
            self._rebuild()
        return self.snapshot

    def pools(self) -> tuple[NodePool, ...]:
        """The pools; the same tuple until one changes in a way that matters for decisions."""
        return self._pools

    def _whole(self) -> Snapshot:
        objects = self.store.objects()
        launched = [claim for claim in objects.node_claims if claim.status.provider_id]
        likely = [self._likely(claim) for claim in objects.node_claims if not claim.status.provider_id]
        claims = (*launched, *(claim for claim in likely if claim is not None))
        known = {claim.status.provider_id for claim in launched}
        nodes = tuple(node for node in objects.nodes if node.spec.provider_id in known or not _is_unregistered(node))
        snapshot = Snapshot(replace(objects, nodes=nodes, node_claims=claims))
        snapshot.objects = objects
        return snapshot

    def _rebuild(self) -> None:
        self.snapshot, self.touched = self._whole(), set()
        self.open = self._opened()

    def _opened(self) -> Array:
        nodes = self.snapshot.nodes
        found: Array = np.zeros(nodes.live.shape, dtype=np.uint8)
        for row, state in enumerate(nodes.states):
            found[row] = state is not None and _takes_pods(state)
        return found

    def _other(self, old: Object | None, new: Object | None) -> None:
        if old != new:
            self.stale = True

    def _daemon_set(self, old: DaemonSet | None, new: DaemonSet | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            self.stale = True

    def _namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            self.stale = True

    def _pool(self, old: NodePool | None, new: NodePool | None) -> None:
        if old is None or new is None or _reads_differently(old, new):
            self._pools = self.store.pools.listed()
            self.loosened += 1

    # -- pods ----------------------------------------------------------------------------------------------------

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        snapshot = self.snapshot
        for pod in (old, new):
            if pod is not None and pod.spec.node_name in snapshot.nodes.rows:
                self.touched.add(snapshot.nodes.rows[pod.spec.node_name])
        if new is None:
            if old is not None:
                snapshot.remove_pod(old.key)
                self.loosened += 1
            return
        row = snapshot.pods.rows.get(new.key)
        if row is not None and old is not None and _only_fares_differently(old, new):
            snapshot.pods.objects[row] = new
            return
        snapshot.put_pod(new)
        if old is not None:
            self.loosened += 1

    def put_back(self, key: str) -> None:
        """Show a pod as the store has it, after somebody moved it in the snapshot."""
        pods = self.snapshot.pods
        row = pods.rows[key]
        self.touched.add(int(pods.node_of[row]))
        pod = self.store.pods.get(key)
        if pod is None:
            self.snapshot.remove_pod(key)
            return
        if pods.objects[row] is pod:
            self.snapshot.send_home(row)
        else:
            self.snapshot.put_pod(pod)
        self.touched.add(int(pods.node_of[pods.rows[key]]))

    def _budget(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            # Which pods it covers may be others now, so every node may fare differently.
            self.touched.update(self.snapshot.nodes.rows.values())
            self.loosened += 1
            return
        before, after = _stance(old), _stance(new)
        self.loosened += any(now and not then for then, now in zip(before, after, strict=True))
        if after not in {before, (True, True)}:
            self.tightened.add(new.key)

    # -- machines ------------------------------------------------------------------------------------------------

    def _claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        if new is None:
            if old is not None:
                self._forget_claim(old)
            return
        if not new.status.provider_id:
            self._show_launching(new)
            return
        self._claim_of[new.status.provider_id] = new.name
        node = self.store.nodes.get(self.node_name(new))
        if node is not None and node.name != new.name:
            self._hide(new.name)
        self._show(StateNode(node, new))

    def _show_launching(self, claim: NodeClaim) -> None:
        """A machine that is still to be launched counts as the one it will most likely become."""
        likely = self._likely(claim)
        if likely is not None:
            self._show(StateNode(None, likely))
        else:
            self._hide(claim.name)

    def _likely(self, claim: NodeClaim) -> NodeClaim | None:
        likely = self._foreseen(claim)
        return likely if likely.status.provider_id and claim.metadata.deletion_timestamp is None else None

    def _forget_claim(self, claim: NodeClaim) -> None:
        provider = claim.status.provider_id
        self._claim_of.pop(provider, None)
        node = self.store.nodes.get(self._node_of.get(provider, ""))
        if node is None or _is_unregistered(node):
            self._hide(StateNode(node, claim).name)
        else:
            self._show(StateNode(node, None))

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None:
                self._forget_node(old)
            return
        claim = self.claim_of(new)
        if claim is not None and new.spec.provider_id not in self._node_of:
            early = StateNode(None, claim).name
            if early != new.name:
                self._hide(early)
        if new.spec.provider_id:
            self._node_of[new.spec.provider_id] = new.name
        if claim is not None or not _is_unregistered(new):
            self._show(StateNode(new, claim))

    def _forget_node(self, node: Node) -> None:
        self._node_of.pop(node.spec.provider_id, None)
        self._hide(node.name)
        claim = self.claim_of(node)
        if claim is not None:
            self._show(StateNode(None, claim))

    def claim_of(self, node: Node) -> NodeClaim | None:
        """The claim behind a node."""
        return self.store.claims.get(self._claim_of.get(node.spec.provider_id, ""))

    def node_name(self, claim: NodeClaim) -> str:
        """The name of the node behind a claim; empty if there is none yet."""
        return self._node_of.get(claim.status.provider_id, "")

    def _show(self, state: StateNode) -> None:
        nodes = self.snapshot.nodes
        row = nodes.rows.get(state.name)
        if row is not None and _same_to_columns(nodes.get(row), state):
            same_node = nodes.get(row).node is state.node
            nodes.states[row] = state
        else:
            same_node = False
            self.snapshot.put_node(state)
            self.loosened += 1
            row = nodes.rows[state.name]
        self.touched.add(row)
        if not same_node:
            self.open = grown(self.open, nodes.live.shape)
            self.open[row] = _takes_pods(state)

    def _hide(self, name: str) -> None:
        row = self.snapshot.nodes.rows.get(name)
        if row is not None:
            self.open[row] = 0
            self.touched.add(row)
            self.snapshot.remove_node(name)
            self.loosened += 1


def _only_fares_differently(old: Pod, new: Pod) -> bool:
    """Whether nothing changed that columns show: same pod, same place, same rules."""
    before, after = old.metadata, new.metadata
    return (
        (old.spec is new.spec or old.spec == new.spec)
        and before.uid == after.uid
        and (before.labels is after.labels or before.labels == after.labels)
        and (before.deletion_timestamp is None) is (after.deletion_timestamp is None)
        and not new.terminal
    )


def _reads_differently(old: NodePool, new: NodePool) -> bool:
    """Whether decisions may see another pool; budgets, periods and hashes may stand in annotations."""
    return old.spec != new.spec or old.ready is not new.ready or old.metadata.annotations != new.metadata.annotations


def _stance(budget: PodDisruptionBudget) -> tuple[bool, bool]:
    """Whether a budget lets somebody go, and whether it has all the healthy pods that it needs."""
    status = budget.status
    return status.disruptions_allowed > 0, status.current_healthy >= status.desired_healthy


def _same_to_columns(old: StateNode, new: StateNode) -> bool:
    """Whether columns show both alike; conditions and the time of the last pod event are not among them."""
    if old.node is new.node and old.claim is not None and new.claim is not None and old.initialized:
        # A node that is up speaks for itself.
        return old.deleting is new.deleting
    return (
        (old.node is None) is (new.node is None)
        and (old.claim is None) is (new.claim is None)
        and old.deleting is new.deleting
        and old.initialized is new.initialized
        and old.taints == new.taints
        and old.allocatable == new.allocatable
        and old.capacity == new.capacity
        and old.labels == new.labels
    )


def _is_unregistered(node: Node) -> bool:
    """Whether a node waits for its claim: until that knows it, the claim alone stands for the machine."""
    return any(taint.key == UNREGISTERED_TAINT for taint in node.spec.taints)


def _takes_pods(state: StateNode) -> bool:
    """Whether the node is ready, and none of its taints is one that decisions overlook because it will go away."""
    node = state.node
    return node is not None and node.ready and not state.deleting and set(node.spec.taints) <= set(state.taints)
