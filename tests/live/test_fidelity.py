"""`karpool record` beside `karpool run` on a real API server: the replay gives back what happened, within a bound."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from tests.live.control_plane import ControlPlane
from tests.live.programs import Program
from tests.live.test_recording import recorder, recording, until_said
from tests.live.trial import Trial, deployment, machines, play, pool
from tests.web.processes import KARPOOL

from karpool.cli.main import cli

pytestmark = pytest.mark.slow
NODES_OFF: Final = 0.5
"""On average over time, where there are two to eight."""
COST_OFF: Final = 0.1
EVICTIONS_OFF: Final = 0.5
"""Of those that were recorded: a consolidation a second earlier or later meets other pods."""
FEW: Final = 3
"""So many evictions are what one command more or less has."""
SEEDS: Final = 3


def controller(kubeconfig: Path, log: Path) -> Program:
    """`karpool run` as a process, which looks every second."""
    addresses = ("--metrics-address=0", "--health-address=0")
    intervals = ("--poll-interval=1s", "--validation-delay=1s", "--batch-max-duration=2s")
    command = (KARPOOL, "run", f"--kubeconfig={kubeconfig}", "--provider=kwok", "--catalog=kwok", "--act")
    return Program([*command, "--search=prefix", *intervals, *addresses], log)


def replayed(path: Path) -> dict[str, Any]:
    """The replay under the recorded policy, looked at each second."""
    scenario = path.with_suffix(".yaml")
    scenario.write_text(f"recording: {path.name}\ncatalog: kwok\ntimings: {{sample: 1s}}\npolicies: {{same: {{}}}}\n")
    asked = ["simulate", str(scenario), "--seeds", str(SEEDS), "--output", "json"]
    result = CliRunner().invoke(cli, asked)
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_a_replay_of_a_live_cluster_is_as_faithful_as_is_stated(running_cluster: ControlPlane, tmp_path: Path) -> None:
    path = tmp_path / "live.recording"

    async def scenario(trial: Trial) -> None:
        kubeconfig = trial.plane.kubeconfig()
        disruption = {"consolidateAfter": "3s"}
        await trial.make(pool(template={"spec": {"requirements": machines("c-2x", "c-4x")}}, disruption=disruption))
        await trial.make(deployment("web", 4, cpu="1100m"), deployment("batch", 1, cpu="700m"))
        with recording(controller(kubeconfig, tmp_path / "run.log")):
            await trial.until_running(5, 90)
            program = recorder(path, kubeconfig)
            with recording(program):
                await until_said(program, "recording")
                for web, batch, seconds in ((20, 1, 12), (6, 1, 25), (6, 20, 12), (3, 4, 25)):
                    await trial.scale("web", web)
                    await trial.scale("batch", batch)
                    await trial.until_running(web + batch)
                    await asyncio.sleep(seconds)

    play(running_cluster, scenario)
    document = replayed(path)
    recorded, same = document["policies"]["recorded"], document["policies"]["same"]
    fidelity = document["fidelity"]["same"]
    assert recorded["evictions"] > 0
    assert recorded["nodesLaunched"] > 1
    assert fidelity["nodesMean"] <= NODES_OFF, fidelity
    assert abs(fidelity["cost"]) <= COST_OFF, fidelity
    assert abs(fidelity["evictions"]) <= max(FEW, EVICTIONS_OFF * recorded["evictions"]), fidelity
    assert same["podsAtEnd"] == recorded["podsAtEnd"] == 7
    assert same["nodesAtEnd"] == pytest.approx(recorded["nodesAtEnd"], abs=1)
