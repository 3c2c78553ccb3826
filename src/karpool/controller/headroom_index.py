"""The pods that stand for the room of CapacityBuffers, kept in step with the buffers and what they refer to."""

from collections.abc import Callable, Sequence

from karpool.controller.store import ClusterStore
from karpool.model.headroom import Headroom, HeadroomPod, headroom_of
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.wire.objects import Object


class HeadroomIndex:
    """What each buffer asks for; `pods` by key are those of all of them."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self.buffers: tuple[Headroom, ...] = ()
        self.pods: dict[str, HeadroomPod] = {}
        self.on_change: Callable[[Sequence[str], Sequence[Pod]], None] = lambda _gone, _changed: None
        """Gets the keys of pods that are gone, and the pods that are new or changed."""
        self.on_wanted: Callable[[], None] = lambda: None
        """Is told when there may be headroom that has no node yet."""
        for kind in (store.buffers, store.pod_templates, store.deployments, store.stateful_sets, store.replica_sets):
            kind.watch(self._changed)
        self._refresh()

    def _changed(self, _old: Object | None, _new: Object | None) -> None:
        before = self.pods
        self._refresh()
        gone = [key for key in before if key not in self.pods]
        changed = [pod for key, pod in self.pods.items() if before.get(key) != pod]
        if gone or changed:
            self.on_change(gone, changed)
        if changed:
            self.on_wanted()

    def _refresh(self) -> None:
        store = self._store
        self.buffers = headroom_of(
            Objects(
                capacity_buffers=store.buffers.listed(),
                pod_templates=store.pod_templates.listed(),
                deployments=store.deployments.listed(),
                stateful_sets=store.stateful_sets.listed(),
                replica_sets=store.replica_sets.listed(),
            )
        )
        self.pods = {pod.key: pod for headroom in self.buffers for pod in headroom.pods}
