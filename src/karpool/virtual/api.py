"""The API server's part: creation, deletion with grace and finalizers, and the Eviction API."""

from collections.abc import Callable
from datetime import timedelta
from enum import IntEnum
from typing import Final

from karpool.controller.store import Shelf
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.model.wire import Object
from karpool.virtual.changes import T, with_metadata
from karpool.virtual.pdbs import Verdict, Watchman
from karpool.virtual.world import World

DEFAULT_GRACE: Final = 30


class Code(IntEnum):
    """What the Eviction API answers."""

    CREATED = 201
    NOT_FOUND = 404
    TOO_MANY_REQUESTS = 429
    SEVERAL_BUDGETS = 500


class Api:
    """Verbs on the store."""

    def __init__(self, world: World, watchman: Watchman) -> None:
        self.world = world
        self.watchman = watchman
        self.on_eviction: list[Callable[[Pod, Code], None]] = []
        self._created = 0

    def _stamped(self, thing: T) -> T:
        self._created += 1
        return with_metadata(
            thing, uid=f"{self._created:08d}", creation_timestamp=self.world.agenda.moment, deletion_timestamp=None
        )

    def create_pod(self, pod: Pod) -> Pod:
        """Create a pod; its uid and its time are ours."""
        return self.world.store.pods.put(self._stamped(pod))

    def create_node(self, node: Node) -> Node:
        """Create a node."""
        return self.world.store.nodes.put(self._stamped(node))

    def create_claim(self, claim: NodeClaim) -> NodeClaim:
        """Create a NodeClaim, unless one of its name is there."""
        held = self.world.store.claims.get(claim.name)
        return self.world.store.claims.put(self._stamped(claim)) if held is None else held

    # -- deletion ------------------------------------------------------------------------------------------------

    def delete_pod(self, key: str, *, uid: str | None = None, grace: int | None = None) -> bool:
        """Delete a pod with its grace, which is never made longer; one that no node has is gone at once."""
        store, now = self.world.store, self.world.agenda.moment
        pod = store.pods.get(key)
        if pod is None or (uid is not None and pod.metadata.uid != uid):
            return False
        if not pod.bound or pod.terminal:
            store.pods.remove(key)
            return True
        own = pod.spec.termination_grace_period_seconds
        length = grace if grace is not None else DEFAULT_GRACE if own is None else own
        ends = now + timedelta(seconds=length)
        before = pod.metadata.deletion_timestamp
        if before is not None and before <= ends:
            return False
        store.pods.put(with_metadata(pod, deletion_timestamp=ends))
        return True

    def delete_node(self, name: str, uid: str | None = None) -> None:
        """Ask for a node's deletion."""
        self._delete(self.world.store.nodes, name, uid)

    def delete_claim(self, name: str, uid: str | None = None) -> None:
        """Ask for a NodeClaim's deletion."""
        self._delete(self.world.store.claims, name, uid)

    def _delete(self, shelf: Shelf[T], key: str, uid: str | None) -> None:
        held = shelf.get(key)
        if held is None or (uid is not None and held.metadata.uid != uid):
            return
        if not held.metadata.finalizers:
            shelf.remove(key)
        elif held.metadata.deletion_timestamp is None:
            shelf.put(with_metadata(held, deletion_timestamp=self.world.agenda.moment))

    def change(self, shelf: Shelf[T], changed: T) -> None:
        """Write an object; a deleted one goes with its last finalizer."""
        if changed.metadata.deletion_timestamp is not None and not changed.metadata.finalizers and _kept(changed):
            shelf.remove(changed.key)
        else:
            shelf.put(changed)

    # -- eviction ------------------------------------------------------------------------------------------------

    def evict(self, key: str, uid: str | None = None) -> Code:
        """Let a pod go if its PodDisruptionBudget allows it."""
        pod = self.world.store.pods.get(key)
        if pod is None or (uid is not None and pod.metadata.uid != uid):
            return Code.NOT_FOUND
        verdict = self.watchman.verdict(pod)
        code = {
            Verdict.ALLOWED: Code.CREATED,
            Verdict.REFUSED: Code.TOO_MANY_REQUESTS,
            Verdict.SEVERAL: Code.SEVERAL_BUDGETS,
        }[verdict]
        for told in self.on_eviction:
            told(pod, code)
        if code is Code.CREATED:
            self.delete_pod(key)
        return code


def _kept(thing: Object) -> bool:
    """Whether only finalizers keep a deleted object of this kind; pods wait for their kubelet."""
    return not isinstance(thing, Pod)
