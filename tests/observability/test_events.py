"""Kubernetes Events: sent at a limited rate, repeated seldom, and never in the way of decisions."""

import asyncio

from msgspec.structs import replace
from structlog.testing import capture_logs
from tests.live.programs import free_port
from tests.observability.event_recorders import BLOCKED, ManualClock, settle

from karpool.kube.client import Client
from karpool.kube.credentials import FixedCredentials
from karpool.kube.target import Target
from karpool.kube.transport import Timeouts
from karpool.observability.events import EventRecorder


def nobody() -> Client:
    """A client of an API server that is not there."""
    target = Target(server=f"http://127.0.0.1:{free_port()}", credentials=FixedCredentials())
    return Client(target, timeouts=Timeouts(retries=0))


def test_when_too_many_wait_the_oldest_go_and_are_told_when_they_happen_again() -> None:
    results: list[str] = []
    recorder = EventRecorder(nobody(), capacity=3, on_result=results.append)
    for number in range(5):
        recorder.record(replace(BLOCKED, name=f"n-{number}"))
    assert results == ["dropped", "dropped"]
    assert recorder.waiting == 3
    recorder.record(replace(BLOCKED, name="n-4"))
    assert recorder.waiting == 3
    recorder.record(replace(BLOCKED, name="n-0"))
    assert results == ["dropped"] * 3


def test_events_that_cannot_be_sent_stop_nobody_and_are_logged_once_a_minute() -> None:
    async def scenario() -> list[str]:
        results: list[str] = []
        async with nobody() as client:
            watch = ManualClock()
            recorder = EventRecorder(client, per_second=1000, on_result=results.append, clock=watch)
            for number, wait in enumerate((0, 1, 58, 2)):
                watch.seconds += wait
                recorder.record(BLOCKED)
                await settle(recorder, results, number + 1)
        return results

    with capture_logs() as logged:
        assert asyncio.run(scenario()) == ["failed"] * 4
    assert [entry["log_level"] for entry in logged] == ["warning", "warning"]


def test_whoever_does_not_lead_tells_nothing() -> None:
    async def scenario() -> list[str]:
        results: list[str] = []
        async with nobody() as client:
            client.write_gate = lambda: False
            recorder = EventRecorder(client, per_second=1000, on_result=results.append)
            recorder.record(BLOCKED)
            await settle(recorder, results, 1)
        return results

    with capture_logs() as logged:
        assert asyncio.run(scenario()) == ["dropped"]
    assert logged == []


def test_events_are_sent_no_faster_than_asked() -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def scenario() -> None:
        results: list[str] = []
        async with nobody() as client:
            recorder = EventRecorder(client, per_second=4, on_result=results.append, sleep=sleep)
            for number in range(3):
                recorder.record(replace(BLOCKED, name=f"n-{number}"))
            await settle(recorder, results, 3)
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert pauses[:2] == [0.25, 0.25]
