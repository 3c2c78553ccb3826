"""A process that works until it is told to stop, and then is gone soon."""

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


async def run_until_signalled(work: Callable[[asyncio.Event], Awaitable[None]], goodbye: timedelta) -> bool:
    """Do something until a signal comes; whether it ended within `goodbye` after that."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = [number for number in _SIGNALS if not _ignored(number)]
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    task = asyncio.ensure_future(work(stop))
    asked = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((task, asked), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            _log.info("asked to stop")
            await asyncio.wait((task,), timeout=goodbye.total_seconds())
        if not task.done():
            _log.warning("did not end in time", seconds=goodbye.total_seconds())
            return False
        _raise_alone(task)
        return True
    finally:
        asked.cancel()
        for number in signals:
            loop.remove_signal_handler(number)


def _ignored(number: signal.Signals) -> bool:
    """Ctrl-C is not meant for a process that was started with SIGINT ignored, as background jobs of scripts are."""
    return number == signal.SIGINT and signal.getsignal(number) is signal.SIG_IGN


def _raise_alone(task: asyncio.Future[None]) -> None:
    """Raise what a task failed with; an error that is alone in groups of tasks is what it is about."""
    error = task.exception()
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if error is not None:
        raise error


def stalled(turned: float, most: timedelta) -> str | None:
    """What is wrong with a loop that last turned then, on the steady clock, if it turned too long ago."""
    still = time.monotonic() - turned
    return None if still < most.total_seconds() else f"the loop has not turned for {still:.0f} s"


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Something that goes on while the block lasts; if it fails, the block fails."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work)
        try:
            yield
        finally:
            task.cancel()


async def before(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Whether something was finished before the end was asked for."""
    task, asked = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((task, asked), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        return task.done()
    finally:
        for one in (task, asked):
            one.cancel()
            with suppress(asyncio.CancelledError):
                await one
