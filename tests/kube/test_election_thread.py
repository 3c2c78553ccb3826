"""An election in a thread of its own: what the process does meanwhile does not delay a renewal."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from karpool.kube.api_objects import Lease, LeaseSpec
from karpool.kube.election import LeaderElector, LeaseTimes
from karpool.kube.election_thread import ElectionThread
from karpool.wire.objects import Metadata

OFTEN = LeaseTimes(duration=60, renew_deadline=40, retry_period=0.001)
PATIENCE = 60.0
"""Seconds after which a test that hangs gives up."""


class CountingLock:
    """A lease in memory that counts its renewals, in whatever thread."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.renewals = 0
        self.threads: set[str] = set()
        self.open = False
        self._renewed = threading.Condition()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[None]:
        self.open = True
        try:
            yield
        finally:
            self.open = False

    async def read(self) -> Lease | None:
        return None

    async def create(self, spec: LeaseSpec) -> Lease:
        return self._written(spec)

    async def update(self, spec: LeaseSpec, version: str) -> Lease:
        assert version
        if self.error is not None:
            raise self.error
        with self._renewed:
            self.renewals += 1
            self._renewed.notify_all()
        return self._written(spec)

    def wait_for(self, renewals: int) -> bool:
        """Block until there are so many more renewals; whether they came."""
        with self._renewed:
            wanted = self.renewals + renewals
            return self._renewed.wait_for(lambda: self.renewals >= wanted, PATIENCE)

    def _written(self, spec: LeaseSpec) -> Lease:
        self.threads.add(threading.current_thread().name)
        return Lease(Metadata(resource_version="1"), spec)


class Election:
    """An election on a lock, and the calls that it makes."""

    def __init__(self, lock: CountingLock, patience: float = PATIENCE) -> None:
        self.elector = LeaderElector(lock, "me", OFTEN)
        self.calls: list[tuple[str, str]] = []
        self.started = asyncio.Event()
        self.thread = ElectionThread(
            self.elector,
            lock.connection(),
            on_started=self._started,
            on_stopped=lambda: self._note("stopped"),
            patience=patience,
        )

    def _started(self) -> None:
        self._note("started")
        self.started.set()

    def _note(self, call: str) -> None:
        self.calls.append((call, threading.current_thread().name))


def test_a_step_that_blocks_the_loop_does_not_delay_renewals() -> None:
    async def scenario() -> tuple[bool, Election]:
        lock = CountingLock()
        election = Election(lock)
        async with election.thread:
            await asyncio.wait_for(election.started.wait(), PATIENCE)
            # The loop of the work does nothing else until the lease was renewed twenty times.
            renewed = lock.wait_for(20)
            assert election.elector.leading
        assert lock.threads == {"election"}
        assert not lock.open
        return renewed, election

    renewed, election = asyncio.run(scenario())
    assert renewed
    assert not election.elector.leading
    here = threading.current_thread().name
    assert election.calls == [("started", here), ("stopped", here)]


def block_while_leading(elector: LeaderElector) -> None:
    while elector.leading:
        time.sleep(0.001)


def test_a_loop_that_never_turns_does_not_lead_for_ever_and_leads_again_when_it_turns() -> None:
    async def scenario() -> list[str]:
        election = Election(CountingLock(), patience=0.1)
        async with election.thread:
            await asyncio.wait_for(election.started.wait(), PATIENCE)
            election.started.clear()
            block_while_leading(election.elector)
            await asyncio.wait_for(election.started.wait(), PATIENCE)
        return [call for call, _ in election.calls]

    assert asyncio.run(scenario())[:3] == ["started", "stopped", "started"]


def test_an_election_that_fails_says_so_to_those_who_work() -> None:
    async def scenario() -> None:
        election = Election(CountingLock(ValueError("a bug")))
        async with election.thread:
            await asyncio.wait_for(election.thread.ended(), PATIENCE)

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(scenario())
    assert raised.group_contains(ValueError, match="a bug")


def test_work_that_ends_at_once_ends_the_election() -> None:
    async def scenario() -> list[tuple[str, str]]:
        election = Election(CountingLock())
        async with election.thread:
            pass
        return election.calls

    for _ in range(20):
        calls = asyncio.run(scenario())
        assert [call for call, _ in calls] in ([], ["started", "stopped"])
