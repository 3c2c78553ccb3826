"""`karpool sweep`, run as a user runs it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.tables import row, table

from karpool.cli.main import cli

ROOT = Path(__file__).parents[2]
SMALL = """
name: small
pools:
- metadata: {name: general}
  spec: {disruption: {consolidateAfter: 10m}}
workloads:
- {name: web, cpu: 900m, memory: 1Gi, replicas: {base: 6, noise: {share: 0.5}}}
length: 1h
policies:
  quick: {decisions: {search: prefix}}
"""
SPOT_ONLY = "template: {spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}}, "
INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);from karpool.cli.main import main; main()"
)
"""The program as a terminal starts it, whatever started these tests."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.fixture
def small(tmp_path: Path) -> str:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return str(file)


def swept(*arguments: str) -> Any:
    result = run("sweep", *arguments, "--output", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.slow
def test_every_setting_is_tried_on_every_seed_and_the_front_comes_with_patches(small: str, tmp_path: Path) -> None:
    kept = str(tmp_path / "results.jsonl")
    asked = (small, "--set", "consolidateAfter=0s,30m", "--set", "budgets=today,50%", "--seeds", "2", "--results", kept)
    document = swept(*asked)
    assert (document["kind"], document["complete"], document["seeds"]) == ("Sweep", True, 2)
    assert len(document["trials"]) == 8
    assert {trial["result"]["seconds"] for trial in document["trials"]} == {3600}
    by_number = {part["number"]: part for part in document["settings"]}
    costs = {number: part["measures"]["cost"]["mean"] for number, part in by_number.items()}
    for number, part in by_number.items():
        mine = [trial["result"]["cost"] for trial in document["trials"] if trial["number"] == number]
        assert costs[number] == pytest.approx(sum(mine) / 2, abs=1e-5)
        assert part["onFront"] == (number in document["front"])
    assert costs[document["front"][0]] == min(costs.values())
    quickest, _ = (by_number[number] for number in (2, 1))
    assert quickest["setting"] == {"consolidateAfter": "0s", "budgets": "50%"}
    expect_known_results_are_not_repeated(asked, kept)
    expect_the_choice_is_a_patch(asked)


def expect_known_results_are_not_repeated(asked: tuple[str, ...], kept: str) -> None:
    before = Path(kept).read_bytes()
    assert len(before.splitlines()) == 8
    began = time.process_time()
    again = swept(*asked)
    assert time.process_time() - began < 60
    assert len(again["trials"]) == 8
    assert Path(kept).read_bytes() == before


def expect_the_choice_is_a_patch(asked: tuple[str, ...]) -> None:
    printed = run("sweep", *asked, "--choose", "2").stdout
    assert "kubectl patch nodepool general --type merge" in printed
    assert yaml.safe_load(printed) == {
        "spec": {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "50%"}]}}
    }
    refused = run("sweep", *asked, "--choose", "9")
    assert (refused.exit_code, "there are 4 settings, and no number 9" in refused.stderr) == (2, True)
    page = run("sweep", *asked, "--output", "html").stdout
    assert page.count("<circle") == 4
    assert "consolidateAfter" in page
    table_text = run("sweep", *asked).stdout
    assert "4 settings, 8 trials, 2 seeds" in table_text
    assert re.search(r"\d \| front \| 0s", table_text)


@pytest.mark.slow
def test_the_number_of_workers_and_the_place_of_the_file_change_no_byte(small: str, tmp_path: Path) -> None:
    asked = ("sweep", small, "--set", "consolidateAfter=0s,30m", "--seeds", "2", "--length", "20m", "-o", "json")
    one = run(*asked, "--workers", "1").stdout_bytes
    assert run(*asked, "--workers", "3", "--results", str(tmp_path / "results.jsonl")).stdout_bytes == one


