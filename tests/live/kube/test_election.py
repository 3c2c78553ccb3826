"""Leader election on a real API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.kube.replicas import Replica, now, time_until_leading
from tests.live import https
from tests.live.control_plane import ControlPlane

from karpool.kube.client import Client
from karpool.kube.election import ApiLeaseLock, LeaderElector, LeaseTimes
from karpool.kube.kubeconfig import find_target

LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases/{}"
QUICK = LeaseTimes(duration=3, renew_deadline=1.5, retry_period=0.2)


@asynccontextmanager
async def contender(plane: ControlPlane, lease: str, name: str) -> AsyncIterator[Replica]:
    async with Client(find_target(kubeconfig=plane.kubeconfig())) as client:
        made = Replica(LeaderElector(ApiLeaseLock(client.ungated(), namespace="default", name=lease), name, QUICK))
        made.start()
        yield made
        await made.stop()


def test_a_killed_leader_is_followed_on_a_real_api_server(control_plane: ControlPlane) -> None:
    async def scenario() -> tuple[float, list[str]]:
        async with contender(control_plane, "killed", "a") as first, contender(control_plane, "killed", "b") as second:
            leader, other = (first, second) if await leads_first(first, second) is first else (second, first)
            await asyncio.sleep(1)
            assert not other.elector.leading
            await leader.stop()
            return await time_until_leading(other), list(other.calls)

    waited, calls = asyncio.run(scenario())
    assert 1 < waited < 6
    assert calls == ["started"]


def test_a_released_lease_is_taken_at_once_on_a_real_api_server(control_plane: ControlPlane) -> None:
    async def scenario() -> float:
        async with contender(control_plane, "released", "a") as first:
            await time_until_leading(first)
            async with contender(control_plane, "released", "b") as second:
                await asyncio.sleep(0.5)
                await first.stop()
                await first.elector.release()
                return await time_until_leading(second)

    assert asyncio.run(scenario()) < 1
    lease = https.Client(control_plane.kubeconfig()).get(LEASE_PATH.format("released")).body
    assert lease["spec"]["holderIdentity"] == "b"
    assert lease["spec"]["leaseTransitions"] == 1
    assert lease["spec"]["leaseDurationSeconds"] == 3


def test_a_released_lease_belongs_to_nobody(control_plane: ControlPlane) -> None:
    async def scenario() -> None:
        async with contender(control_plane, "nobody", "a") as leader:
            await time_until_leading(leader)
            await leader.stop()
            await leader.elector.release()

    asyncio.run(scenario())
    lease = https.Client(control_plane.kubeconfig()).get(LEASE_PATH.format("nobody")).body
    assert lease["spec"].get("holderIdentity", "") == ""
    assert lease["spec"]["leaseDurationSeconds"] == 1


def test_two_that_start_together_do_not_both_lead(control_plane: ControlPlane) -> None:
    async def scenario() -> int:
        async with contender(control_plane, "race", "a") as first, contender(control_plane, "race", "b") as second:
            await leads_first(first, second)
            await asyncio.sleep(1)
            return first.elector.leading + second.elector.leading

    assert asyncio.run(scenario()) == 1


def test_an_api_server_that_refuses_makes_nobody_lead(control_plane: ControlPlane) -> None:
    async def scenario() -> bool:
        target = find_target(kubeconfig=control_plane.user_kubeconfig("somebody-without-rights"))
        async with Client(target) as client:
            leader = Replica(LeaderElector(ApiLeaseLock(client, namespace="default", name="refused"), "a", QUICK))
            leader.start()
            await asyncio.sleep(1)
            await leader.stop()
            return leader.elector.leading or bool(leader.calls)

    assert asyncio.run(scenario()) is False


def test_a_leader_stops_when_the_api_server_is_gone_and_leads_again_when_it_is_back(
    control_plane: ControlPlane,
) -> None:
    async def scenario() -> tuple[float, int]:
        async with contender(control_plane, "gone", "a") as leader:
            await time_until_leading(leader)
            control_plane.kill_apiserver()
            start = now()
            await leader.stopped.wait()
            waited = now() - start
            await asyncio.to_thread(control_plane.start_apiserver)
            await time_until_leading(leader)
            return waited, leader.elector.term

    waited, terms = asyncio.run(scenario())
    assert waited < QUICK.renew_deadline + 0.5
    assert terms == 2


async def leads_first(*contenders: Replica) -> Replica:
    for _ in range(200):
        for leader in contenders:
            if leader.elector.leading:
                return leader
        await asyncio.sleep(0.05)
    raise AssertionError("nobody leads")
