"""Puts the faults of a plan into a running story, and counts them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.robustness import fault_plan as faults
from tests.robustness.cluster_faults import ClusterFaults
from tests.robustness.fault_plan import Window
from tests.robustness.recorder import PLURALS, WATCHED, HistoryRecorder

from karpool.execution import actions as a
from karpool.execution.tickets import COMMAND
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.pod import Pod, PodSpec
from karpool.model.workloads import ConfigMap
from karpool.virtual.changes import with_annotation
from karpool.wire.objects import Metadata

if TYPE_CHECKING:
    from tests.robustness.process import Process

DOUBTED: Final = 40.0
"""How long a watch may be stalled until that is known, at the latest, in seconds."""
SILENCE: Final = 75.0
"""How long it takes at most until another watch has taken its place."""
DISCONNECTED: Final = 5.0
_SOON: Final = 20.0
_MOST_LATENCY: Final = 6.0
_SKEWS: Final = (-3600.0, -8.0, 3.0, 8.0, 60.0, 3600.0, 40 * 86400.0)
_REFUSALS: Final = (faults.CONFLICT, faults.TOO_MANY, faults.INTERNAL)
_ONLY_ONCE: Final = (faults.KILL_BEFORE, faults.KILL_AFTER)


class FaultInjector:
    """Asked about every request; everything else it does by itself when its time comes."""

    def __init__(self, recorder: HistoryRecorder, windows: Sequence[Window], rng: random.Random) -> None:
        self._recorder = recorder
        self._cluster = recorder.cluster
        self._queue = recorder.queue
        self._rng = rng
        self._windows = list(windows)
        self._over = max((window.end for window in windows), default=0.0)
        self.skews = any(window.kind in faults.OF_CLOCKS for window in windows)
        """Whether somebody says a wrong time in this story."""
        self._quota: dict[Window, int] = {}
        clusters = ClusterFaults(recorder, rng)
        self.replicas: list[Process] = []
        self._beginnings: dict[str, Callable[[Process, float], None]] = {
            faults.STALLED: self._stall,
            faults.CUT: self._interrupt_watches,
            faults.GONE: self._forget,
            faults.PAUSED: self._pause,
            faults.PARTITIONED: self._partition,
            faults.KILLED: self._kill,
            faults.STEPPED_DOWN: self._step_down,
            faults.CLOCK_SET: self._set_clock,
            faults.UNSEEN_PAUSE: self._pause_unseen,
            faults.ZONE: lambda _, seconds: clusters.lose_zone(seconds),
            faults.INTERRUPTED: lambda _, _seconds: clusters.interrupt(),
            faults.SHORTAGE: lambda _, seconds: clusters.run_short(seconds),
            faults.CRASHES: lambda _, seconds: clusters.crash(seconds),
        }

    def start(self, replicas: list[Process]) -> None:
        self.replicas = replicas
        for window in self._windows:
            self._queue.at(window.start, partial(self._begin, window))

    @property
    def calm(self) -> bool:
        """Whether nothing happens now, nor in the next seconds."""
        now = self._queue.time
        return not any(window.start - _SOON <= now < window.end for window in self._windows)

    def _victim(self, window: Window) -> Process:
        return self.replicas[window.who % len(self.replicas)]

    def _active(self, *kinds: str) -> list[Window]:
        now = self._queue.time
        if now >= self._over:
            return []
        return [window for window in self._windows if window.kind in kinds and window.start <= now < window.end]

    # -- requests ------------------------------------------------------------------------------------------------

    def latency(self, replica: Process) -> float:
        """How long the next request takes, in seconds."""
        for window in self._active(faults.LATENCY):
            if self._rng.random() < window.share:
                seconds = self._rng.uniform(0.2, _MOST_LATENCY)
                self._recorder.fault(faults.LATENCY, replica.identity, seconds)
                return seconds
        return 0.0

    def trouble(self, replica: Process, verb: str, kind: str) -> str:
        """What happens to a request that arrives now; nothing if all is well."""
        for window in self._active(*faults.OF_REQUESTS, faults.PARTITIONED):
            if self._hits(window, replica, verb, kind) and self._rng.random() < window.share:
                if window.kind in _ONLY_ONCE:
                    self._windows.remove(window)
                found = faults.BROKEN if window.kind == faults.PARTITIONED else window.kind
                self._recorder.fault(found, replica.identity)
                return found
        return ""

    def carried_out(self, replica: Process, actions: Sequence[a.Action]) -> None:
        """When a command starts: its node will get a pod that must stay, while the watch of pods is silent."""
        edits = [action for action in actions if isinstance(action, a.Annotate)]
        starts = [edit.name for edit in edits if edit.key == COMMAND and edit.value]
        for window in self._active(faults.AMBUSH) if starts else ():
            self._windows.remove(window)
            self._note(faults.AMBUSH, replica)
            # A command that waits for a replacement takes most of a minute.
            later = self._rng.choice((0.0, self._rng.uniform(5, 50)))
            self._queue.after(later, partial(self._ambush, replica, starts[0]))

    def cordoned(self, replica: Process, node: str) -> None:
        """When the compactor begins with a node: so, too."""
        for window in self._active(faults.AMBUSH):
            self._windows.remove(window)
            self._note(faults.AMBUSH, replica)
            self._hold(replica, ("Pod",), self._rng.uniform(20, SILENCE))
            self._queue.after(self._rng.uniform(0.2, 4), partial(self._protect_pod_on, node))

    def _ambush(self, replica: Process, claim: str) -> None:
        self._hold(replica, ("Pod",), self._rng.uniform(30, SILENCE))
        self._queue.after(self._rng.uniform(0.2, 10), partial(self._protect_pod_of, claim))

    def _protect_pod_of(self, claim: str) -> None:
        found = self._cluster.store.claims.get(claim)
        if found is not None and not found.terminating and found.status.node_name in self._cluster.store.nodes:
            self._protect_pod_on(found.status.node_name)

    def _protect_pod_on(self, node: str) -> None:
        """Somebody marks a pod of a node, or brings one that is marked if it has none."""
        store = self._cluster.store
        pods = [pod for pod in store.pods if pod.spec.node_name == node and pod.active and not pod.is_daemon]
        if pods:
            chosen = self._rng.choice(pods)
            store.pods.put(with_annotation(chosen, DO_NOT_DISRUPT, "true"))
        else:
            marked = Metadata(name=f"guest-{node}", namespace="default", annotations={DO_NOT_DISRUPT: "true"})
            self._cluster.api.create_pod(Pod(metadata=marked, spec=PodSpec(node_name=node)))

    def _hits(self, window: Window, replica: Process, verb: str, kind: str) -> bool:
        match window.kind:
            case faults.LATENCY:
                return False
            case faults.PARTITIONED:
                return self._victim(window) is replica
            case faults.WEBHOOK:
                return (verb, kind) == ("create", "NodeClaim")
            case faults.QUOTA:
                most = self._quota.setdefault(window, len(self._cluster.store.claims))
                return (verb, kind) == ("create", "NodeClaim") and len(self._cluster.store.claims) >= most
            case faults.CONFLICT:
                return verb == "patch"
            case _:
                return True

    def reaches_lease(self, replica: Process) -> tuple[bool, bool]:
        """Whether a request about the lease arrives, and whether its answer comes back."""
        if self._queue.time >= self._over:
            return True, True
        for window in self._active(faults.PARTITIONED):
            if self._victim(window) is replica:
                self._recorder.fault(faults.BROKEN, replica.identity)
                return False, False
        for window in self._active(*_REFUSALS):
            if self._rng.random() < window.share:
                return False, False
        return True, not any(self._rng.random() < window.share for window in self._active(faults.LOST))

    def ahead(self, replica: Process) -> float:
        """By how many seconds the date of an answer is wrong."""
        if not self.skews:
            return 0.0
        for window in self._active(faults.SKEWED):
            if self._rng.random() < window.share:
                self._recorder.fault(faults.SKEWED, replica.identity)
                return self._rng.choice(_SKEWS)
        return 0.0

    # -- watches and processes -----------------------------------------------------------------------------------

    def _begin(self, window: Window) -> None:
        """Begin what is no matter of single requests."""
        begin = self._beginnings.get(window.kind)
        if begin is not None:
            begin(self._victim(window), window.end - window.start)

    def _note(self, kind: str, replica: Process, seconds: float = 0.0) -> None:
        self._recorder.fault(kind, replica.identity, seconds)

    def _pause(self, replica: Process, seconds: float) -> None:
        self._note(faults.PAUSED, replica, seconds)
        replica.freeze(seconds)

    def _partition(self, replica: Process, seconds: float) -> None:
        self._note(faults.PARTITIONED, replica, seconds)
        self._cut(replica, seconds, kinds=tuple(WATCHED))

    def _kill(self, replica: Process, _seconds: float) -> None:
        self._note(faults.KILLED, replica)
        replica.kill()

    def _step_down(self, replica: Process, _seconds: float) -> None:
        self._note(faults.STEPPED_DOWN, replica)
        replica.step_down()

    def _set_clock(self, replica: Process, _seconds: float) -> None:
        self._note(faults.CLOCK_SET, replica)
        replica.set_clock(self._rng.choice(_SKEWS))

    def _kinds(self) -> tuple[str, ...]:
        """All kinds, or some: every watch has a connection of its own, or shares one with the others."""
        some = self._rng.sample(sorted(WATCHED), self._rng.randint(1, len(WATCHED)))
        return tuple(WATCHED) if self._rng.random() < 0.3 else tuple(some)

    def _stall(self, replica: Process, seconds: float) -> None:
        """Watches stay open and say nothing; those that are silent for too long are in doubt, and started again."""
        kinds = self._kinds()
        self._note(faults.STALLED, replica, min(seconds, SILENCE))
        self._hold(replica, kinds, seconds)

    def _hold(self, replica: Process, kinds: tuple[str, ...], seconds: float) -> None:
        held = replica.watches.hold(kinds)
        doubted = [plural for plural in map(PLURALS.get, kinds) if plural is not None]
        if seconds > DOUBTED:
            self._queue.after(DOUBTED, partial(replica.doubt_watches, doubted))

        def release() -> None:
            replica.watches.release(held)
            # A watch that another fault keeps silent stays in doubt.
            heard = [
                PLURALS[kind] for kind, watch in zip(kinds, held, strict=True) if not watch.holds and kind in PLURALS
            ]
            replica.trust_watches(heard)

        self._queue.after(min(seconds, SILENCE), release)

    def _pause_unseen(self, replica: Process, seconds: float) -> None:
        """Somebody pauses everything while the watches of NodePools and ConfigMaps are silent."""
        self._note(faults.UNSEEN_PAUSE, replica)
        self._hold(replica, ("NodePool", "ConfigMap"), seconds)
        pause = ConfigMap(metadata=Metadata(name="karpool-pause", namespace="karpool"))
        self._queue.after(1.0, partial(self._cluster.store.pauses.put, pause))
        self._queue.after(seconds, partial(self._cluster.store.pauses.remove, pause.key))

    def _forget(self, replica: Process, seconds: float) -> None:
        """Watches end, and the version they had is gone when they begin again."""
        self._note(faults.GONE, replica, seconds)
        self._cut(replica, seconds, gone=True)

    def _interrupt_watches(self, replica: Process, seconds: float) -> None:
        """Watches end, and begin again where they were."""
        self._note(faults.CUT, replica, seconds)
        self._cut(replica, seconds)

    def _cut(self, replica: Process, seconds: float, *, gone: bool = False, kinds: tuple[str, ...] = ()) -> None:
        kinds = kinds or self._kinds()
        held = replica.watches.hold(kinds)
        if seconds > DISCONNECTED:
            self._queue.after(DISCONNECTED, replica.disconnect)

        def release() -> None:
            replica.watches.release(held)
            if seconds > DISCONNECTED:
                replica.reconnect(kinds, gone=gone)
            elif gone and replica.runs:
                for kind in kinds:
                    replica.watches.list_again(kind)

        self._queue.after(seconds, release)
