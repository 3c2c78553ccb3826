"""`karpool simulate` and `karpool demo`, run as a user runs them."""

import json
import os
import re
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from karpool.cli.main import cli

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CHURN = str(ROOT / "scenarios" / "churn.yaml")
SMALL = """
name: small <b>
pools:
- metadata: {name: general}
  spec: {disruption: {consolidateAfter: 30s}}
workloads:
- {name: web, cpu: 900m, memory: 1Gi, replicas: {base: 6, noise: {share: 0.3}}}
length: 1h
policies:
  quick: {decisions: {search: prefix}}
  calm: {decisions: {search: prefix}, pools: {general: {spec: {disruption: {consolidationGracePeriod: 30m}}}}}
"""
PROGRAM = "import signal; signal.signal(signal.SIGINT, signal.{handler}); from karpool.cli.main import main; main()"
INTERRUPTIBLE = PROGRAM.format(handler="default_int_handler")
"""The program as a terminal starts it, whatever started these tests."""
UNINTERRUPTIBLE = PROGRAM.format(handler="SIG_IGN")
"""The program as `nohup` and background jobs of scripts start it."""
MEASURES = {"cost", "nodeHours", "evictions", "nodeLifetimeSecondsMedian", "pendingPodSeconds", "cpuUtilization"}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.fixture
def small(tmp_path: Path) -> str:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return str(file)


