"""The image: the steps of the Dockerfile are carried out on a bare Debian, and the result runs as in the chart.

There is no container engine: namespaces of Linux and an overlay do what it would do. The base image cannot be had; what
stands for it is said in tests/live/image.py. Of the network, what runs has one port of the loopback interface, which a
socket connects with the API server.
"""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.chart.helm import Json, deployment, render
from tests.live.bare_root import Inside, need_package_index
from tests.live.control_plane import ControlPlane
from tests.live.fake_karpenter import karpenter
from tests.live.image import BASE, DOCKERFILE, ROOT, Image, Stage
from tests.live.in_cluster import as_in, connected
from tests.live.programs import Program
from tests.live.release import released
from tests.live.trial import Trial, journal, machines, pool
from tests.live.trial import deployment as workload
from tests.live.watched import large_claim

BUILD_SECONDS = 1800
"""Two minutes where nothing else runs, most of them for the kernels."""
JOURNAL = "/var/log/karpool"
COMPILED = """
import sys
from numba.core import event
compiled = event.RecordingListener()
with event.install_listener("numba:compile", compiled):
    from karpool.optimization.warmup import warm_up
    warm_up()
sys.exit(f"compiled {len(compiled.buffer)} kernels" if compiled.buffer else 0)
"""
VALUES: Json = {"controller": {"replicas": 0, "options": {"catalog": "kwok", "poll-interval": "1s"}}}
OPTED_IN = {"karpool.sh/budgets": '[{"nodes": "100%"}]'}


@pytest.mark.long
@pytest.mark.timeout(BUILD_SECONDS)
def test_the_image_decides_in_a_dry_run_as_the_chart_runs_it(running_cluster: ControlPlane, tmp_path: Path) -> None:
    need_package_index()
    image = Image(tmp_path / "image", DOCKERFILE.read_text())
    assert image.bases == [BASE, BASE]
    assert len(image.online) == 1
    assert "--require-hashes" in image.online[0]
    pod = deployment(render(VALUES), "controller")["spec"]["template"]["spec"]
    inside = image.stage.inside(as_in(pod, tmp_path / "volumes"))
    assert inside.user == pod["securityContext"]["runAsUser"]
    expect_held(image.stage, inside)
    expect_ready(image.stage, inside)
    with released(running_cluster, VALUES) as release, connected(inside, release, tmp_path / "account") as there:
        (container,) = pod["containers"]
        command = (*image.stage.entrypoint, *container["args"])
        program = image.stage.root.program(*command, log=tmp_path / "log", inside=there)
        asyncio.run(expect_decision(running_cluster, program, inside.folders[JOURNAL]))


def expect_held(stage: Stage, inside: Inside) -> None:
    """Nobody in particular, who can write to volumes only and reach nothing."""
    done = stage.root.run("id", "-u", inside=inside)
    assert done.stdout == f"{stage.uid}\n"
    for place in ("/x", "/opt/karpool/x", "/opt/karpool/cache/x", "/usr/local/x"):
        done = stage.root.run("touch", place, inside=inside)
        assert done.returncode, place
        assert "Read-only file system" in done.stdout
    for place in inside.folders:
        assert stage.root.run("touch", f"{place}/x", inside=inside).returncode == 0, place
    devices = stage.root.sh("tail -n +3 /proc/net/dev; grep CapEff /proc/self/status", inside)
    assert devices.split()[0] == "lo:"
    assert len(devices.splitlines()) == 2
    assert devices.split()[-1].strip("0") == ""


def expect_ready(stage: Stage, inside: Inside) -> None:
    """Kernels come with it, and it plans the example without a network."""
    done = stage.root.run("python", "-c", COMPILED, inside=inside)
    assert (done.returncode, done.stdout) == (0, "")
    with_example = replace(inside, files={"/tmp/examples": ROOT / "examples"})  # noqa: S108 - a volume of the pod
    (Path(inside.folders["/tmp"]) / "examples").mkdir()  # noqa: S108
    command = "karpool plan -f /tmp/examples --catalog sample --at 2026-11-15T12:00:00Z"
    done = stage.root.run(*command.split(), inside=with_example)
    assert "nodes |         12 | -> |          5 |" in done.stdout


async def expect_decision(plane: ControlPlane, program: Program, folder: Path) -> None:
    """A node that is too large for its pods would be replaced, and is not."""
    async with Trial(plane) as trial, karpenter(trial):
        await trial.make(opted_in(), workload("web", 1), large_claim())
        await trial.until_running(1)
        program.start()
        try:

            async def decided() -> bool:
                assert program.running, program.log.read_text()
                return bool(journal(folder / "decisions.jsonl", "Decision"))

            await trial.until("it is decided", decided, seconds=300)
            program.stop()
        finally:
            program.stop()
        decisions = journal(folder / "decisions.jsonl", "Decision")
        assert all(decision["dryRun"] for decision in decisions)
        lines = [json.loads(line) for line in program.log.read_text().splitlines()]
        assert [line for line in lines if line["event"] == "command decided" and line["dry_run"]]
        assert [claim.name for claim in await trial.claims()] == ["large"]


def opted_in() -> Json:
    made = pool(disruption={"consolidateAfter": "1s", "budgets": [{"nodes": "0"}]})
    made["spec"]["template"]["spec"]["requirements"] = machines()
    made["metadata"]["annotations"] = OPTED_IN
    return made
