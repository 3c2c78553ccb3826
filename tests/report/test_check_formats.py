"""SARIF and JUnit: what is required of them, and names that try to break out of them."""

import io
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as ET

import msgspec
import pytest
from click.testing import CliRunner
from tests.tables import row, table

from karpool.cli.main import cli
from karpool.model.reading.loading import read as read_files
from karpool.report.checks.check_results import CheckResult, Checks, validation_results
from karpool.report.checks.junit import junit
from karpool.report.checks.sarif import sarif
from karpool.wire.problems import Problem


class Strict(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A part of SARIF 2.1.0 as its schema has it: fields without a default are required."""


class Message(Strict):
    text: str


class ArtifactLocation(Strict):
    uri: str


class Region(Strict):
    start_line: int


class PhysicalLocation(Strict):
    artifact_location: ArtifactLocation
    region: Region


class LogicalLocation(Strict):
    fully_qualified_name: str


class Location(Strict):
    physical_location: PhysicalLocation
    logical_locations: list[LogicalLocation] = []


class Configuration(Strict):
    level: Literal["none", "note", "warning", "error"]


class ReportingDescriptor(Strict):
    id: str
    name: str
    short_description: Message
    default_configuration: Configuration
    help: Message | None = None


class ToolComponent(Strict):
    name: str
    version: str
    rules: list[ReportingDescriptor]


class Tool(Strict):
    driver: ToolComponent


class SarifResult(Strict):
    rule_id: str
    rule_index: int
    level: Literal["none", "note", "warning", "error"]
    message: Message
    locations: list[Location]
    partial_fingerprints: dict[str, str]


class Run(Strict):
    tool: Tool
    column_kind: Literal["utf16CodeUnits", "unicodeCodePoints"]
    results: list[SarifResult]


class Sarif(Strict):
    schema: str = msgspec.field(name="$schema")
    version: Literal["2.1.0"]
    runs: list[Run]


def read(data: bytes) -> Run:
    (run,) = msgspec.json.decode(data, type=Sarif).runs
    return run


def result(**changes: Any) -> CheckResult:
    known: dict[str, Any] = {"rule": "R", "title": "T", "level": "warning", "message": "m", "file": "a.yaml"}
    return CheckResult(**{**known, "object": "NodePool a", "field": "spec.weight", "help": "h", **changes})


def checks(*results: CheckResult, passed: tuple[str, ...] = ()) -> Checks:
    return Checks(command="lint", results=results, failing=("warning", "error"), passed=passed)


POOL = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: %s, labels: {a: 1}}\n"
SPEC = "{template: {spec: {nodeClassRef: {group: a, kind: b, name: c}, requirements: []}}}"
JSON = """{"apiVersion": "karpenter.sh/v1",
 "kind": "NodePool",
 "metadata": {"name": "%s", "labels": {"a": 1}}}"""
HOSTILE = "x\x1b[31m\x00</failure>]]><script>&\u202e\ud800"


def test_sarif_has_what_its_schema_requires() -> None:
    run = read(sarif(checks(result(), result(object="NodePool b"), result(rule="S", level="error"))))
    assert [rule.id for rule in run.tool.driver.rules] == ["R", "S"]
    assert [(r.rule_id, r.rule_index, r.level) for r in run.results] == [
        ("R", 0, "warning"),
        ("R", 0, "warning"),
        ("S", 1, "error"),
    ]
    (location,) = run.results[0].locations
    assert location.physical_location.artifact_location.uri == "a.yaml"
    assert location.logical_locations[0].fully_qualified_name == "NodePool a.spec.weight"
    fingerprints = [found.partial_fingerprints["karpoolObject/v1"] for found in run.results]
    assert len(set(fingerprints)) == 3


@table(
    row("a YAML document", text=f"# pools\n---\n{POOL % 'a'}---\n{POOL % 'b'}", lines=[3, 7]),
    row("JSON values in a row", text=f"\n{JSON % 'a'}\n\n{JSON % 'b'}", lines=[2, 6]),
)
def test_results_are_at_the_line_where_their_manifest_begins(text: str, lines: list[int], tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text(text)
    results = validation_results(read_files([str(file)], stdin=io.BytesIO()).problems, [])
    assert [found.locations[0].physical_location.region.start_line for found in read(sarif(results)).results] == lines
    root = ET.fromstring(junit(results))  # noqa: S314 - our own output
    assert [int(case.attrib["line"]) for case in root.iter("testcase")] == lines


@table(
    row("YAML", text="kind: Pod\nmetadata:\n\tname: a\n", line=3),
    row("JSON", text='{"kind":\n "Pod",\n "metadata": }', line=3),
    row("a key twice", text='\n{"kind": "Pod", "kind": "Pod"}', line=2),
)
def test_text_that_cannot_be_read_is_at_its_own_line(text: str, line: int, tmp_path: Path) -> None:
    file = tmp_path / "pods.json"
    file.write_text(text)
    (problem,) = read_files([str(file)], stdin=io.BytesIO()).problems
    assert problem.line == line


def test_a_rule_of_validate_has_its_name_in_words() -> None:
    (result,) = validation_results([Problem(file="a.yaml", rule="MinValuesRange", message="m")], []).results
    assert (result.rule, result.title) == ("MinValuesRange", "Min values range")


def test_nothing_found_is_a_sound_document_too() -> None:
    assert read(sarif(checks())).results == []
    root = ET.fromstring(junit(checks()))  # noqa: S314 - our own output
    assert root.attrib == {"tests": "1", "failures": "0", "errors": "0"}


def test_files_are_references_relative_to_where_the_command_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [
        str(tmp_path / "pools" / "a.yaml"),
        str(tmp_path / "my pools" / "a#b.yaml"),
        "with space#.yaml",
        "/elsewhere/b.yaml",
        "",
    ]
    run = read(sarif(checks(*(result(file=file) for file in files))))
    assert [found.locations[0].physical_location.artifact_location.uri for found in run.results] == [
        "pools/a.yaml",
        "my%20pools/a%23b.yaml",
        "with%20space%23.yaml",
        "file:///elsewhere/b.yaml",
        "cluster",
    ]


def test_hostile_names_stay_text() -> None:
    problem = Problem(file="a.yaml", object=f"NodePool {HOSTILE}", field=HOSTILE, rule="R", message=HOSTILE)
    found = validation_results([problem], [problem])
    assert [entry.level for entry in read(sarif(found)).results] == ["error", "warning"]
    root = ET.fromstring(junit(found))  # noqa: S314 - our own output
    tags = ["testsuites", "testsuite", "testcase", "failure", "testcase", "system-out"]
    assert [element.tag for element in root.iter()] == tags
    assert root.attrib["failures"] == "1"


@table(
    row("validate", words=["validate"], failures="0"),
    row("strict", words=["validate", "--strict"], failures="some"),
    row("lint", words=["lint", "--costs", "0", "--fail-on", "warning"], failures="some"),
    row("lint, of errors", words=["lint", "--costs", "0", "--fail-on", "error"], failures="0"),
    row("lint, of nothing", words=["lint", "--costs", "0", "--fail-on", "never"], failures="0"),
)
def test_junit_has_failures_where_the_command_fails(words: list[str], failures: str, tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text("---\n".join(f"{POOL % name}spec: {SPEC}\n".replace("a: 1", "a: b") for name in "ab"))
    done = CliRunner().invoke(cli, [*words, "-f", str(file), "--catalog", "sample", "-o", "junit"])
    root = ET.fromstring(done.stdout)  # noqa: S314 - our own output
    found = len(list(root.iter("failure")))
    assert (root.attrib["failures"], found > 0, done.exit_code > 0) == (str(found), *[failures != "0"] * 2), done.output
    assert found or len(list(root.iter("system-out"))) > 0


def test_junit_counts_rules_that_found_nothing_as_passed() -> None:
    root = ET.fromstring(junit(checks(result(), passed=("S", "T"))))  # noqa: S314 - our own output
    cases = {case.attrib["name"]: case.find("failure") is not None for case in root.iter("testcase")}
    assert cases == {"R NodePool a spec.weight": True, "S": False, "T": False}
    assert (root.attrib["tests"], root.attrib["failures"]) == ("3", "1")