def simulated(*arguments: str) -> Any:
    result = run("simulate", *arguments, "--output", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_document_has_the_numbers_of_every_policy() -> None:
    document = simulated(CHURN, "--length", "10m")
    assert document["kind"] == "Simulation"
    assert document["seed"] == 1
    assert list(document["policies"]) == ["after-30s", "after-30m", "grace-30m"]
    for numbers in document["policies"].values():
        assert numbers.keys() >= MEASURES
        assert numbers["seconds"] == 600


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(small: str) -> None:
    first = run("simulate", small, "--output", "json", "--seed", "7").stdout_bytes
    assert run("simulate", small, "--output", "json", "--seed", "7").stdout_bytes == first
    assert run("simulate", small, "--output", "json", "--seed", "8").stdout_bytes != first


def test_the_course_over_time_comes_as_columns(small: str) -> None:
    for numbers in simulated(small)["policies"].values():
        series = numbers["series"]
        assert list(series) == [
            "seconds",
            "nodes",
            "pods",
            "pricePerHour",
            "cpuUtilization",
            "memoryUtilization",
            "pendingPods",
            "evictions",
        ]
        assert series["seconds"] == [300.0 * number for number in range(13)]
        assert {len(column) for column in series.values()} == {13}
        assert series["evictions"] == sorted(series["evictions"])
        assert series["evictions"][-1] == numbers["evictions"]
        assert series["nodes"][-1] == numbers["nodesAtEnd"]
        assert numbers["pools"]["general"]["nodeHours"] == pytest.approx(numbers["nodeHours"])
        assert numbers["pools"]["general"]["podsAtEnd"] == numbers["podsAtEnd"]


def test_a_long_course_is_thinned_out(tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    file.write_text("pools: [{metadata: {name: a}}]\ntimings: {sample: 1m}\nlength: 12h")
    times = simulated(str(file))["policies"]["default"]["series"]["seconds"]
    assert len(times) <= 301
    assert (times[0], times[-1]) == (0.0, 12 * 3600.0)
    assert len({after - before for before, after in pairwise(times[:-1])}) == 1


def test_a_bundled_scenario_is_found_by_name() -> None:
    arguments = ("--length", "5m", "--policy", "grace-30m")
    assert simulated("churn", *arguments) == simulated(CHURN, *arguments)


def test_a_scenario_may_begin_with_a_cluster_in_files(tmp_path: Path) -> None:
    file = tmp_path / "tonight.yaml"
    file.write_text(f"cluster: [{ROOT / 'examples'}]\nlength: 10m\npolicies: {{nothing: {{disruption: false}}}}")
    numbers = simulated(str(file))["policies"]["nothing"]
    assert numbers["nodesAtEnd"] == 12
    assert numbers["podsCreated"] == numbers["evictions"] == numbers["pendingPodsAtEnd"] == 0
    assert numbers["pools"].keys() == {"general", "batch"}
    assert sum(share["nodesAtEnd"] for share in numbers["pools"].values()) == 12


def test_policies_are_chosen_by_name(small: str) -> None:
    assert list(simulated(small, "--policy", "calm")["policies"]) == ["calm"]


def test_seeds_give_means_with_intervals_and_differences(small: str) -> None:
    short = (small, "--length", "20m", "--seed")
    alone = [simulated(*short, str(seed))["policies"] for seed in (3, 4)]
    both = simulated(*short, "3", "--seeds", "2")
    assert both["seeds"] == 2
    for name in ("quick", "calm"):
        numbers = both["policies"][name]
        assert numbers["cost"] == pytest.approx(sum(single[name]["cost"] for single in alone) / 2, abs=1e-5)
        low, high = numbers["confidence"]["cost"]
        assert low <= numbers["cost"] <= high
        nodes = [single[name]["series"]["nodes"] for single in alone]
        assert numbers["series"]["nodes"] == [sum(pair) / 2 for pair in zip(*nodes, strict=True)]
    assert "difference" not in both["policies"]["quick"]
    assert both["policies"]["calm"]["difference"]["cost"]["mean"] == pytest.approx(
        both["policies"]["calm"]["cost"] - both["policies"]["quick"]["cost"], abs=1e-5
    )


def test_the_table_shows_policies_side_by_side(small: str) -> None:
    result = run("simulate", small)
    assert result.exit_code == 0
    assert "small <b>: 1h, seed 0" in result.stdout
    assert re.search(r"\| +quick \| +calm \|", result.stdout)
    assert re.search(r"^cost +\| +[0-9.]+ \$ \| +[0-9.]+ \$ \| +[-+=]", result.stdout, re.MULTILINE)


def test_pods_that_wait_at_the_end_are_told(tmp_path: Path) -> None:
    file = tmp_path / "giant.yaml"
    file.write_text("pools: [{metadata: {name: a}}]\nworkloads: [{name: x, cpu: 9000, replicas: 4}]\nlength: 10m")
    assert re.search(r"^pods waiting at the end +\| +4$", run("simulate", str(file)).stdout, re.MULTILINE)
    assert "4 pods waiting at the end" in run("simulate", str(file), "--output", "html").stdout


def test_a_table_where_all_pods_have_a_place_does_not_speak_of_waiting(small: str) -> None:
    assert "pods waiting at the end" not in run("simulate", small).stdout


@pytest.mark.parametrize("output", ["table", "html"])
def test_a_scenario_in_which_nothing_runs_says_so(tmp_path: Path, output: str) -> None:
    file = tmp_path / "idle.yaml"
    file.write_text("pools: [{metadata: {name: a}}]\nlength: 10m")
    result = run("simulate", str(file), "--output", output)
    assert result.exit_code == 0
    assert "Nothing ran: there were no pods and no nodes." in result.stdout


@pytest.mark.parametrize("seeds", ["1", "2"])
def test_an_interrupt_ends_the_command_at_once_with_one_line(small: str, seeds: str) -> None:
    command = [sys.executable, "-c", INTERRUPTIBLE, "simulate", small, "--length", "2000h", "--seeds", seeds]
    screen, theirs = os.openpty()
    with subprocess.Popen(command, stderr=theirs, process_group=0) as process:  # noqa: S603 - our own program
        os.close(theirs)
        shown = _read_until_it_progresses(screen)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers, too
        while rest := _last_words(screen):
            shown += rest
        assert process.wait(timeout=60) == 130  # the run itself would take hours
    os.close(screen)
    assert shown.endswith(b"karpool: interrupted\r\n")
    assert shown.count(b"karpool") == 1


@pytest.mark.parametrize("seeds", ["1", "2"])
def test_a_command_started_with_interrupts_ignored_ends_by_sigterm_only(small: str, seeds: str) -> None:
    command = [sys.executable, "-c", UNINTERRUPTIBLE, "simulate", small, "--length", "2000h", "--seeds", seeds]
    screen, theirs = os.openpty()
    with subprocess.Popen(command, stderr=theirs, process_group=0) as process:  # noqa: S603 - our own program
        os.close(theirs)
        _read_until_it_progresses(screen)
        os.killpg(process.pid, signal.SIGINT)
        _read_until_it_progresses(screen)
        assert process.poll() is None
        process.terminate()
        assert process.wait() == -signal.SIGTERM
    os.close(screen)


def _read_until_it_progresses(screen: int) -> bytes:
    shown = b""
    while not re.search(rb"Simulating.* [1-9][0-9]*/", shown):
        shown += os.read(screen, 4096)
    return shown


def _last_words(screen: int) -> bytes:
    try:
        return os.read(screen, 4096)
    except OSError:  # how Linux says that nobody holds the other end any more
        return b""


def test_the_page_stands_alone_and_shows_names_as_text(small: str) -> None:
    page = run("simulate", small, "--output", "html").stdout
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page
    assert "small &lt;b&gt;" in page
    assert "<b>:" not in page
    assert page.count('role="img"') == 6
    assert not re.search(r"(src|href|style)=", page)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; name a scenario"),
        ("# nothing", "expected one document"),
        ("pools: [", "line 2, column 1"),
        ("pools: [{metadata: {name: a}}]\nworkloads: [{name: x, replica: 3}]", "workloads[0].replica: is not"),
        ("pools: [{metadata: {name: a}}]\nlength: 5x", "length: '5x' is not a duration"),
        ("pools: [{metadata: {name: a}}]\nlength: Never", "length: Never is not allowed here; write 1s or more"),
        ("workloads: []", "pools: is missing"),
        ("pools: [{metadata: {name: a}}, {metadata: {name: a}}]", "pools: a is there 2 times"),
        ("pools: [{metadata: {name: a}, spec: {weight: 500}}]", "pools[0].spec.weight: 500 is out of range"),
        ("pools: [{metadata: {name: a}}]\npolicies: {p: {pools: {b: {}}}}", "policies.p.pools.b: there is no pool b"),
        (
            "pools: [{metadata: {name: a}}]\npolicies: {p: {pools: {a: {spec: {disruption: {consolidatAfter: 1m}}}}}}",
            "policies.p.pools.a.spec.disruption.consolidatAfter: is not a known field; did you mean consolidateAfter?",
        ),
        ("nodeGroups: [{name: g, instanceType: x1}]", "nodeGroups: node group g: the catalogue offers no"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    result = run("simulate", str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"karpool: {tmp_path}/")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_only_a_run_finds_is_said_in_one_line_with_several_seeds_too(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("nodeGroups: [{name: g, instanceType: x1}]")
    alone, together = (run("simulate", str(file), "--seeds", seeds) for seeds in ("1", "2"))
    assert together.exit_code == 2
    assert together.stderr == alone.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodeFee: -1", "nodeFee: is out of range; write 0 or more"),
        ("catalog: nile", "catalog: 'nile' is neither a cloud (aws, aws:REGION), sample or kwok, nor is there a file "),
        ("catalog: ''", "catalog: '' is neither a cloud (aws, aws:REGION), sample or kwok"),
        ("catalog: aws:moon", "catalog: 'moon' is not a region; write aws:REGION"),
        ("cluster: [nothere.json]", "cluster[0]: there is no file "),
        ("cluster: ['']", "cluster[0]: there is no file "),
        ("cluster: ['-']", "cluster[0]: there is no file "),
        (
            f"cluster: [{ROOT / 'examples'}]\npolicies: {{a: {{pools: {{nope: {{}}}}}}}}",
            "policies.a.pools.nope: there is no pool nope; there are a, batch, general",
        ),
        (
            f"cluster: [{ROOT / 'examples'}]\npolicies: {{a: {{pools: {{batch: {{spec: {{weight: x}}}}}}}}}}",
            "policies.a.pools.batch.spec.weight: expected a whole number, got text",
        ),
        ("prices: {m5.larg: 1}", "prices[m5.larg]: the catalogue has no type m5.larg; did you mean m5.large?"),
        (
            f"cluster: [{ROOT / 'examples'}]\nprices: {{m5.larg: 1}}",
            "prices[m5.larg]: the catalogue has no type m5.larg; did you mean m5.large?",
        ),
        (
            "faults: [{kind: shortage, start: 1m, length: 1h, instanceTypes: [m5.larg]}]",
            "faults[0].instanceTypes[0]: the catalogue has no type m5.larg; did you mean m5.large?",
        ),
        ("workloads: [{name: web, replicas: {noise: {share: 1, every: 0m}}}]", "noise.every: 0s is not allowed here"),
    ],
)
def test_what_is_wrong_is_said_of_the_place_in_the_scenario(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(f"pools: [{{metadata: {{name: a}}}}]\n{text}")
    result = run("simulate", str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"karpool: {file}: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "nope: is neither a file nor built in; there are off-hours"),
        (("nope.yaml",), "nope.yaml: does not exist"),
        (("churn", "--policy", "x"), "--policy: there is no policy 'x'; there are after-30s"),
        (("churn", "--length", "Never"), "--length: 'Never' is no length of time"),
        (("churn", "--length", "1 day"), "--length: '1 day' is not a duration"),
    ],
)
def test_wrong_arguments_are_refused(arguments: tuple[str, ...], message: str) -> None:
    result = run("simulate", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_demo_tells_its_story_and_writes_a_page(tmp_path: Path) -> None:
    report = tmp_path / "demo.html"
    result = run("demo", "--report", str(report))
    assert result.exit_code == 0, result.stderr
    assert "40 nodes run 200 pods" in result.stdout
    assert "16 nodes of 40" in result.stdout
    assert "64 pods moved" in result.stdout
    assert "<svg" in report.read_text()
    missing = run("demo", "--report", str(tmp_path / "no" / "demo.html"))
    assert missing.exit_code == 2


def test_the_journal_of_one_run_is_written(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    arguments = ["simulate", "off-hours", "--policy", "karpool", "--length", "1h", "--journal", str(journal)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.stderr
    kinds = {json.loads(line)["kind"] for line in journal.read_text().splitlines()}
    assert "Provisioned" in kinds


def test_a_journal_is_of_one_run_only(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["simulate", "off-hours", "--journal", str(tmp_path / "journal.jsonl")])
    assert result.exit_code == 2
    assert "--journal: is of one run" in result.stderr
