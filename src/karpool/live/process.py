"""A process that runs until it gets a signal, and then ends soon."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import structlog

_log = structlog.get_logger()
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def run_until_signalled(work: Callable[[asyncio.Event], Awaitable[None]], shutdown: timedelta) -> bool:
    """Run until SIGTERM or SIGINT; returns whether it ended within `shutdown` after that."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = [number for number in _SIGNALS if not _ignored(number)]
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    task = asyncio.ensure_future(work(stop))
    signalled = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((task, signalled), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            _log.info("stopping")
            await asyncio.wait((task,), timeout=shutdown.total_seconds())
        if not task.done():
            _log.warning("shutdown timed out", seconds=shutdown.total_seconds())
            return False
        _raise_error(task)
        return True
    finally:
        signalled.cancel()
        for number in signals:
            loop.remove_signal_handler(number)


def _ignored(number: signal.Signals) -> bool:
    """Ctrl-C is not meant for a process that was started with SIGINT ignored, as background jobs of scripts are."""
    return number == signal.SIGINT and signal.getsignal(number) is signal.SIG_IGN


def _raise_error(task: asyncio.Future[None]) -> None:
    """Raise the error of a task; a group that holds a single error is replaced by it."""
    error = task.exception()
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if error is not None:
        raise error


def stalled(last_turn: float, limit: timedelta) -> str | None:
    """What is wrong with a loop whose last turn (by `time.monotonic`) is too long ago."""
    seconds = time.monotonic() - last_turn
    return None if seconds < limit.total_seconds() else f"the loop has not turned for {seconds:.0f} s"


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run something while the block lasts; if it fails, the block fails."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work)
        try:
            yield
        finally:
            task.cancel()


async def finished_before(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Run something until `stop` is set; returns whether it finished."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        return task.done()
    finally:
        for waiting in (task, stopped):
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
