"""`karpool run` as a process: killed, stopped by a signal, and started with a wrong kubeconfig."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from tests.live.control_plane import ControlPlane
from tests.live.fault_scenarios import prepare
from tests.live.invariants import RuleMonitor, expect_nothing_left_behind
from tests.live.trial import Trial, play

from karpool.kube.errors import NotFoundError
from karpool.kube.resources import LEASES

QUICK = (
    "--act",
    "--provider=kwok",
    "--metrics-address=0",
    "--health-address=0",
    "--batch-idle-duration=300ms",
    "--poll-interval=500ms",
    "--validation-delay=500ms",
)


def _run(kubeconfig: Path, lease: str, log: Path) -> subprocess.Popen[bytes]:
    program = Path(sys.executable).with_name("karpool")
    command: list[str | Path] = [program, "run", f"--kubeconfig={kubeconfig}", f"--lease-name={lease}", *QUICK]
    with log.open("ab") as said:
        return subprocess.Popen(command, stdout=said, stderr=said)  # noqa: S603 - our own program


async def _holder(trial: Trial, lease: str) -> str:
    try:
        return (await trial.client.get(LEASES, lease, namespace="karpool")).spec.holder_identity
    except NotFoundError:
        return ""


async def _leads(trial: Trial, lease: str) -> None:
    async def holds() -> bool:
        return await _holder(trial, lease) != ""

    await trial.until("the process leads", holds)


def test_a_process_that_is_killed_or_stopped_leaves_nothing_behind(
    running_cluster: ControlPlane, tmp_path: Path
) -> None:
    async def scenario(trial: Trial) -> None:
        kubeconfig = running_cluster.kubeconfig()
        await prepare(trial, "one")
        first = _run(kubeconfig, "first", tmp_path / "log")
        second = None
        try:
            async with RuleMonitor(trial, healthy={"one": 1}, leaving={"one": 1}) as monitor:
                await trial.until("a node is asked for", lambda: _any_claim(trial))
                first.send_signal(signal.SIGKILL)
                second = _run(kubeconfig, "second", tmp_path / "log")
                await _leads(trial, "second")
                await expect_nothing_left_behind(trial, monitor, {"one": 1})
                await _stops(trial, second, "second")
        finally:
            for process in (first, second):
                if process is not None:
                    process.kill()
                    process.wait()

    play(running_cluster, scenario)


async def _any_claim(trial: Trial) -> bool:
    return bool(await trial.claims())


async def _stops(trial: Trial, process: subprocess.Popen[bytes], lease: str) -> None:
    """A process that is asked to stop does, soon and in good order, and somebody else may lead at once."""
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, 20) == 0
    assert await _holder(trial, lease) == ""


def test_a_kubeconfig_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    process = _run(tmp_path / "missing", "karpool", tmp_path / "log")
    assert process.wait(60) == 2
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert str(tmp_path / "missing") in line
