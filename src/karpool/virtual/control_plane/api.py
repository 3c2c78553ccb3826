"""The API server: creation, deletion with grace periods and finalizers, and the Eviction API."""

from collections.abc import Callable
from datetime import timedelta

from karpool.execution.drain import grace_seconds
from karpool.kube.store import Store
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.virtual.changes import T, with_metadata
from karpool.virtual.control_plane.pdb_controller import EvictionStatus, PdbController
from karpool.virtual.world import VirtualWorld


class Api:
    def __init__(self, world: VirtualWorld, pdb_controller: PdbController) -> None:
        self.world = world
        self.pdb_controller = pdb_controller
        self.on_eviction: list[Callable[[Pod, EvictionStatus], None]] = []
        self._created = 0

    def _stamped(self, obj: T) -> T:
        self._created += 1
        return with_metadata(
            obj, uid=f"{self._created:08d}", creation_timestamp=self.world.queue.moment, deletion_timestamp=None
        )

    def create_pod(self, pod: Pod) -> Pod:
        return self.world.store.pods.put(self._stamped(pod))

    def create_node(self, node: Node) -> Node:
        return self.world.store.nodes.put(self._stamped(node))

    def create_claim(self, claim: NodeClaim) -> NodeClaim:
        """Create a NodeClaim, unless one of its name is there."""
        existing = self.world.store.claims.get(claim.name)
        return self.world.store.claims.put(self._stamped(claim)) if existing is None else existing

    # -- deletion ------------------------------------------------------------------------------------------------

    def delete_pod(self, key: str, *, uid: str | None = None, grace: int | None = None) -> bool:
        """Delete a pod with its grace period, which never gets longer; one that is not bound is gone at once."""
        store, now = self.world.store, self.world.queue.moment
        pod = get_by_uid(store.pods, key, uid)
        if pod is None:
            return False
        if not pod.bound or pod.terminal:
            store.pods.remove(key)
            return True
        ends = now + timedelta(seconds=grace_seconds(pod) if grace is None else grace)
        before = pod.metadata.deletion_timestamp
        if before is not None and before <= ends:
            return False
        store.pods.put(with_metadata(pod, deletion_timestamp=ends))
        return True

    def delete(self, store: Store[T], key: str, uid: str | None = None) -> None:
        """Delete a node or a claim, which stays as long as it has finalizers."""
        obj = get_by_uid(store, key, uid)
        if obj is None:
            return
        if not obj.metadata.finalizers:
            store.remove(key)
        elif obj.metadata.deletion_timestamp is None:
            store.put(with_metadata(obj, deletion_timestamp=self.world.queue.moment))

    def change(self, store: Store[T], changed: T) -> None:
        """Write an object; a deleted one is removed with its last finalizer, but a pod waits for its kubelet."""
        meta = changed.metadata
        if meta.deletion_timestamp is not None and not meta.finalizers and not isinstance(changed, Pod):
            store.remove(changed.key)
        else:
            store.put(changed)

    # -- eviction ------------------------------------------------------------------------------------------------

    def evict(self, key: str, uid: str | None = None) -> EvictionStatus:
        pod = get_by_uid(self.world.store.pods, key, uid)
        if pod is None:
            return EvictionStatus.NOT_FOUND
        status = self.pdb_controller.eviction_status(pod)
        for observe in self.on_eviction:
            observe(pod, status)
        if status is EvictionStatus.CREATED:
            self.delete_pod(key)
        return status


def get_by_uid(store: Store[T], key: str, uid: str | None) -> T | None:
    """The object of this key, unless it has another uid."""
    obj = store.get(key)
    return obj if obj is not None and uid in (None, obj.metadata.uid) else None
