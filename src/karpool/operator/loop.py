"""The loop of `karpool run`: changes come in, deeds that are due are done, their actions are carried out, one by one.

Decisions are made in a thread, so that leases are renewed and watches heard meanwhile; nothing else happens then.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from karpool.controller.controller import Controller
from karpool.controller.ports import Task
from karpool.kube.cache import ChangeQueue
from karpool.operator.actuator import ApiActuator
from karpool.operator.task_queue import TaskQueue

_log = structlog.get_logger()
LONGEST_REST: Final = 1.0
"""How long the loop rests at most: the lead may be lost, or the clock set, without anything else to notice."""
FIRST_RETRY: Final = 1.0
LAST_RETRY: Final = 30.0
_AFTER_A_MISTAKE: Final = 10.0


class Loop:
    """Runs the controller while this process leads."""

    def __init__(
        self,
        queue: TaskQueue,
        changes: ChangeQueue,
        actuator: ApiActuator,
        controller: Controller,
        *,
        leading: Callable[[], bool],
        term: Callable[[], int] = lambda: 0,
        trusted: Callable[[], bool] = lambda: True,
        each_turn: Callable[[], None] = lambda: None,
        at_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """`term`: how often the lead was won so far; `trusted`: whether caches show the cluster.

        `each_turn` is called while leading, between deeds, and `at_stop` whenever a life of the controller ends.
        """
        self._queue = queue
        self._changes = changes
        self._actuator = actuator
        self._controller = controller
        self._leading = leading
        self._term = term
        self._led_in = 0
        self._trusted = trusted
        self._each_turn = each_turn
        self._at_stop = at_stop
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decisions")
        self._retry = FIRST_RETRY
        self._retries_at = 0.0
        self._not_before = 0.0
        self._stopping = asyncio.Event()
        self.turned = time.monotonic()
        """When the loop last came round, on the steady clock."""

    async def run(self, stop: asyncio.Event) -> None:
        """Turn until asked to stop; the write that is under way then is finished."""
        self._stopping = stop
        try:
            while not stop.is_set():
                await self._rest(stop)
                self.turned = time.monotonic()
                await self._guarded(self._changes.apply)
                if stop.is_set():
                    break
                await self._follow_the_lead()
                await self._actuator.settle()
                if self._controller.running:
                    self._each_turn()
                    await self._do_what_is_due(stop)
        finally:
            self._stop()
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _rest(self, stop: asyncio.Event) -> None:
        """Wait for a change or for something that is due."""
        due = self._queue.wait()
        rest = LONGEST_REST if due is None else min(due, LONGEST_REST)
        waits = [asyncio.create_task(self._changes.waiting.wait()), asyncio.create_task(stop.wait())]
        try:
            await asyncio.wait(waits, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
        self._changes.waiting.clear()

    async def _follow_the_lead(self) -> None:
        """Begin or end a life of the controller; a clock that was set ends one, and the next knows no old times."""
        reason = self._why_stop()
        if self._controller.running and reason:
            _log.info("the controller stops", reason=reason)
            self._stop()
        ready = self._leading() and self._trusted() and time.monotonic() >= self._not_before
        if not self._controller.running and ready:
            _log.info("the controller starts")
            self._led_in = self._term()
            await self._guarded(self._controller.start)

    def _why_stop(self) -> str:
        if self._queue.jumped():
            return "the clock was set"
        if not self._leading():
            return "this replica does not lead"
        if self._term() != self._led_in:
            return "this replica did not lead for a while"
        return "" if self._trusted() else "nothing was heard from the API server for too long"

    def _stop(self) -> None:
        self._controller.stop()
        self._queue.clear()
        self._retry, self._retries_at = FIRST_RETRY, 0.0
        self._at_stop()

    async def _do_what_is_due(self, stop: asyncio.Event) -> None:
        for task in self._queue.due():
            if stop.is_set() or not self._controller.running or not self._leading():
                return
            if await self._guarded(task) and not stop.is_set():
                await self._actuator.settle()
                self._look_again_after_failures()
            await self._guarded(self._changes.apply)
            self.turned = time.monotonic()

    async def _guarded(self, task: Task) -> bool:
        """Whether something was done without a mistake of ours; one ends this life of the controller."""
        try:
            await self._in_thread(task)
        except Exception:  # noqa: BLE001
            # It must not stop drains for good, and all that matters stands on the objects.
            _log.exception("a mistake in Karpool; the controller starts anew", again_in_seconds=_AFTER_A_MISTAKE)
            self._controller.cluster_state.stale = True
            self._stop()
            self._not_before = time.monotonic() + _AFTER_A_MISTAKE
            return False
        return True

    def _look_again_after_failures(self) -> None:
        """Nobody hears of a write that failed, so everything is looked at again after a while."""
        now = time.monotonic()
        if self._actuator.take_failures() and now >= self._retries_at:
            if now - self._retries_at > 2 * LAST_RETRY:
                self._retry = FIRST_RETRY
            self._retries_at = now + self._retry
            self._queue.after(self._retry, self._controller.look_again)
            self._retry = min(2 * self._retry, LAST_RETRY)

    async def _in_thread(self, task: Callable[[], object]) -> None:
        """Do something beside the event loop; if the end is asked for meanwhile, nobody waits for it."""
        work = asyncio.get_running_loop().run_in_executor(self._thread, task)
        asked = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((work, asked), return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if work.done():
            work.result()
