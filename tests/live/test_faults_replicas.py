"""Several replicas: one leads, another takes over, and two never write at once."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.live.control_plane import ControlPlane
from tests.live.fault_scenarios import ONE_EACH, command_begins, expect_replaced_and_clean, grown, prepare, shrink
from tests.live.https import Client as Https
from tests.live.invariants import RuleMonitor, wait_until_settled
from tests.live.proxy import Proxy
from tests.live.trial import QUICK_LEASE, Trial, play

from karpool.kube.resources import LEASES

ROOT = Path(__file__).resolve().parents[2]


async def _leads(trial: Trial) -> asyncio.Task[None]:
    """The replica that leads, as soon as there is one."""

    async def exists() -> bool:
        return any(operator.leading for operator, _ in trial.operators.values())

    await trial.until("a replica leads", exists)
    return next(task for task, (operator, _) in trial.operators.items() if operator.leading)


def test_another_replica_goes_on_when_the_leader_is_killed_or_stopped(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        async with grown(trial) as monitor:
            for name, end in (("one", trial.kill), ("two", trial.stop)):
                trial.start()
                await shrink(trial, name)
                await command_begins(trial, name)
                await end(await _leads(trial))
            await _leads(trial)
            await shrink(trial, "three")
            await expect_replaced_and_clean(trial, monitor)

    play(running_cluster, scenario)


def test_a_leader_whose_loop_is_held_up_keeps_its_lease(control_plane: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        leader = trial.start()
        assert await _leads(trial) is leader
        https, versions = Https(control_plane.kubeconfig()), list[str]()
        # Nothing happens on the loop, until the lease was renewed more often than its deadline has room for.
        wanted = 2 * round(QUICK_LEASE.times.renew_deadline / QUICK_LEASE.times.retry_period)
        for _ in range(5000):
            lease = https.get("/apis/coordination.k8s.io/v1/namespaces/karpool/leases/karpool").body
            if lease["metadata"]["resourceVersion"] not in versions:
                versions.append(lease["metadata"]["resourceVersion"])
            if len(versions) == wanted:
                break
        assert len(versions) == wanted
        operator, _ = trial.operators[leader]
        assert operator.leading
        await trial.stop(leader)
        lease = https.get("/apis/coordination.k8s.io/v1/namespaces/karpool/leases/karpool").body
        assert lease["spec"]["leaseTransitions"] == 0
        assert not lease["spec"].get("holderIdentity")

    play(control_plane, scenario)


def test_a_leader_that_slept_through_the_end_of_its_lease_writes_nothing(running_cluster: ControlPlane) -> None:
    async def scenario(trial: Trial) -> None:
        await prepare(trial, *ONE_EACH)
        async with Proxy(trial.target) as proxy, RuleMonitor(trial, healthy=ONE_EACH, leaving=ONE_EACH) as monitor:
            sleeper = _replica(proxy.url)
            try:
                await wait_until_settled(trial, ONE_EACH)
                sleeper.send_signal(signal.SIGSTOP)
                lease = await trial.client.get(LEASES, "karpool", namespace="karpool")
                written = len(proxy.writes)
                await shrink(trial)
                trial.start()
                await _leads(trial)
                sleeper.send_signal(signal.SIGCONT)
                await expect_replaced_and_clean(trial, monitor)
                assert lease.spec.holder_identity
                assert proxy.writes[written:] == []
                assert sleeper.poll() is None
            finally:
                sleeper.kill()
                sleeper.wait()

    play(running_cluster, scenario)


def _replica(url: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.live.replica", url]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - our own module
