"""The node compactor as a process on the virtual cluster: the loop, the last look and the writes of the real one."""

import random
from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from tests.robustness import fault_plan as faults
from tests.robustness.checker.records import Request
from tests.robustness.injector import FaultInjector
from tests.robustness.process import Process
from tests.robustness.recorder import HistoryRecorder, as_json
from tests.robustness.stories import GROUP

from karpool.compaction.actions import CompactionAction, SetNodeState, node_of
from karpool.compaction.advance import advance
from karpool.compaction.config import Config
from karpool.compaction.confirm import confirmed, nodes_to_read
from karpool.compaction.marks import ANNOTATION
from karpool.compaction.settings import CompactionSettings, jittered
from karpool.execution.actions import DeletePod, EvictPod, RecordEvent
from karpool.execution.fresh_facts import FreshNode
from karpool.model.node import Node
from karpool.virtual.compactor import VirtualCompactor
from karpool.virtual.facts import VirtualFacts

_OK: Final = 200
_TICK: Final = 1.0
_TRIES: Final = 5
_READ_SECONDS: Final = 0.02
_FAST: Final = CompactionSettings(
    needed_marked_time=timedelta(seconds=60),
    minimum_node_age=timedelta(seconds=120),
    sleep=timedelta(seconds=30),
    drain_timeout=timedelta(minutes=3),
    removal_timeout=timedelta(minutes=6),
    retry_after=timedelta(minutes=4),
)
SETTINGS: Final = replace(_FAST, brakes=replace(_FAST.brakes, pause_namespace="karpool"))
"""Everything happens sooner than by default, so that a story of half an hour is enough."""
LIMITS: Final = {
    "compactor": GROUP,
    "drainTimeout": SETTINGS.drain_timeout.total_seconds(),
    "removalTimeout": SETTINGS.removal_timeout.total_seconds(),
}
Steps = Generator[float, None, None]
"""What takes time: each value is how many seconds until it goes on."""


