"""The requests of one controller: written down, and refused, delayed, lost or repeated on their way to the server."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tests.robustness import fault_plan as faults
from tests.robustness.checker.records import Request
from tests.robustness.recorder import as_json

from karpool.controller.ports import FactsRead
from karpool.execution import actions as a
from karpool.execution.fresh_facts import FreshNode
from karpool.live.patches import target
from karpool.virtual.facts import VirtualFacts

if TYPE_CHECKING:
    from tests.robustness.replica import Replica

_OK: Final = 200
_CREATED: Final = 201
_TRIES: Final = 5
_REFUSALS: Final = range(400, 500)
"""Answers after which it is certain that nothing was done, but for conflicts and "too many requests"."""
_READ_SECONDS: Final = 0.02
FIRST_RETRY: Final = 1.0
LAST_RETRY: Final = 30.0


@dataclass(eq=False)
class _Step:
    """Requests that do not depend on each other, and the step that has to succeed before them."""

    before: _Step | None = None
    failed: bool = False
    refusal: str = ""
    """What the server said, if it refused something for good."""

    @property
    def blocked_by(self) -> _Step | None:
        """The step before this one that failed."""
        if self.before is None or self.before.failed:
            return self.before
        return self.before.blocked_by


@dataclass(eq=False)
class _Request:
    """Actions that one request carries out, and what it depends on."""

    actions: tuple[a.Action, ...]
    verb: str
    kind: str
    key: str
    alive: Callable[[], bool]
    step: _Step
    tries: int = 0

    @property
    def chain(self) -> tuple[_Step, str, str]:
        """Requests about one object, which are sent until the first that fails."""
        return self.step, self.kind, self.key


class RequestSender:
    """An Actuator as that of `karpool run`: collects actions during a task, and sends them when it is done."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._recorder = replica.recorder
        self._cluster = replica.recorder.cluster
        self._waiting: deque[_Request] = deque()
        self._view = 0
        self._failed: set[tuple[_Step, str, str]] = set()
        self._retry = FIRST_RETRY
        self._retries_at = 0.0
        self.busy = False

    def execute(self, actions: Sequence[a.Action], *, alive: Callable[[], bool], in_order: bool = False) -> None:
        self._waiting.extend(_requests(actions, alive, in_order=in_order))

    @property
    def asked(self) -> bool:
        """Whether there is something to send."""
        return bool(self._waiting)

    def flush(self, view: int) -> None:
        """Send everything that a task asked for; `view` is what it knew."""
        self._view = view
        self._failed.clear()
        self._go_on()

    def drop(self) -> None:
        """Forget what was not sent: the process is gone."""
        self._waiting.clear()
        self.busy = False

    def _go_on(self) -> None:
        """Send the next requests, until one takes its time."""
        self.busy = True
        replica = self._replica
        while self._waiting and replica.runs:
            request = self._waiting.popleft()
            if not self._may_be_sent(request):
                continue
            delay = replica.injector.latency(replica)
            if delay:
                sent = self._recorder.revision
                replica.later(delay, partial(self._arrived_late, request, sent))
                return
            self._arrive(request, self._recorder.revision)
        self.busy = False
        if replica.runs:
            replica.idle()

    def _may_be_sent(self, request: _Request) -> bool:
        """As the actuator of `karpool run` asks before each write."""
        blocker = request.step.blocked_by
        if blocker is not None:
            # What depends on a step that was refused is as good as refused.
            for action in request.actions if blocker.refusal else ():
                self._replica.controller.refused(action, blocker.refusal, final=True)
            return False
        if request.chain in self._failed:
            return False
        if not request.alive():
            self._fail(request)
            return False
        if not self._replica.may_write():
            self._fail(request)
            self._note_failure()
            return False
        return True

    def _fail(self, request: _Request) -> None:
        request.step.failed = True
        self._failed.add(request.chain)

    def _arrived_late(self, request: _Request, sent: int) -> None:
        self._arrive(request, sent)
        self._go_on()

    # -- at the server -------------------------------------------------------------------------------------------

    def _arrive(self, request: _Request, sent: int) -> None:
        replica = self._replica
        fault = replica.injector.trouble(replica, request.verb, request.kind)
        record = Request(
            self._recorder.queue.time,
            replica.identity,
            request.verb,
            request.kind,
            request.key,
            as_json(request.actions),
            sent=sent,
            view=self._view,
            fault=fault,
        )
        if fault in (faults.BROKEN, faults.KILL_BEFORE):
            self._recorder.records.append(record)
        elif fault in faults.STATUS:
            record.status = faults.STATUS[fault]
            self._recorder.records.append(record)
        else:
            with self._recorder.request(record):
                record.status = self._carry_out(request)
                if fault == faults.TWICE:
                    self._carry_out(request)
            replica.injector.carried_out(replica, request.actions)
        self._answer(request, sent, fault)

    def _carry_out(self, request: _Request) -> int:
        for action in request.actions:
            if isinstance(action, a.EvictPod):
                return int(self._cluster.api.evict(action.key, action.uid))
            self._cluster.actuator.execute((action,), alive=lambda: True)
        return _CREATED if request.verb == "create" else _OK

    def _answer(self, request: _Request, sent: int, fault: str) -> None:
        replica = self._replica
        if fault in (faults.KILL_BEFORE, faults.KILL_AFTER):
            replica.kill()
        elif fault == faults.CONFLICT and request.verb == "patch" and request.tries < _TRIES - 1:
            request.tries += 1
            self._arrive(request, sent)
        elif fault in (faults.BROKEN, faults.LOST) or fault in faults.STATUS:
            if not (fault == faults.TOO_MANY and request.verb == "evict"):  # as if a budget had refused it
                self._fail(request)
                final = _is_refusal(fault)
                request.step.refusal = fault if final else request.step.refusal
                for action in request.actions:
                    replica.controller.refused(action, fault, final=final)
                self._note_failure()
        elif request.verb in ("patch", "create"):
            replica.watches.learn(request.kind, request.key)
        if replica.runs and fault not in (faults.BROKEN, faults.LOST):
            replica.hear_time()

    # -- reads ---------------------------------------------------------------------------------------------------

    def read(self, nodes: Sequence[str], done: FactsRead) -> None:
        """Read nodes and their pods from the server, then call `done` as a task."""
        replica = self._replica
        replica.after(_READ_SECONDS + replica.injector.latency(replica), partial(self._read, nodes, done))

    def _read(self, nodes: Sequence[str], done: FactsRead) -> None:
        facts = {name: self._read_node(name) for name in nodes if self._replica.runs}
        if self._replica.runs:
            done(facts)

    def _read_node(self, name: str) -> FreshNode:
        replica, now = self._replica, self._recorder.revision
        fault = replica.injector.trouble(replica, "list", "Pod")
        record = Request(
            self._recorder.queue.time, replica.identity, "list", "Pod", name, sent=now, view=now, fault=fault
        )
        self._recorder.records.append(record)
        if fault in (faults.KILL_BEFORE, faults.KILL_AFTER):
            replica.kill()
        if fault and fault != faults.TWICE:
            record.status = faults.STATUS.get(fault, 0)
            return FreshNode(problem=fault)
        record.status = _OK
        facts = VirtualFacts(self._cluster.store).facts_of([name])[name]
        replica.watches.learn("Node", name)
        for pod in facts.pods:
            replica.watches.learn("Pod", pod.key)
        return facts

    def _note_failure(self) -> None:
        """Have everything reconciled again after a failed write, with back-off, as the loop of `karpool run` does."""
        replica, now = self._replica, self._recorder.queue.time
        if now >= self._retries_at:
            if now - self._retries_at > 2 * LAST_RETRY:
                self._retry = FIRST_RETRY
            self._retries_at = now + self._retry
            replica.after(self._retry, replica.resync)
            self._retry = min(2 * self._retry, LAST_RETRY)


