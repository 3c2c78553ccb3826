"""Recordings that are damaged, empty or too short for what is asked of them, and sources of imports."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.factories import node, node_pool, pod

from karpool.cli.main import cli
from karpool.model.objects import Objects
from karpool.recording.frames import Frames
from karpool.recording.observer import Observer
from karpool.recording.writer import RecordingWriter

START = datetime(2026, 11, 16, 8, tzinfo=UTC)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Ten minutes of one pod on one node."""
    path = tmp_path / "short.recording"
    with RecordingWriter(path, START) as writer:
        observer = Observer(writer.history, writer.write)
        objects = Objects(
            node_pools=(node_pool(),), nodes=(node("n1", type="m5.large"),), pods=(pod("web", node="n1"),)
        )
        observer.listed(objects, START)
        writer.flush()
        observer.alive(START + timedelta(minutes=10))
    return path


def refused(*arguments: str) -> str:
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.stderr
    return result.stderr


@pytest.mark.parametrize("command", [("simulate",), ("sweep", "--set", "consolidateAfter=30s")])
def test_nothing_is_replayed_beyond_the_end(short: Path, command: tuple[str, ...]) -> None:
    said = refused(*command, str(short), "--length", "100h")
    assert said.startswith("karpool: --length: is 4d 4h, and nothing is recorded beyond 10m; ")


def test_a_scenario_that_is_longer_than_its_recording_is_refused(short: Path) -> None:
    scenario = short.with_name("longer.yaml")
    scenario.write_text("recording: short.recording\nlength: 11m\n")
    assert refused("simulate", str(scenario)).startswith(
        f"karpool: {scenario}: length: is 11m, and nothing is recorded"
    )


@pytest.mark.slow
def test_bytes_at_the_end_that_cannot_be_read_are_told(short: Path) -> None:
    assert run("simulate", str(short)).stderr == ""
    torn = short.with_name("torn.recording")
    torn.write_bytes(short.read_bytes() + short.read_bytes()[:50])
    result, words = run("simulate", str(torn)), "50 bytes at the end are unreadable, and left out"
    assert (result.exit_code, result.stderr) == (0, f"karpool: {torn}: {words}\n")
    swept = run("sweep", str(torn), "--set", "consolidateAfter=30s", "--seeds", "1")
    assert f"{torn}: 50 bytes at the end are unreadable" in swept.stderr


def test_a_recording_of_which_nothing_is_left_is_refused(short: Path) -> None:
    reader = Frames(short)
    next(iter(reader))
    for length, said in (
        (reader.end, "holds nothing to replay\n"),
        (reader.end + 20, "holds nothing to replay; 20 bytes at the end are unreadable, and left out\n"),
        (0, "is empty; name a scenario, or a recording of `karpool record`\n"),
    ):
        left = short.with_name(f"{length}.recording")
        left.write_bytes(short.read_bytes()[:length])
        assert refused("simulate", str(left)) == f"karpool: {left}: {said}"


@pytest.mark.slow
def test_a_recording_without_pods_and_nodes_does_not_ask_for_workloads(tmp_path: Path) -> None:
    path = tmp_path / "idle.recording"
    with RecordingWriter(path, START) as writer:
        observer = Observer(writer.history, writer.write)
        observer.listed(Objects(node_pools=(node_pool(),)), START)
        observer.alive(START + timedelta(minutes=1))
    said = run("simulate", str(path)).stdout
    assert "Nothing ran: there were no pods and no nodes. None were recorded." in said


def test_a_cluster_that_is_not_known_is_said_without_an_option_that_there_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    said = refused("record", str(tmp_path / "a.recording"))
    assert said.startswith("karpool: kubeconfig: no cluster is known here; set KUBECONFIG")


@pytest.mark.parametrize(("option", "said"), [("--last", "is no time at all"), ("--step", "is less than a second")])
def test_no_time_at_all_is_no_part_of_a_history(tmp_path: Path, option: str, said: str) -> None:
    output = ("-o", str(tmp_path / "a.recording"))
    asked = ("import", "http://localhost:1", "--from", "prometheus", option, "0s", *output)
    assert refused(*asked).startswith(f"karpool: {option}: {said}")
