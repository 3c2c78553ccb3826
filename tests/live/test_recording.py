"""`karpool record` on a real API server: what it writes is what happened, whatever becomes of it and of its watches."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from tests.live import audit, manifests
from tests.live.control_plane import ControlPlane
from tests.live.programs import Program
from tests.live.proxy import Proxy, Trouble
from tests.live.trial import Trial, deployment, play, pool
from tests.live.watched import buffers
from tests.web.processes import KARPOOL

from karpool.kube.client import Client
from karpool.kube.clock import utc_now
from karpool.recording import records as r
from karpool.recording.follower import Follower, FollowTimes
from karpool.recording.history import History, histories
from karpool.recording.parts import open_recording
from karpool.recording.tape import Tape

pytestmark = pytest.mark.slow
RECORDER: Final = manifests.DEPLOY / "recorder"
USER: Final = "system:serviceaccount:karpool:karpool-recorder"
TIMES: Final = FollowTimes(look=0.2, flush=1.0, ask=1.0, outage=2.0)


class Recorded:
    """What a file says."""

    def __init__(self, path: Path) -> None:
        file = open_recording(path)
        self.history = History(file.header)
        self.records = list(histories(file, self.history))

    def of(self, kind: type) -> list[Any]:
        return [record for record in self.records if isinstance(record, kind)]

    def pods(self, namespace: str = "default") -> set[str]:
        keys = map(self.history.key_of, self.history.pods)
        return {key.removeprefix(f"{namespace}/") for key in keys if key.startswith(f"{namespace}/")}

    def nodes(self) -> set[str]:
        return set(self.history.kinds["Node"])


def recorder(path: Path, kubeconfig: Path, *arguments: str) -> Program:
    """`karpool record` as a process; what it says is in a file beside the recording."""
    command = [KARPOOL, "record", path, f"--kubeconfig={kubeconfig}", "--catalog=kwok", *arguments]
    return Program(command, path.with_suffix(".log"))


@contextmanager
def recording(program: Program) -> Iterator[Program]:
    program.start()
    try:
        yield program
    finally:
        program.stop()


async def until_said(program: Program, event: str, times: int = 1) -> None:
    """Wait until the log has an entry."""
    for _ in range(300):
        log = program.log.read_text() if program.log.exists() else ""
        if sum(json.loads(line)["event"] == event for line in log.splitlines() if line.startswith("{")) >= times:
            return
        assert program.running, log
        await asyncio.sleep(0.1)
    raise AssertionError(f"{event!r} was never said: {log}")


async def expect_as_live(trial: Trial, recorded: Recorded) -> None:
    assert recorded.pods() == {pod.name for pod in await trial.pods()}
    assert recorded.nodes() == {node.name for node in await trial.nodes()}


def test_a_recorder_that_is_killed_goes_on_and_writes_down_what_it_missed(
    running_cluster: ControlPlane, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.recording"

    async def scenario(trial: Trial) -> None:
        program = recorder(path, trial.plane.kubeconfig())
        await trial.make(pool(), deployment("web", 3))
        trial.start()
        await trial.until_running(3)
        with recording(program):
            await until_said(program, "recording")
            os.kill(program.pid, signal.SIGKILL)
            await trial.scale("web", 5)
            await trial.until_running(5)
            program.start()
            await until_said(program, "recording", 2)
            await trial.scale("web", 1)
            await trial.until_running(1)
            await trial.until_nodes(1)
            await asyncio.sleep(0.5)
        recorded = Recorded(path)
        (gap,) = recorded.of(r.Gap)
        assert gap.why == "nobody recorded"
        assert len(recorded.pods()) == 1
        assert len(recorded.of(r.Born)) - len(recorded.of(r.Died)) == len(recorded.history.pods)
        assert recorded.of(r.Leaving)
        await expect_as_live(trial, recorded)
        assert recorded.history.prices

    play(running_cluster, scenario)


async def follow(trial: Trial, client: Client, path: Path, story: Callable[[Follower], Awaitable[None]]) -> Recorded:
    """Record with a follower in this process while something happens."""
    stop = asyncio.Event()
    with Tape(path, utc_now()) as tape:
        follower = Follower(client, tape, utc_now, lambda _objects: {}, times=TIMES)
        task = asyncio.create_task(follower.run(stop))

        async def begun() -> bool:
            if task.done():
                task.result()
            return follower.begun

        await trial.until("the recording has begun", begun)
        await story(follower)
        await asyncio.sleep(1.0)
        stop.set()
        await task
    return Recorded(path)


def test_a_watch_that_is_cut_loses_nothing_and_only_a_long_outage_is_a_gap(
    running_cluster: ControlPlane, tmp_path: Path
) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.make(pool(), deployment("web", 2))
        trial.start()
        await trial.until_running(2)
        async with Proxy(trial.target) as proxy, Client(proxy.target) as client:

            async def story(follower: Follower) -> None:
                assert proxy.cut_watches()
                await trial.scale("web", 3)
                await trial.until_running(3)
                await asyncio.sleep(2.0)
                assert follower.tape.gaps == 0
                proxy.choice = lambda _request: Trouble.BROKEN
                proxy.cut_watches()
                await trial.scale("web", 4)
                await trial.until_running(4)
                await asyncio.sleep(TIMES.outage + 1)
                proxy.choice = None

                async def resumed() -> bool:
                    return follower.tape.gaps > 0 and len(follower.tape.observer.history.pods) >= 4

                await trial.until("the watches go on", resumed)

            recorded = await follow(trial, client, tmp_path / "cut.recording", story)
        assert 1 <= len(recorded.of(r.Gap)) <= 3
        assert all(gap.t - gap.since >= TIMES.outage - 0.1 for gap in recorded.of(r.Gap))
        await expect_as_live(trial, recorded)

    play(running_cluster, scenario)


@pytest.mark.usefixtures("talkative")
def test_the_shipped_role_is_what_the_recorder_needs_and_no_more(audited_cluster: ControlPlane, tmp_path: Path) -> None:
    begins = (audited_cluster.folder / "audit.log").stat().st_size
    documents = manifests.read(RECORDER / "rbac.yaml")

    async def scenario(trial: Trial) -> None:
        for document in documents:
            await manifests.apply(trial.client, document)
        program = recorder(tmp_path / "cluster.recording", trial.plane.user_kubeconfig(USER))
        await trial.make(pool(), deployment("web", 1), *buffers())
        trial.start()
        await trial.until_running(1)
        with recording(program):
            await until_said(program, "recording")
            await trial.scale("web", 2)
            await trial.until_running(2)
        recorded = Recorded(tmp_path / "cluster.recording")
        await expect_as_live(trial, recorded)
        requests = list(audit.requests_by(USER, audited_cluster.folder, begins))
        assert 403 not in {request.status for request in requests}
        assert {request.verb for request in requests} == {"get", "list", "watch"}
        absent = {request.resource for request in requests if request.status == 404}
        unused = {right for right in audit.rights(documents) if not any(request.needs(right) for request in requests)}
        assert {right.resource for right in unused} <= absent
        assert recorded.history.missing.keys() <= {"PodGroup", "Workload"}
        settings = recorded.history.consolidator
        assert settings is not None
        assert (settings["policy"]["decisions"]["search"], settings["timings"]["validation"]) == ("prefix", "0.5s")
        for document in documents[1:]:
            await trial.client.raw("DELETE", manifests.path_of(document))

    play(audited_cluster, scenario)
