"""An election in a thread of its own, so that nothing else that a process does delays the renewal of its lease.

The thread has its own event loop and its own connections. Whatever holds up the loop where the work is done, a long
step or thousands of answers that wait to be read, the lease is renewed. But not for ever: who has not turned for a
minute does not lead, and another process does.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Final, Self

import structlog

from karpool.kube.election import LeaderElector

_log = structlog.get_logger()
PATIENCE: Final = 60.0
"""For how many seconds the lease is renewed for a loop that does not turn."""
_CLOSING: Final = 0.1


class ElectionThread:
    """Runs an elector while the block lasts; `ended` fails if the election does."""

    def __init__(
        self,
        elector: LeaderElector,
        connection: AbstractAsyncContextManager[object],
        *,
        on_started: Callable[[], None],
        on_stopped: Callable[[], None],
        patience: float = PATIENCE,
    ) -> None:
        """`connection` is what the elector's lock needs, opened in the thread; calls come to the loop of the block."""
        self._elector = elector
        self._connection = connection
        self._on_started = on_started
        self._on_stopped = on_stopped
        self._patience = patience
        self._turned = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="election", daemon=True)
        self._stop = threading.Event()
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._beats = asyncio.create_task(self._beat())
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        own_loop = self._own_loop
        if own_loop is not None:
            # It may have ended by itself.
            with suppress(RuntimeError):
                own_loop.call_soon_threadsafe(self._cancel)
        await asyncio.wait((self._done,))
        self._beats.cancel()

    async def ended(self) -> None:
        """Wait until the election ends, and raise the error that ended it."""
        await asyncio.shield(self._done)

    async def _beat(self) -> None:
        while True:
            self._turned = time.monotonic()
            await asyncio.sleep(self._patience / 4)

    # -- in the thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            with asyncio.Runner() as runner:
                try:
                    runner.run(self._elect())
                finally:
                    # Connections over TLS close a moment after they are told to.
                    runner.run(asyncio.sleep(_CLOSING))
        except asyncio.CancelledError:
            pass
        except BaseException as problem:  # noqa: BLE001 - it is raised in the other thread
            error = problem
        self._tell(lambda: self._finish(error))

    async def _elect(self) -> None:
        self._own_loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._stop.is_set():
            return
        async with self._connection:
            while True:
                async with asyncio.TaskGroup() as tasks:
                    run = self._elector.run(lambda: self._tell(self._on_started), lambda: self._tell(self._on_stopped))
                    election = tasks.create_task(run)
                    await self._until(stuck=True)
                    _log.error("the event loop does not turn; giving up the lead", seconds=self._patience)
                    election.cancel()
                await self._until(stuck=False)

    async def _until(self, *, stuck: bool) -> None:
        """Wait until the loop of the work is stuck, or turns again."""
        while True:
            if (time.monotonic() - self._turned >= self._patience) is stuck:
                return
            await asyncio.sleep(self._patience / 4)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _tell(self, call: Callable[[], None]) -> None:
        """Have something called in the loop of the block; nobody waits for it there if that has ended."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def _finish(self, error: BaseException | None) -> None:
        if self._done.done():
            return
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)