class CompactorProcess(Process):
    """Takes one step after the other, as `karpool compact` does; nothing else happens in it meanwhile."""

    name = "compactor"

    def __init__(self, recorder: HistoryRecorder, injector: FaultInjector, config: Config, rng: random.Random) -> None:
        super().__init__(0, recorder, injector)
        self._config = config
        self._rng = rng
        self._cluster = recorder.cluster
        # Carries out what is asked for, and never starts by itself.
        self._server = VirtualCompactor(self._cluster.world, self._cluster.api, config)
        self.start()

    def start(self) -> None:
        super().start()
        self.watches.restart()
        self._go_on(self._loop())

    def _go_on(self, steps: Steps) -> None:
        life = self.life
        delay = next(steps)
        if life == self.life:
            self.later(delay, lambda: self._go_on(steps))

    # -- the loop ------------------------------------------------------------------------------------------------

    def _loop(self) -> Steps:
        while True:
            self.watches.deliver()
            self.hear_time()
            if self.disconnected or self.doubted or self.doubt:
                yield _TICK
                continue
            yield from self._sleep((yield from self._step()))

    def _sleep(self, length: timedelta) -> Steps:
        """Take in events until the next step is due, or somebody pauses everything."""
        pauses = self.watches.cache.pauses.listed()
        due = self.queue.time + max(_TICK, length.total_seconds())
        while self.queue.time < due and self.watches.cache.pauses.listed() == pauses:
            yield 10 * _TICK if self.injector.calm else _TICK
            self.watches.deliver()

    def _step(self) -> Generator[float, None, timedelta]:
        """Decide and act; how long to sleep then."""
        view = self.watches.view
        step = advance(self.watches.cache.objects(), self._config, self.earliest, SETTINGS)
        facts = {}
        for name in nodes_to_read(step.actions):
            yield _READ_SECONDS + self.injector.latency(self)
            facts[name] = self._read(name)
        actions, refused = confirmed(step, facts)
        succeeded = not refused
        by_node: dict[str, list[CompactionAction]] = {}
        for action in actions:
            if not isinstance(action, RecordEvent):
                by_node.setdefault(node_of(action), []).append(action)
        for together in by_node.values():
            succeeded &= yield from self._act(together, view)
        if not succeeded:
            return SETTINGS.drain_interval
        if step.requeue_at is not None:
            return step.requeue_at - step.decision.time
        return jittered(SETTINGS.sleep, self._rng.random())

    def _act(self, actions: Sequence[CompactionAction], view: int) -> Generator[float, None, bool]:
        """Carry out the actions of a node; without its state nothing else is done to it."""
        succeeded = True
        for action in actions:
            delay = self.injector.latency(self)
            if delay:
                yield delay
            if not self._write(action, view):
                succeeded = False
                if isinstance(action, SetNodeState):
                    return False
        return succeeded

    # -- requests ------------------------------------------------------------------------------------------------

    def _read(self, name: str) -> FreshNode:
        record, fault = self._request("list", "Pod", name, None, self.recorder.revision)
        self.recorder.records.append(record)
        if fault and fault != faults.TWICE:
            record.status = faults.STATUS.get(fault, 0)
            return FreshNode(problem=fault)
        record.status = _OK
        facts = VirtualFacts(self._cluster.store).facts_of([name])[name]
        self.watches.learn("Node", name)
        for pod in facts.pods:
            self.watches.learn("Pod", pod.key)
        return facts

    def _write(self, action: CompactionAction, view: int) -> bool:
        """Whether a write succeeded, or need not be repeated."""
        if not self.runs:
            return False
        if isinstance(action, SetNodeState):
            return self._patch(action, view)
        if not isinstance(action, EvictPod | DeletePod):
            return True
        verb = "evict" if isinstance(action, EvictPod) else "delete"
        record, fault = self._request(verb, "Pod", action.key, action, view)
        if not self._arrives(record, fault):
            return fault == faults.TOO_MANY and verb == "evict"  # as if a budget had refused it
        with self.recorder.request(record):
            if isinstance(action, EvictPod):
                record.status = int(self._cluster.api.evict(action.key, action.uid))
            else:
                self._server._execute(action)
        return self._answered(fault)

    def _patch(self, action: SetNodeState, view: int) -> bool:
        """Write the state of a node, unless it has changed since the decision; a conflict is tried again."""
        for _ in range(_TRIES):
            cached, current = self.watches.cache.nodes.get(action.node), self._cluster.store.nodes.get(action.node)
            if current is None:
                return True
            if cached is None or _decided_on(cached) != _decided_on(current):
                self.watches.learn("Node", action.node)
                return False
            record, fault = self._request("patch", "Node", action.node, action, view)
            if self._arrives(record, fault):
                with self.recorder.request(record):
                    self._server._execute(action)
                if action.unschedulable:
                    self.injector.cordoned(self, action.node)
                done = self._answered(fault)
                if done:
                    self.watches.learn("Node", action.node)
                return done
            if fault != faults.CONFLICT:
                return False
        return False

    def _request(self, verb: str, kind: str, key: str, body: object, view: int) -> tuple[Request, str]:
        now = self.recorder.revision
        fault = self.injector.trouble(self, verb, kind)
        record = Request(self.queue.time, self.identity, verb, kind, key, as_json(body), sent=now, view=view)
        record.status, record.fault = _OK, fault
        if fault in (faults.KILL_BEFORE, faults.KILL_AFTER):
            self.later(0.0, self.kill)
        return record, fault

    def _arrives(self, record: Request, fault: str) -> bool:
        """Whether the server carries a request out; one that it does not is written down here."""
        if fault in (faults.BROKEN, faults.KILL_BEFORE) or fault in faults.STATUS:
            record.status = faults.STATUS.get(fault, 0)
            self.recorder.records.append(record)
            return False
        return True

    def _answered(self, fault: str) -> bool:
        if fault != faults.LOST:
            self.hear_time()
        return fault not in (faults.LOST, faults.KILL_AFTER)


def _decided_on(node: Node) -> tuple[object, ...]:
    metadata = node.metadata
    return metadata.uid, metadata.annotations.get(ANNOTATION), node.spec.unschedulable, node.terminating
