"""Who leads: never two at once, and somebody again soon after the leader is gone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.live import https
from tests.live.control_plane import ControlPlane
from tests.live.virtual_time import VirtualLoop, run_virtually

from karpool.kube.api_objects import LeaseSpec
from karpool.kube.client import Client
from karpool.kube.election import ApiLeases, Elector, Held, LeaseTimes, new_identity
from karpool.kube.errors import ConflictError, ServerError
from karpool.kube.kubeconfig import find_target


@dataclass
class MemoryLeases:
    """A lease in memory, and the troubles that it is to make."""

    held: Held | None = None
    broken: bool = False
    silent: bool = False
    writes: int = 0

    async def _trouble(self) -> None:
        await asyncio.sleep(0.01)
        if self.silent:
            await asyncio.sleep(3600)
        if self.broken:
            raise ServerError(500, "InternalError", "etcd is away")

    async def read(self) -> Held | None:
        await self._trouble()
        return self.held

    async def create(self, spec: LeaseSpec) -> Held:
        await self._trouble()
        if self.held is not None:
            raise ConflictError(409, "AlreadyExists", "there is one")
        return self._written(spec)

    async def update(self, spec: LeaseSpec, version: str) -> Held:
        await self._trouble()
        if self.held is None or self.held.version != version:
            raise ConflictError(409, "Conflict", "it has changed")
        return self._written(spec)

    def _written(self, spec: LeaseSpec) -> Held:
        self.writes += 1
        self.held = Held(spec, str(self.writes))
        return self.held


@dataclass
class Replica:
    """A process that wants to lead: its elector, and what that told it."""

    elector: Elector
    told: list[str] = field(default_factory=list)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        run = self.elector.run(lambda: self.told.append("started"), self._ceased)
        self.task = asyncio.create_task(run)

    def _ceased(self) -> None:
        self.told.append("stopped")
        self.stopped.set()

    async def stop(self) -> None:
        """End as on SIGTERM, without giving up the lease."""
        assert self.task is not None
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


def replica(leases: MemoryLeases, name: str, *, clock_error: timedelta = timedelta()) -> Replica:
    loop = asyncio.get_running_loop()

    def wall() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=loop.time()) + clock_error

    return Replica(Elector(leases, name, clock=loop.time, wall=wall))


@asynccontextmanager
async def replicas(leases: MemoryLeases, *names: str) -> AsyncIterator[list[Replica]]:
    made = [replica(leases, name) for name in names]
    for one in made:
        one.start()
    yield made
    for one in made:
        await one.stop()


def now() -> float:
    return asyncio.get_running_loop().time()


async def time_until_leading(one: Replica, limit: float = 60) -> float:
    start = now()
    while not one.elector.leading:
        assert now() - start < limit
        await asyncio.sleep(0.05)
    return now() - start


def test_one_of_several_leads_and_keeps_leading() -> None:
    async def story() -> list[list[bool]]:
        seen = []
        async with replicas(MemoryLeases(), "a", "b", "c") as made:
            for _ in range(600):
                await asyncio.sleep(0.1)
                seen.append([one.elector.leading for one in made])
        return seen

    seen = run_virtually(story())
    assert all(sum(moment) == 1 for moment in seen[5:])
    assert len({tuple(moment) for moment in seen[5:]}) == 1


def test_a_leader_that_dies_is_followed_when_its_lease_has_run_out() -> None:
    async def story() -> float:
        leases = MemoryLeases()
        async with replicas(leases, "a") as (first,):
            await time_until_leading(first)
            second = replica(leases, "b")
            second.start()
            await asyncio.sleep(20)
            await first.stop()
            waited = await time_until_leading(second)
            await second.stop()
            assert leases.held is not None
            assert (leases.held.spec.holder_identity, leases.held.spec.lease_transitions) == ("b", 1)
        return waited

    assert 10 < run_virtually(story()) < 15 + 2 * 2.4 + 0.1


def test_a_lease_that_is_released_changes_hands_at_once() -> None:
    async def story() -> float:
        leases = MemoryLeases()
        async with replicas(leases, "a") as (first,):
            await time_until_leading(first)
            second = replica(leases, "b")
            second.start()
            await asyncio.sleep(20)
            await first.stop()
            await first.elector.release()
            assert leases.held is not None
            assert (leases.held.spec.holder_identity, leases.held.spec.lease_duration_seconds) == ("", 1)
            waited = await time_until_leading(second)
            await second.stop()
        return waited

    assert run_virtually(story()) < 2.5


def test_whoever_does_not_hold_the_lease_cannot_release_it() -> None:
    async def story() -> str:
        leases = MemoryLeases()
        async with replicas(leases, "a") as (first,):
            await time_until_leading(first)
            await replica(leases, "b").elector.release()
        assert leases.held is not None
        return leases.held.spec.holder_identity

    assert run_virtually(story()) == "a"


@pytest.mark.parametrize("trouble", ["broken", "silent"])
def test_a_leader_that_cannot_renew_stops_at_the_deadline_and_is_told(trouble: str) -> None:
    async def story() -> tuple[float, list[str]]:
        leases = MemoryLeases()
        async with replicas(leases, "a") as (one,):
            await time_until_leading(one)
            await asyncio.sleep(7)
            written = leases.writes
            setattr(leases, trouble, True)
            start = now()
            await one.stopped.wait()
            assert not one.elector.leading
            assert leases.writes == written
        return now() - start, one.told

    waited, told = run_virtually(story())
    assert 7.9 < waited < 10.1
    assert told == ["started", "stopped"]


def test_short_trouble_is_lived_through() -> None:
    async def story() -> tuple[list[str], bool]:
        leases = MemoryLeases()
        async with replicas(leases, "a") as (one,):
            await time_until_leading(one)
            leases.broken = True
            await asyncio.sleep(6)
            leases.broken = False
            await asyncio.sleep(30)
            return list(one.told), one.elector.leading

    assert run_virtually(story()) == (["started"], True)


def test_a_blocked_process_does_not_lead_by_mistake_and_begins_a_new_term() -> None:
    async def story() -> tuple[bool, list[str], int]:
        leases = MemoryLeases()
        async with replicas(leases, "a") as (one,):
            await time_until_leading(one)
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            loop.pass_time(10.5)
            at_once = one.elector.leading
            await asyncio.sleep(5)
            return at_once, list(one.told), one.elector.term

    assert run_virtually(story()) == (False, ["started", "stopped", "started"], 2)


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_wrong_date_on_another_machine_means_nothing(hours: int) -> None:
    async def story() -> list[str]:
        leases = MemoryLeases()
        async with replicas(leases, "a") as (first,):
            await time_until_leading(first)
            other = replica(leases, "b", clock_error=timedelta(hours=hours))
            other.start()
            await asyncio.sleep(120)
            await other.stop()
            assert first.elector.leading
        return other.told

    assert run_virtually(story()) == []


def test_two_never_lead_at_once_whatever_fails() -> None:
    async def story() -> int:
        leases = MemoryLeases()
        together = 0
        async with replicas(leases, "a", "b", "c") as made:
            for second in range(1200):
                leases.broken = second % 97 < 12
                leases.silent = second % 211 < 14
                if second % 300 == 299:
                    leases.held = None
                await asyncio.sleep(1)
                together += sum(one.elector.leading for one in made) > 1
            assert sum(len(one.told) for one in made) > 10
        return together

    assert run_virtually(story()) == 0


def test_a_leader_whose_lease_somebody_took_stops_within_a_retry() -> None:
    async def story() -> float:
        leases = MemoryLeases()
        async with replicas(leases, "a") as (one,):
            await time_until_leading(one)
            assert leases.held is not None
            leases.held = Held(replace(leases.held.spec, holder_identity="thief"), "stolen")
            start = now()
            await one.stopped.wait()
            assert leases.held.spec.holder_identity == "thief"
        return now() - start

    assert run_virtually(story()) < 2.2


def test_renewals_keep_the_time_of_acquiring() -> None:
    async def story() -> tuple[LeaseSpec, LeaseSpec]:
        leases = MemoryLeases()
        async with replicas(leases, "a") as (one,):
            await time_until_leading(one)
            assert leases.held is not None
            early = leases.held.spec
            await asyncio.sleep(10)
            return early, leases.held.spec

    early, late = run_virtually(story())
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


# -- on a real API server ----------------------------------------------------------------------------------------------

LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases/{}"
QUICK = LeaseTimes(duration=3, renewal=1.5, retry=0.2)


@asynccontextmanager
async def contender(plane: ControlPlane, lease: str, name: str) -> AsyncIterator[Replica]:
    async with Client(find_target(kubeconfig=plane.kubeconfig())) as client:
        made = Replica(Elector(ApiLeases(client.ungated(), namespace="default", name=lease), name, QUICK))
        made.start()
        yield made
        await made.stop()


def test_a_killed_leader_is_followed_on_a_real_api_server(control_plane: ControlPlane) -> None:
    async def story() -> tuple[float, list[str]]:
        async with contender(control_plane, "killed", "a") as first, contender(control_plane, "killed", "b") as second:
            leader, other = (first, second) if await leads_first(first, second) is first else (second, first)
            await asyncio.sleep(1)
            assert not other.elector.leading
            await leader.stop()
            return await time_until_leading(other), list(other.told)

    waited, told = asyncio.run(story())
    assert 1 < waited < 6
    assert told == ["started"]


def test_a_released_lease_is_taken_at_once_on_a_real_api_server(control_plane: ControlPlane) -> None:
    async def story() -> float:
        async with contender(control_plane, "released", "a") as first:
            await time_until_leading(first)
            async with contender(control_plane, "released", "b") as second:
                await asyncio.sleep(0.5)
                await first.stop()
                await first.elector.release()
                return await time_until_leading(second)

    assert asyncio.run(story()) < 1
    lease = https.Client(control_plane.kubeconfig()).get(LEASE_PATH.format("released")).body
    assert lease["spec"]["holderIdentity"] == "b"
    assert lease["spec"]["leaseTransitions"] == 1
    assert lease["spec"]["leaseDurationSeconds"] == 3


def test_a_released_lease_belongs_to_nobody(control_plane: ControlPlane) -> None:
    async def story() -> None:
        async with contender(control_plane, "nobody", "a") as one:
            await time_until_leading(one)
            await one.stop()
            await one.elector.release()

    asyncio.run(story())
    lease = https.Client(control_plane.kubeconfig()).get(LEASE_PATH.format("nobody")).body
    assert lease["spec"].get("holderIdentity", "") == ""
    assert lease["spec"]["leaseDurationSeconds"] == 1


def test_two_that_start_together_do_not_both_lead(control_plane: ControlPlane) -> None:
    async def story() -> int:
        async with contender(control_plane, "race", "a") as first, contender(control_plane, "race", "b") as second:
            await leads_first(first, second)
            await asyncio.sleep(1)
            return first.elector.leading + second.elector.leading

    assert asyncio.run(story()) == 1


def test_an_api_server_that_refuses_makes_nobody_lead(control_plane: ControlPlane) -> None:
    async def story() -> bool:
        target = find_target(kubeconfig=control_plane.user_kubeconfig("somebody-without-rights"))
        async with Client(target) as client:
            one = Replica(Elector(ApiLeases(client, namespace="default", name="refused"), "a", QUICK))
            one.start()
            await asyncio.sleep(1)
            await one.stop()
            return one.elector.leading or bool(one.told)

    assert asyncio.run(story()) is False


def test_a_leader_stops_when_the_api_server_is_gone_and_leads_again_when_it_is_back(
    control_plane: ControlPlane,
) -> None:
    async def story() -> tuple[float, int]:
        async with contender(control_plane, "gone", "a") as one:
            await time_until_leading(one)
            control_plane.kill_apiserver()
            start = now()
            await one.stopped.wait()
            waited = now() - start
            await asyncio.to_thread(control_plane.start_apiserver)
            await time_until_leading(one)
            return waited, one.elector.term

    waited, terms = asyncio.run(story())
    assert waited < QUICK.renewal + 0.5
    assert terms == 2


async def leads_first(*contenders: Replica) -> Replica:
    for _ in range(200):
        for one in contenders:
            if one.elector.leading:
                return one
        await asyncio.sleep(0.05)
    raise AssertionError("nobody leads")