@pytest.mark.slow
def test_a_snapshot_is_swept_as_it_is_and_a_fee_that_is_only_counted_is_not_paid() -> None:
    asked = (str(ROOT / "examples"), "--set", "nodeFee=0,1", "--set", "budgets=0", "--seeds", "1", "--length", "30m")
    document = swept(*asked)
    assert [part["name"] for part in document["inputs"]] == [str(ROOT / "examples")]
    costs = [part["measures"]["cost"]["mean"] for part in document["settings"]]
    assert costs[0] == pytest.approx(costs[1])
    assert costs[0] > 0


@pytest.mark.slow
def test_a_recording_is_swept_and_its_results_are_kept_for_other_processes(tmp_path: Path) -> None:
    kept = tmp_path / "results.jsonl"
    asked = ["workday", "--set", "gracePeriod=Never,30m", "--seeds", "1", "--length", "20m", "--results", str(kept)]
    first = swept(*asked)
    assert [part["name"] for part in first["inputs"]] == ["workday"]
    before = kept.read_bytes()
    assert before.count(b"\n") == 2
    command = [sys.executable, "-c", INTERRUPTIBLE, "sweep", *asked, "-o", "json"]
    again = subprocess.run(command, capture_output=True, check=True, timeout=250)  # noqa: S603 - ours
    assert json.loads(again.stdout) == first
    assert kept.read_bytes() == before


@pytest.mark.slow
def test_a_recording_that_is_still_written_and_a_directory_of_rotated_ones_are_swept(tmp_path: Path) -> None:
    whole = (ROOT / "src/karpool/virtual/scenarios/workday.recording").read_bytes()
    torn, rotated = tmp_path / "torn.recording", tmp_path / "rotated"
    torn.write_bytes(whole + whole[:50])
    rotated.mkdir()
    (rotated / "cluster.recording.20261116T080000Z").write_bytes(whole)
    asked = ("--set", "consolidateAfter=30s", "--seeds", "1", "--length", "20m")
    costs = [swept(str(name), *asked)["settings"][0]["measures"]["cost"] for name in (torn, rotated)]
    assert costs[0] == costs[1]
    assert costs[0]["mean"] > 0


@pytest.mark.slow
def test_a_sweep_meets_a_history_of_spot_prices_and_its_results_are_others(small: str, tmp_path: Path) -> None:
    history, kept = tmp_path / "history.csv", tmp_path / "results.jsonl"
    types = ("m5.large", "m5.xlarge", "c5.large", "c5.xlarge", "r5.large", "r5.xlarge", "t3.large", "t3.xlarge")
    rows = [f"2025-01-06T00:00:00Z,use1-az{zone},{kind},9.5" for kind in types for zone in range(1, 7)]
    history.write_text("\n".join(["time,zone,type,usd_per_hour", *rows]) + "\n")
    spot = Path(small).read_text().replace("spec: {", "spec: {" + SPOT_ONLY)
    Path(small).write_text(spot)
    asked = (small, "--set", f"onlyTypes={'+'.join(types)}", "--seeds", "1", "--length", "20m", "--results", str(kept))
    usual = swept(*asked)["settings"][0]["measures"]["cost"]["mean"]
    dear = swept(*asked, "--spot-history", str(history))["settings"][0]["measures"]["cost"]["mean"]
    assert dear > 10 * usual > 0
    assert kept.read_bytes().count(b"\n") == 2


@pytest.mark.slow
def test_the_choice_of_what_no_patch_says_is_the_options_of_the_controller(small: str) -> None:
    asked = (small, "--set", "partition=pool", "--set", "evictionPrice=0.5", "--seeds", "1", "--length", "10m")
    printed = run("sweep", *asked, "--choose", "1").stdout.splitlines()
    assert printed[1:] == [
        "# NodePools stay as they are.",
        "# Also: karpool run --partition=pool --eviction-price=0.5",
    ]


