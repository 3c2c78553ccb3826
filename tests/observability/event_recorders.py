"""An event, a clock and a run of the recorder, for tests of Events."""

import asyncio
from contextlib import suppress

from karpool.execution.actions import RecordEvent
from karpool.observability.events import EventRecorder

BLOCKED = RecordEvent("Node", "a", "DisruptionBlocked", "Pod shop/cart-0 must not be disturbed", "Warning")


class ManualClock:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


async def settle(recorder: EventRecorder, results: list[str], number: int) -> None:
    """Let the recorder send until this many events are sent, dropped or refused."""
    task = asyncio.create_task(recorder.run())
    async with asyncio.timeout(20):
        while len(results) < number:  # noqa: ASYNC110 - the recorder tells results, not ends
            await asyncio.sleep(0.01)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
