"""Carries out the actions of `execution` on an API server.

Actions are collected during a task and carried out by `flush`, so that no decision is made during a write. Changes of
one object become one patch; different objects are written concurrently.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final, Protocol

import structlog

from karpool.execution import actions as a
from karpool.kube.errors import ApiError, ConflictError, NotLeadingError, TooManyRequestsError
from karpool.live.patches import target
from karpool.live.writer import Writer
from karpool.model.nodepool import NodeClaim
from karpool.observability.events import EventSink
from karpool.operator.instances.instance_launcher import InstanceLauncher
from karpool.operator.instances.instance_tasks import Alive

_log = structlog.get_logger()
_REFUSALS: Final = range(400, 500)
CONCURRENT_WRITES: Final = 20
"""How many objects are written at the same time."""


@dataclass(frozen=True, slots=True)
class _Batch:
    actions: tuple[a.Action, ...]
    alive: Alive
    in_order: bool


class OnRefused(Protocol):
    """Is told of an action that was not done: what the API server said, and whether it is certain."""

    def __call__(self, action: a.Action, message: str, *, final: bool) -> None:
        """Take note of it."""


def _ignore(action: a.Action, message: str, *, final: bool) -> None:
    """Nobody wants to know."""
    del action, message, final


class ApiActuator:
    """Collects actions until `flush` carries them out; a dry run drops them."""

    def __init__(
        self,
        writer: Writer,
        recorder: EventSink,
        launcher: InstanceLauncher | None,
        *,
        stopping: Callable[[], bool],
        dry_run: bool = False,
    ) -> None:
        """`stopping`: whether a stop was asked for; then no further write starts."""
        self._writer = writer
        self._recorder = recorder
        self._launcher = launcher
        self._stopping = stopping
        self._dry_run = dry_run
        self._batches: list[_Batch] = []
        self._slots = asyncio.Semaphore(CONCURRENT_WRITES)
        self._failures = 0
        self._refusal = ""
        """What the API server said against the current step of a batch, if it refused something for good."""
        self.on_refused: OnRefused = _ignore
        """Called with an action that was not done, what the API server said, and whether that is certain."""
        self.on_deletion_cost: Callable[[a.SetDeletionCost], None] = lambda _action: None
        """Called with a deletion cost that a pod is to get some time."""
        self.on_created: Callable[[NodeClaim], None] = lambda _claim: None
        """Called with a NodeClaim that the API server has."""

    def execute(self, actions: Sequence[a.Action], *, alive: Alive, in_order: bool = False) -> None:
        self._batches.append(_Batch(tuple(actions), alive, in_order))

    async def flush(self) -> None:
        """Carry out all collected actions; batches without an order are carried out concurrently."""
        batches, self._batches = self._batches, []
        for in_order, group in groupby(() if self._dry_run else batches, key=lambda batch: batch.in_order):
            together = list(group)
            if in_order:
                for batch in together:
                    await self._in_order(batch)
            else:
                actions = [action for batch in together for action in batch.actions]
                await self._concurrently(actions, together[-1].alive)

    async def _in_order(self, batch: _Batch) -> None:
        steps = [list(step) for _, step in groupby(batch.actions, key=type)]  # none depends on another of its type
        for number, step in enumerate(steps, start=1):
            self._refusal = ""
            if not await self._concurrently(step, batch.alive):
                # What depends on a step that was refused is as good as refused.
                for action in chain.from_iterable(steps[number:] if self._refusal else ()):
                    self.on_refused(action, self._refusal, final=True)
                return

    def take_failures(self) -> int:
        """How many writes failed since the last call; none was retried."""
        failures, self._failures = self._failures, 0
        return failures

    async def _concurrently(self, actions: Sequence[a.Action], alive: Alive) -> bool:
        """Whether all actions succeeded; those on one object are carried out one after the other."""
        by_object: dict[tuple[str, str], list[a.Action]] = {}
        for action in actions:
            by_object.setdefault(_object_of(action), []).append(action)
        return all(await asyncio.gather(*(self._write_object(group, alive) for group in by_object.values())))

    async def _write_object(self, actions: list[a.Action], alive: Alive) -> bool:
        """Carry out the actions on one object in as few requests as possible."""
        for _, group in groupby(actions, key=lambda action: isinstance(action, a.Edit)):
            async with self._slots:
                if self._stopping() or not alive() or not await self._succeeds(list(group)):
                    return False
        return True

    async def _succeeds(self, actions: list[a.Action]) -> bool:
        try:
            await self._write(actions)
        except ApiError as error:
            self._failures += 1
            if not isinstance(error, NotLeadingError):
                self._refusal = error.message if _is_refusal(error) else self._refusal
                for action in actions:
                    self.on_refused(action, error.message, final=_is_refusal(error))
                about = " ".join(_object_of(actions[0]))
                _log.warning("action failed", action=type(actions[0]).__name__, about=about, error=str(error))
            return False
        return True

    async def _write(self, actions: list[a.Action]) -> None:
        await self._writer.edit([action for action in actions if isinstance(action, a.Edit)])
        for action in actions:
            match action:
                case a.CreateClaim() | a.DeleteClaim() | a.DeleteNode() | a.DeletePod() | a.EvictPod():
                    await self._writer.apply(action)
                    if isinstance(action, a.CreateClaim):
                        self.on_created(action.claim)
                case a.TerminateInstance():
                    if self._launcher is not None:
                        self._launcher.terminate(action)
                case a.RebootInstance():
                    if self._launcher is not None:
                        self._launcher.reboots.ask(action)
                case a.SetDeletionCost():
                    self.on_deletion_cost(action)
                case a.RecordEvent():
                    self._recorder.record(action)
                case _:
                    pass  # an edit, written above


def _is_refusal(error: ApiError) -> bool:
    """Whether the API server has looked at a write and did not do it: rules, quotas and webhooks say so like this."""
    return error.status in _REFUSALS and not isinstance(error, ConflictError | TooManyRequestsError)


def _object_of(action: a.Action) -> tuple[str, str]:
    match action:
        case a.CreateClaim(claim=claim):
            return "NodeClaim", claim.name
        case a.DeleteClaim(name=name) | a.TerminateInstance(claim=name) | a.RebootInstance(claim=name):
            return "NodeClaim", name
        case a.DeleteNode(name=name):
            return "Node", name
        case a.EvictPod(key=key) | a.DeletePod(key=key) | a.SetDeletionCost(key=key):
            return "Pod", key
        case a.RecordEvent():
            return "Event", f"{action.kind} {action.name}"
        case _:
            return target(action)[:2]
