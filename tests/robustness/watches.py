"""The watches of one controller on a virtual cluster: late, silent, cut and started anew, as real ones are."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.robustness.recorder import WATCHED, HistoryRecorder

from karpool.controller.store import ClusterStore
from karpool.kube.store import Store
from karpool.wire.objects import Object

LAG: Final = 0.05
"""How long an event takes from the server to the cache, in seconds, when nothing is wrong."""
_OTHERS: Final = ("volume_claims", "volumes", "storage_classes", "csi_nodes", "volume_attachments")


@dataclass
class _Watch:
    """One kind: the events on their way, and what the cache has."""

    pending: deque[tuple[int, str, Any]] = field(default_factory=deque)
    versions: dict[str, int] = field(default_factory=dict)
    holds: int = 0
    """How many faults keep events back."""


class Watches:
    """Fills a cache from the server's store; `view` is what the cache knows for certain."""

    def __init__(self, recorder: HistoryRecorder, on_events: Callable[[], None]) -> None:
        """`on_events` is called when there is something to deliver."""
        self._recorder = recorder
        self._truth = recorder.cluster.store
        self._queue = recorder.queue
        self._on_events = on_events
        self._watches = {kind: _Watch() for kind in WATCHED}
        self._pumping = False
        self.open = False
        self.cache = ClusterStore()
        for kind, attribute in WATCHED.items():
            store: Store[Any] = getattr(self._truth, attribute)
            store.watch(self._watcher(kind))

    def _watcher(self, kind: str) -> Callable[[Object | None, Object | None], None]:
        return lambda old, new: self._changed(kind, old, new)

    def _changed(self, kind: str, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        if not self.open or obj is None:
            return
        watch = self._watches[kind]
        # The recorder subscribed before, so the change is its latest record.
        watch.pending.append((self._recorder.revision - 1, obj.key, new))
        if not watch.holds:
            self._pump_soon()

    def _pump_soon(self) -> None:
        if not self._pumping:
            self._pumping = True
            self._queue.after(LAG, self._pump)

    def _pump(self) -> None:
        self._pumping = False
        self._on_events()

    # -- the cache -----------------------------------------------------------------------------------------------

    @property
    def view(self) -> int:
        """Every record before this revision has arrived."""
        oldest = [watch.pending[0][0] for watch in self._watches.values() if watch.pending]
        return min(oldest, default=self._recorder.revision)

    def restart(self) -> ClusterStore:
        """A new cache with everything that there is."""
        self.open = True
        self.cache = ClusterStore()
        for attribute in _OTHERS:
            for obj in getattr(self._truth, attribute):
                getattr(self.cache, attribute).put(obj)
        for kind in WATCHED:
            self._watches[kind] = _Watch()
            self.list_again(kind)
        return self.cache

    def close(self) -> None:
        self.open = False

    def list_again(self, kind: str) -> None:
        """Replace the cache of a kind by what there is, as after 410 Gone."""
        watch, now = self._watches[kind], self._recorder.revision - 1
        cached, truth = self._stores(kind)
        watch.pending.clear()
        for key in [obj.key for obj in cached if obj.key not in truth]:
            self._apply(watch, cached, (now, key, None))
        for obj in truth:
            self._apply(watch, cached, (now, obj.key, obj))

    def deliver(self) -> None:
        """Apply the events of all watches that nothing holds back."""
        for kind, watch in self._watches.items():
            if not watch.holds and watch.pending:
                cached, _ = self._stores(kind)
                events, watch.pending = watch.pending, deque()
                for event in events:
                    self._apply(watch, cached, event)

    def learn(self, kind: str, key: str) -> None:
        """Take in the answer to an own write."""
        cached, truth = self._stores(kind)
        obj = truth.get(key)
        if obj is not None:
            self._apply(self._watches[kind], cached, (self._recorder.revision - 1, key, obj))

    def _stores(self, kind: str) -> tuple[Store[Any], Store[Any]]:
        return getattr(self.cache, WATCHED[kind]), getattr(self._truth, WATCHED[kind])

    @staticmethod
    def _apply(watch: _Watch, cached: Store[Any], event: tuple[int, str, Any]) -> None:
        """Apply an event, unless the cache has something newer."""
        revision, key, obj = event
        if watch.versions.get(key, -1) > revision:
            return
        watch.versions[key] = revision
        if obj is None:
            cached.remove(key)
        elif cached.get(key) is not obj:
            cached.put(obj)

    # -- faults --------------------------------------------------------------------------------------------------

    def hold(self, kinds: tuple[str, ...]) -> tuple[_Watch, ...]:
        """Keep events of some kinds back; `release` what this returns."""
        held = tuple(self._watches[kind] for kind in kinds)
        for watch in held:
            watch.holds += 1
        return held

    def release(self, held: tuple[_Watch, ...]) -> None:
        for watch in held:
            watch.holds -= 1
        self._pump_soon()
