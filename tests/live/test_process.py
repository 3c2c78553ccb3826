"""Which signals end a process."""

import asyncio
import os
import signal
from collections.abc import Iterator
from datetime import timedelta

import pytest

from karpool.live.process import run_until_signalled


@pytest.fixture
def interrupts_ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def signals_until_it_stops(*numbers: signal.Signals) -> list[signal.Signals]:
    """Send signals in turn, to this very process, until it is told to stop; those it took."""
    sent: list[signal.Signals] = []

    async def work(stop: asyncio.Event) -> None:
        for number in numbers:
            sent.append(number)
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.01)
            if stop.is_set():
                return

    asyncio.run(run_until_signalled(work, timedelta(seconds=5)))
    return sent


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_either_signal_asks_a_process_to_stop(number: signal.Signals) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert signals_until_it_stops(number, signal.SIGTERM) == [number]
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts_ignored")
def test_a_process_started_with_interrupts_ignored_stops_by_sigterm_only() -> None:
    assert signals_until_it_stops(signal.SIGINT, signal.SIGTERM) == [signal.SIGINT, signal.SIGTERM]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
