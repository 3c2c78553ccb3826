"""The loop of `karpool run`: apply changes, run tasks that are due, carry out their actions, one after the other.

Tasks run in a thread, so that watches are read and probes answered meanwhile; nothing else happens then.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Final

import structlog

from karpool.controller.controller import Controller
from karpool.controller.ports import Task
from karpool.kube.cache import ChangeQueue
from karpool.operator.actuator import ApiActuator
from karpool.operator.livelock import LivelockMeter
from karpool.operator.task_queue import TaskQueue

_log = structlog.get_logger()
LONGEST_WAIT: Final = 1.0
"""How long the loop waits at most, so that a lost lease or a changed clock is noticed."""
FIRST_RETRY: Final = 1.0
LAST_RETRY: Final = 30.0
_RESTART_DELAY: Final = 10.0


class Loop:
    def __init__(
        self,
        queue: TaskQueue,
        changes: ChangeQueue,
        actuator: ApiActuator,
        controller: Controller,
        *,
        leading: Callable[[], bool],
        term: Callable[[], int],
        caches_current: Callable[[], bool],
        on_iteration: Callable[[], None],
        on_stop: Callable[[], None],
        on_unexpected: Callable[[], None] = lambda: None,
    ) -> None:
        """`term` counts how often this process became leader; `on_iteration` is called while it leads."""
        self._queue = queue
        self._changes = changes
        self._actuator = actuator
        self._controller = controller
        self._leading = leading
        self._term = term
        self._started_in_term = 0
        self._caches_current = caches_current
        self._on_iteration = on_iteration
        self._on_stop = on_stop
        self._on_unexpected = on_unexpected
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decisions")
        self._retry = FIRST_RETRY
        self._retries_at = 0.0
        self._restart_at = 0.0
        self._stopping = asyncio.Event()
        self.last_iteration = time.monotonic()
        """When the loop last made progress, on the monotonic clock."""
        self._livelock = LivelockMeter(self.last_iteration)
        self._turns = controller.turns
        self._stopped_because = "it started"

    def livelocked(self, limit: timedelta) -> str | None:
        """What is wrong with a leader that restarts instead of deciding, for so long."""
        return self._livelock.problem(time.monotonic(), limit)

    async def run(self, stop: asyncio.Event) -> None:
        """Iterate until asked to stop; then finish the current write."""
        self._stopping = stop
        try:
            while not stop.is_set():
                await self._wait(stop)
                self.last_iteration = time.monotonic()
                await self._guarded(self._changes.apply)
                if stop.is_set():
                    break
                await self._follow_leadership()
                await self._actuator.flush()
                if self._controller.running:
                    self._on_iteration()
                    await self._run_due_tasks(stop)
                elif time.monotonic() >= self._restart_at:
                    # A replica that does not lead asks for nothing, so that nothing else would let it forget.
                    await self._guarded(self._controller.cluster_state.current)
                self._note_decisions()
        finally:
            self._stop()
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _wait(self, stop: asyncio.Event) -> None:
        due = self._queue.wait()
        timeout = LONGEST_WAIT if due is None else min(due, LONGEST_WAIT)
        waits = [asyncio.create_task(self._changes.waiting.wait()), asyncio.create_task(stop.wait())]
        try:
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
        self._changes.waiting.clear()

    async def _follow_leadership(self) -> None:
        """Start or stop the controller; a clock that was set restarts it, so that it keeps no old times."""
        reason = self._stop_reason()
        if self._controller.running and reason:
            _log.info("controller stopping", reason=reason)
            self._stopped_because = reason
            self._stop()
        ready = self._leading() and self._caches_current() and time.monotonic() >= self._restart_at
        if not self._controller.running and ready:
            _log.info("controller started")
            self._started_in_term = self._term()
            self._livelock.restarted(self._stopped_because)
            await self._guarded(self._controller.start)

    def _note_decisions(self) -> None:
        turns = self._controller.turns
        if turns != self._turns or not self._leading() or not self._controller.duties.disrupts:
            self._turns = turns
            self._livelock.progressed(time.monotonic())

    def _stop_reason(self) -> str:
        if self._queue.jumped():
            return "the clock was set"
        if not self._leading():
            return "this replica does not lead"
        if self._term() != self._started_in_term:
            return "this replica lost the lease for a while"
        return "" if self._caches_current() else "the caches are out of date"

    def _stop(self) -> None:
        self._controller.stop()
        self._queue.clear()
        self._retry, self._retries_at = FIRST_RETRY, 0.0
        self._on_stop()

    async def _run_due_tasks(self, stop: asyncio.Event) -> None:
        for task in self._queue.due():
            if stop.is_set() or not self._controller.running or not self._leading():
                return
            if await self._guarded(task) and not stop.is_set():
                await self._actuator.flush()
                self._retry_after_failures()
            await self._guarded(self._changes.apply)
            self.last_iteration = time.monotonic()

    async def _guarded(self, task: Task) -> bool:
        """Run a task; an unexpected error restarts the controller. Whether there was none."""
        try:
            await self._in_thread(task)
        except Exception:  # noqa: BLE001
            # A bug must not stop drains for good; all progress is on the objects.
            _log.exception("controller failed; restarting", again_in_seconds=_RESTART_DELAY)
            self._on_unexpected()
            self._controller.cluster_state.stale = True
            self._stopped_because = "it failed unexpectedly"
            self._stop()
            self._restart_at = time.monotonic() + _RESTART_DELAY
            return False
        return True

    def _retry_after_failures(self) -> None:
        """Reconcile everything again after a failed write, with back-off."""
        now = time.monotonic()
        if self._actuator.take_failures() and now >= self._retries_at:
            if now - self._retries_at > 2 * LAST_RETRY:
                self._retry = FIRST_RETRY
            self._retries_at = now + self._retry
            self._queue.after(self._retry, self._controller.resync)
            self._retry = min(2 * self._retry, LAST_RETRY)

    async def _in_thread(self, task: Callable[[], object]) -> None:
        """Run a task beside the event loop; a stop does not wait for it."""
        work = asyncio.get_running_loop().run_in_executor(self._thread, task)
        asked = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((work, asked), return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if work.done():
            work.result()