def _is_refusal(fault: str) -> bool:
    """Whether the server has certainly not done what it was asked for."""
    return faults.STATUS.get(fault, 0) in _REFUSALS and fault not in (faults.CONFLICT, faults.TOO_MANY)


def _requests(actions: Sequence[a.Action], alive: Callable[[], bool], *, in_order: bool) -> list[_Request]:
    """The requests for a batch: edits of one object together, all others alone."""
    requests = []
    current: _Step | None = None
    for listed in [list(step) for _, step in groupby(actions, key=type)] if in_order else [list(actions)]:
        current = _Step(before=current)
        by_object: dict[tuple[str, str], list[a.Action]] = {}
        for action in listed:
            if not isinstance(action, a.RecordEvent):
                by_object.setdefault(_object_of(action), []).append(action)
        for (kind, key), whole in by_object.items():
            for part, some in groupby(whole, key=_part_of):
                together = tuple(some)
                groups = [together] if part else [(action,) for action in together]
                requests += [_Request(group, _verb_of(group[0]), kind, key, alive, current) for group in groups]
    return requests


def _part_of(action: a.Action) -> str:
    """Which edits go together; nothing for what is no edit."""
    return f"edit {target(action)[2]}" if isinstance(action, a.Edit) else ""


def _verb_of(action: a.Action) -> str:
    match action:
        case a.CreateClaim():
            return "create"
        case a.EvictPod():
            return "evict"
        case a.TerminateInstance():
            return "terminate"
        case a.RebootInstance():
            return "reboot"
        case a.DeleteClaim() | a.DeleteNode() | a.DeletePod():
            return "delete"
        case _:
            return "patch"


def _object_of(action: a.Action) -> tuple[str, str]:
    match action:
        case a.CreateClaim(claim=claim):
            return "NodeClaim", claim.name
        case a.DeleteClaim(name=name):
            return "NodeClaim", name
        case a.TerminateInstance(claim=name) | a.RebootInstance(claim=name):
            return "Instance", name
        case a.DeleteNode(name=name):
            return "Node", name
        case a.EvictPod(key=key) | a.DeletePod(key=key):
            return "Pod", key
        case a.RecordEvent():
            return "Event", action.name
        case _:
            return target(action)[:2]