@pytest.mark.slow
def test_results_of_several_inputs_are_added_up(small: str) -> None:
    arguments = ("--set", "consolidateAfter=5m", "--seeds", "1", "--length", "20m")
    both = swept(small, "churn", *arguments)["settings"][0]["measures"]
    alone = [swept(name, *arguments)["settings"][0]["measures"] for name in (small, "churn")]
    for name in ("cost", "evictions", "nodesLaunched"):
        assert both[name]["mean"] == pytest.approx(sum(measures[name]["mean"] for measures in alone), abs=1e-5)


@pytest.mark.slow
def test_ctrl_c_prints_what_is_done_and_the_file_goes_on_from_there(small: str, tmp_path: Path) -> None:
    kept = tmp_path / "results.jsonl"
    values = ",".join(f"{minutes}m" for minutes in range(1, 9))
    asked = [small, "--set", f"consolidateAfter={values}", "--seeds", "2", "-o", "json", "--workers", "2"]
    command = [sys.executable, "-c", INTERRUPTIBLE, "sweep", *asked, "--results", str(kept)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True) as process:  # noqa: S603 - ours
        deadline = time.monotonic() + 120
        while not (kept.exists() and kept.read_bytes().count(b"\n") >= 2) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        printed, said = process.communicate(timeout=60)
    assert process.returncode == 130
    partial = json.loads(printed)
    assert partial["complete"] is False
    assert 2 <= len(partial["trials"]) < 16
    assert f"the same command goes on from {kept}" in said.decode()
    resumed = run("sweep", *asked, "--results", str(kept))
    assert resumed.stdout_bytes == run("sweep", *asked).stdout_bytes


@table(
    row("an unknown name", arguments=["--set", "consolidate=5m"], message="--set: there is no setting 'consolidate'"),
    row("an unknown pool", arguments=["--set", "weight@spot=5"], message="there is no NodePool 'spot' among 1"),
    row("an unknown type", arguments=["--set", "onlyTypes=today,x9.*"], message="there is no instance type 'x9.*'"),
    row(
        "what validate refuses",
        arguments=["--set", "consolidateAfter=-5m"],
        message="'-5m' is not allowed; write whole",
    ),
    row("a name twice", arguments=["--set", "weight=5", "--set", "weight=6"], message="weight is there twice"),
    row("a wrong place", arguments=["--set", "weight=5", "--on", "moon"], message="--on: 'moon' is no place to run"),
    row("an unknown policy", arguments=["--set", "weight=5", "--policy", "calm"], message="has no policy 'calm'"),
    row("a range", arguments=["--set", "consolidateAfter=1m..5m"], message="of which no grid can try all"),
)
def test_bad_input_is_one_line_before_anything_runs(small: str, arguments: list[str], message: str) -> None:
    result = run("sweep", small, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_value_that_one_of_the_pools_cannot_have_is_one_line_before_anything_runs(small: str) -> None:
    file = Path(small)
    file.write_text(file.read_text().replace("spec: {", "spec: {replicas: 2, "))
    result = run("sweep", small, "--set", "weight=today,5")
    assert result.exit_code == 2
    assert "weight=5: NodePool general: spec.weight is not allowed together with replicas" in result.stderr
    assert result.stderr.count("\n") == 1


def test_results_that_cannot_be_kept_are_one_line_before_anything_runs(small: str, tmp_path: Path) -> None:
    for name, message in (("gone/results.jsonl", f"there is no directory {tmp_path}/gone"), ("", "directory")):
        result = run("sweep", small, "--set", "weight=5", "--results", str(tmp_path / name))
        assert (result.exit_code, message in result.stderr, result.stderr.count("\n")) == (2, True, 1)


def test_an_input_that_is_there_twice_is_one_line(small: str) -> None:
    result = run("sweep", small, "churn", small, "--set", "weight=5")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert f"{small}: is there twice; name each input once" in result.stderr


def test_an_input_that_is_not_there_is_one_line() -> None:
    result = run("sweep", "churm", "--set", "weight=5")
    assert (result.exit_code, "did you mean churn?" in result.stderr) == (2, True)
