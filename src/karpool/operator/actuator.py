"""Carries out execution's actions on Kubernetes: each one exactly as `execution.actions` describes it.

Actions are gathered while somebody decides and carried out when `settle` is called, so that nobody decides while a
write is under way. Changes of one object become one patch; different objects are written side by side.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol

import structlog

from karpool.execution import actions as a
from karpool.kube.errors import ApiError, NotLeadingError
from karpool.live.patches import EDITS, target
from karpool.live.writer import Writer
from karpool.observability.events import EventSink

_log = structlog.get_logger()
AT_ONCE: Final = 20
"""How many objects may be written at the same time."""
Alive = Callable[[], bool]


class InstanceTerminator(Protocol):
    """Ends machines."""

    def terminate(self, action: a.TerminateInstance) -> None:
        """Note that a machine is to end; its claim says what came of it."""


@dataclass(frozen=True, slots=True)
class _Batch:
    actions: tuple[a.Action, ...]
    alive: Alive
    in_order: bool


class ApiActuator:
    """Gathers actions, and carries them out when asked to settle; in a dry run they are forgotten."""

    def __init__(
        self,
        writer: Writer,
        recorder: EventSink,
        terminator: InstanceTerminator | None,
        *,
        stopping: Callable[[], bool],
        dry_run: bool = False,
    ) -> None:
        """`stopping`: whether the end was asked for; then no further write begins."""
        self._writer = writer
        self._recorder = recorder
        self._terminator = terminator
        self._stopping = stopping
        self._dry_run = dry_run
        self._batches: list[_Batch] = []
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._failures = 0

    def execute(self, actions: Sequence[a.Action], *, alive: Alive, in_order: bool = False) -> None:
        """Take actions in; `settle` carries them out."""
        self._batches.append(_Batch(tuple(actions), alive, in_order))

    async def settle(self) -> None:
        """Carry out everything that was taken in; batches without an order go side by side."""
        batches, self._batches = self._batches, []
        for in_order, group in groupby(() if self._dry_run else batches, key=lambda batch: batch.in_order):
            listed = list(group)
            if in_order:
                for batch in listed:
                    await self._step_by_step(batch)
            else:
                actions = [action for batch in listed for action in batch.actions]
                await self._side_by_side(actions, listed[-1].alive)

    async def _step_by_step(self, batch: _Batch) -> None:
        for step in _by_type(batch.actions):
            if not await self._side_by_side(step, batch.alive):
                return

    def take_failures(self) -> int:
        """How many objects could not be written since the last question; nobody has tried again."""
        failures, self._failures = self._failures, 0
        return failures

    async def _side_by_side(self, actions: Sequence[a.Action], alive: Alive) -> bool:
        """Whether all actions worked; those on one object are carried out one after the other."""
        lanes: dict[tuple[str, str], list[a.Action]] = {}
        for action in actions:
            lanes.setdefault(_object_of(action), []).append(action)
        return all(await asyncio.gather(*(self._lane(lane, alive) for lane in lanes.values())))

    async def _lane(self, actions: list[a.Action], alive: Alive) -> bool:
        """Carry out the actions on one object in as few requests as possible."""
        for _, group in groupby(actions, key=_edited_part):
            async with self._slots:
                if self._stopping() or not alive() or not await self._works(list(group)):
                    return False
        return True

    async def _works(self, actions: list[a.Action]) -> bool:
        try:
            await self._write(actions)
        except NotLeadingError:
            self._failures += 1
            return False
        except ApiError as error:
            self._failures += 1
            about = " ".join(_object_of(actions[0]))
            _log.warning("action failed", action=type(actions[0]).__name__, about=about, error=str(error))
            return False
        return True

    async def _write(self, actions: list[a.Action]) -> None:
        """Write either edits of the same part of an object, or whatever else is to be done with it."""
        await self._writer.edit([action for action in actions if isinstance(action, EDITS)])
        for action in actions:
            match action:
                case a.CreateClaim() | a.DeleteClaim() | a.DeleteNode() | a.DeletePod() | a.EvictPod():
                    await self._writer.apply(action)
                case a.TerminateInstance():
                    if self._terminator is not None:
                        self._terminator.terminate(action)
                case a.RecordEvent():
                    self._recorder.record(action)
                case _:
                    pass  # an edit, written already


def _by_type(actions: Iterable[a.Action]) -> list[list[a.Action]]:
    """Actions that begin a command, in steps of one type: within a step no action rests on another."""
    return [list(group) for _, group in groupby(actions, key=type)]


def _object_of(action: a.Action) -> tuple[str, str]:
    """The object that an action is about."""
    match action:
        case a.CreateClaim(claim=claim):
            return "NodeClaim", claim.name
        case a.DeleteClaim(name=name) | a.TerminateInstance(claim=name):
            return "NodeClaim", name
        case a.DeleteNode(name=name):
            return "Node", name
        case a.EvictPod(key=key) | a.DeletePod(key=key):
            return "Pod", key
        case a.RecordEvent():
            return "Event", f"{action.kind} {action.name}"
        case _:
            return target(action)[:2]


def _edited_part(action: a.Action) -> str | None:
    """The part of an object that an edit is about; None for actions that are not edits."""
    return target(action)[2] if isinstance(action, EDITS) else None
