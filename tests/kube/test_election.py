"""Leader election: never two leaders at once, and a new one soon after the last is gone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.kube.replicas import Replica, now, time_until_leading
from tests.kube.virtual_time import VirtualLoop, run_virtually

from karpool.kube.api_objects import Lease, LeaseSpec
from karpool.kube.election import LeaderElector, LeaseTimes, new_identity
from karpool.kube.errors import ConflictError, ServerError
from karpool.wire.objects import Metadata


@dataclass
class MemoryLeaseLock:
    """A lease in memory, and the troubles that it is to make."""

    lease: Lease | None = None
    broken: bool = False
    silent: bool = False
    seconds: float = 0.01
    """How long each request takes."""
    writes: int = 0
    lost: int = 0
    """How many of the next requests get no answer."""

    async def _trouble(self) -> None:
        await asyncio.sleep(self.seconds)
        if self.silent or self.lost:
            self.lost = max(0, self.lost - 1)
            await asyncio.sleep(3600)
        if self.broken:
            raise ServerError(500, "InternalError", "etcd is away")

    async def read(self) -> Lease | None:
        await self._trouble()
        return self.lease

    async def create(self, spec: LeaseSpec) -> Lease:
        await self._trouble()
        if self.lease is not None:
            raise ConflictError(409, "AlreadyExists", "there is one")
        return self._written(spec)

    async def update(self, spec: LeaseSpec, version: str) -> Lease:
        await self._trouble()
        if self.lease is None or self.lease.metadata.resource_version != version:
            raise ConflictError(409, "Conflict", "it has changed")
        return self._written(spec)

    def _written(self, spec: LeaseSpec) -> Lease:
        self.writes += 1
        self.lease = Lease(Metadata(resource_version=str(self.writes)), spec)
        return self.lease


def new_replica(lock: MemoryLeaseLock, name: str, *, clock_error: timedelta = timedelta()) -> Replica:
    loop = asyncio.get_running_loop()

    def wall() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=loop.time()) + clock_error

    return Replica(LeaderElector(lock, name, clock=loop.time, wall=wall))


@asynccontextmanager
async def replicas(lock: MemoryLeaseLock, *names: str) -> AsyncIterator[list[Replica]]:
    started = [new_replica(lock, name) for name in names]
    for replica in started:
        replica.start()
    yield started
    for replica in started:
        await replica.stop()


def test_one_of_several_leads_and_keeps_leading() -> None:
    async def scenario() -> list[list[bool]]:
        seen = []
        async with replicas(MemoryLeaseLock(), "a", "b", "c") as started:
            for _ in range(600):
                await asyncio.sleep(0.1)
                seen.append([replica.elector.leading for replica in started])
        return seen

    seen = run_virtually(scenario())
    assert all(sum(moment) == 1 for moment in seen[5:])
    assert len({tuple(moment) for moment in seen[5:]}) == 1


def test_a_leader_that_dies_is_followed_when_its_lease_has_run_out() -> None:
    async def scenario() -> float:
        lock = MemoryLeaseLock()
        async with replicas(lock, "a") as (first,):
            await time_until_leading(first)
            second = new_replica(lock, "b")
            second.start()
            await asyncio.sleep(20)
            await first.stop()
            waited = await time_until_leading(second)
            await second.stop()
            assert lock.lease is not None
            assert (lock.lease.spec.holder_identity, lock.lease.spec.lease_transitions) == ("b", 1)
        return waited

    assert 10 < run_virtually(scenario()) < 15 + 2 * 2.4 + 0.1


def test_a_lease_that_is_released_changes_hands_at_once() -> None:
    async def scenario() -> float:
        lock = MemoryLeaseLock()
        async with replicas(lock, "a") as (first,):
            await time_until_leading(first)
            second = new_replica(lock, "b")
            second.start()
            await asyncio.sleep(20)
            await first.stop()
            await first.elector.release()
            assert lock.lease is not None
            assert (lock.lease.spec.holder_identity, lock.lease.spec.lease_duration_seconds) == ("", 1)
            waited = await time_until_leading(second)
            await second.stop()
        return waited

    assert run_virtually(scenario()) < 2.5


def test_whoever_does_not_hold_the_lease_cannot_release_it() -> None:
    async def scenario() -> str:
        lock = MemoryLeaseLock()
        async with replicas(lock, "a") as (first,):
            await time_until_leading(first)
            await new_replica(lock, "b").elector.release()
        assert lock.lease is not None
        return lock.lease.spec.holder_identity

    assert run_virtually(scenario()) == "a"


@pytest.mark.parametrize("trouble", ["broken", "silent"])
def test_a_leader_that_cannot_renew_stops_at_the_deadline_and_is_told(trouble: str) -> None:
    async def scenario() -> tuple[float, list[str]]:
        lock = MemoryLeaseLock()
        async with replicas(lock, "a") as (leader,):
            await time_until_leading(leader)
            await asyncio.sleep(7)
            written = lock.writes
            setattr(lock, trouble, True)
            start = now()
            await leader.stopped.wait()
            assert not leader.elector.leading
            assert lock.writes == written
        return now() - start, leader.calls

    waited, calls = run_virtually(scenario())
    assert 7.9 < waited < 10.1
    assert calls == ["started", "stopped"]


def test_short_trouble_is_lived_through() -> None:
    async def scenario() -> tuple[list[str], bool]:
        lock = MemoryLeaseLock()
        async with replicas(lock, "a") as (leader,):
            await time_until_leading(leader)
            lock.broken = True
            await asyncio.sleep(6)
            lock.broken = False
            await asyncio.sleep(30)
            return list(leader.calls), leader.elector.leading

    assert run_virtually(scenario()) == (["started"], True)


@pytest.mark.parametrize("seconds", [2.6, 3.9])
def test_a_slow_server_is_enough_to_lead_because_each_request_has_its_own_time(seconds: float) -> None:
    async def scenario() -> tuple[list[str], bool]:
        lock = MemoryLeaseLock(seconds=seconds)
        async with replicas(lock, "a") as (leader,):
            await asyncio.sleep(120)
            return list(leader.calls), leader.elector.leading

    assert run_virtually(scenario()) == (["started"], True)


def test_a_server_that_is_slow_and_loses_an_answer_costs_no_lead() -> None:
    async def scenario() -> list[str]:
        lock = MemoryLeaseLock(seconds=2)
        async with replicas(lock, "a") as (leader,):
            await time_until_leading(leader)
            for _ in range(5):
                lock.lost = 1
                await asyncio.sleep(30)
            return list(leader.calls)

    assert run_virtually(scenario()) == ["started"]


def test_a_lead_counts_from_the_moment_its_last_renewal_was_sent() -> None:
    async def scenario() -> float:
        lock = MemoryLeaseLock(seconds=3.0)
        async with replicas(lock, "a") as (leader,):
            await time_until_leading(leader)
            answered = now()
            lock.silent = True
            await leader.stopped.wait()
            return now() - answered

    # The renewal took 3 of the 10 s.
    assert 6.9 < run_virtually(scenario()) < 7.1


def test_a_blocked_process_does_not_lead_by_mistake_and_begins_a_new_term() -> None:
    async def scenario() -> tuple[bool, list[str], int]:
        lock = MemoryLeaseLock()
        async with replicas(lock, "a") as (leader,):
            await time_until_leading(leader)
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            loop.pass_time(10.5)
            at_once = leader.elector.leading
            await asyncio.sleep(5)
            return at_once, list(leader.calls), leader.elector.term

    assert run_virtually(scenario()) == (False, ["started", "stopped", "started"], 2)


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_wrong_date_on_another_machine_means_nothing(hours: int) -> None:
    async def scenario() -> list[str]:
        lock = MemoryLeaseLock()
        async with replicas(lock, "a") as (first,):
            await time_until_leading(first)
            other = new_replica(lock, "b", clock_error=timedelta(hours=hours))
            other.start()
            await asyncio.sleep(120)
            await other.stop()
            assert first.elector.leading
        return other.calls

    assert run_virtually(scenario()) == []


def test_two_never_lead_at_once_whatever_fails() -> None:
    async def scenario() -> int:
        lock = MemoryLeaseLock()
        together = 0
        async with replicas(lock, "a", "b", "c") as made:
            for second in range(1200):
                lock.broken = second % 97 < 12
                lock.silent = second % 211 < 14
                if second % 300 == 299:
                    lock.lease = None
                await asyncio.sleep(1)
                together += sum(replica.elector.leading for replica in made) > 1
            assert sum(len(replica.calls) for replica in made) > 10
        return together

    assert run_virtually(scenario()) == 0


def test_a_leader_whose_lease_somebody_took_stops_within_a_retry() -> None:
    async def scenario() -> float:
        lock = MemoryLeaseLock()
        async with replicas(lock, "a") as (leader,):
            await time_until_leading(leader)
            assert lock.lease is not None
            lock.lease = Lease(Metadata(resource_version="stolen"), replace(lock.lease.spec, holder_identity="thief"))
            start = now()
            await leader.stopped.wait()
            assert lock.lease.spec.holder_identity == "thief"
        return now() - start

    assert run_virtually(scenario()) < 2.2


def test_renewals_keep_the_time_of_acquiring() -> None:
    async def scenario() -> tuple[LeaseSpec, LeaseSpec]:
        lock = MemoryLeaseLock()
        async with replicas(lock, "a") as (leader,):
            await time_until_leading(leader)
            assert lock.lease is not None
            early = lock.lease.spec
            await asyncio.sleep(10)
            return early, lock.lease.spec

    early, late = run_virtually(scenario())
    assert (late.acquire_time, late.lease_transitions) == (early.acquire_time, 0)
    assert early.renew_time is not None
    assert late.renew_time is not None
    assert late.renew_time > early.renew_time
    assert late.lease_duration_seconds == 15


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_times_that_could_make_two_lead_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="outlast"):
        LeaseTimes(*times)


def test_no_two_processes_have_the_same_identity() -> None:
    assert new_identity() != new_identity()
