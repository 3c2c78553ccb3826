"""`karpool validate` through the real entry: what it prints, and what bad input gets."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.privileges import unprivileged

from karpool.cli.main import cli

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{resources: {requests: {cpu: %s}}}]}\n"
POOL = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec:\n  template: {spec: {%s}}\n  %s\n"
CLAIM = "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: c, labels: {karpenter.sh/nodepool: ghost}}\n"
CLASS = "nodeClassRef: {group: g, kind: k, name: n}"


def wanting(requirement: str) -> str:
    return POOL % (f"{CLASS}, requirements: [{requirement}]", "weight: 1")


def spec(text: str) -> str:
    return POOL % (f"{CLASS}, requirements: []", text)


def bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    return "\n".join(lines)


def run(*arguments: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["validate", *arguments], input=given)


BAD: dict[str, tuple[str | bytes, str]] = {
    "empty file": ("", "is empty"),
    "binary file": (b"\x7fELF\x01\0\0\0", "is a binary file; expected JSON or YAML"),
    "truncated JSON": ('{"apiVersion": "v1", "kind": "Pod", "metadata": {"na', "document 1: the JSON is cut short"),
    "truncated gzip": (gzip.compress(b'{"kind": "List"}' * 99, mtime=0)[:-12], "the gzip data is cut short"),
    "YAML with tabs": ("kind: Pod\nmetadata:\n\tname: a\n", "document 1: line 3, column 1: .*indent with spaces"),
    "YAML bomb": (bomb(), "aliases expand to more than 64 MiB"),
    "long line": ("x" * 200_000_000, "line 1 is longer than 16 MiB"),
    "pod without a name": ("kind: Pod\nmetadata: {}\n", "Pod in document 1: metadata.name: is missing"),
    "negative quantity": (
        POD % "-1",
        r"Pod default/web: spec.containers\[0\].resources.requests.cpu: '-1' is negative",
    ),
    "no quantity": (
        POD % '"1.5.2"',
        r"Pod default/web: spec.containers\[0\].resources.requests.cpu: '1.5.2' is not a quant",
    ),
    "weight 0": (spec("weight: 0"), "NodePool p: spec.weight: 0 is out of range; write 1 to 100"),
    "weight 101": (spec("weight: 101"), "NodePool p: spec.weight: 101 is out of range; write 1 to 100"),
    "unknown operator": (wanting("{key: a, operator: Near}"), "'Near' is not an operator; use one of In, NotIn"),
    "two bounds": (wanting('{key: a, operator: Gt, values: ["1", "2"]}'), "Gt needs exactly one value"),
    "minValues": (wanting("{key: a, operator: In, values: [x], minValues: 2}"), "2 is more than the number of values"),
    "budget of 120%": (spec("disruption: {budgets: [{nodes: 120%}]}"), "'120%' is not a number of nodes"),
    "schedule alone": (spec("disruption: {budgets: [{nodes: 1, schedule: '@daily'}]}"), "a schedule needs a duration"),
    "impossible cron": (
        spec("disruption: {budgets: [{nodes: '1', schedule: '0 0 31 2 *', duration: 8h}]}"),
        r"spec.disruption.budgets\[0\].schedule: '0 0 31 2 \*' is not a schedule: .*never have a day 31",
    ),
    "duration 5x": (
        spec("disruption: {consolidateAfter: 5x}"),
        "spec.disruption.consolidateAfter: '5x' is not a duration",
    ),
    "same name twice": (
        "kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: a}\n",
        "Node a: .* keep one",
    ),
    "unknown pool": (
        f"{CLAIM}spec: {{requirements: [], {CLASS}}}\n",
        "NodeClaim c: .*there is no NodePool 'ghost'",
    ),
    "unknown node": ("kind: Pod\nmetadata: {name: a}\nspec: {nodeName: ghost}\n", "Pod default/a: .*no Node 'ghost'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_line_and_status_2(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    file = tmp_path / "input.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("-f", str(file), "--output", "json")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert re.match(rf"karpool: {re.escape(str(file))}: .*{message}", result.stderr)
    first = json.loads(result.stdout)["problems"][0]
    assert first["file"] == str(file)
    assert first["message"] in result.stderr


@pytest.mark.parametrize(
    ("argument", "message"),
    [(".", "holds no manifests"), ("nowhere.yaml", "does not exist"), ("/proc/self/mem", "cannot be read")],
)
def test_a_place_that_cannot_be_read_gets_one_line(
    argument: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("-f", argument)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"karpool: {argument}: {message}")
    assert result.stderr.count("\n") == 1


def test_a_file_without_permission_gets_one_line(tmp_path: Path) -> None:
    file = tmp_path / "secret.yaml"
    file.touch(mode=0o000)
    command = [*unprivileged(), Path(sys.executable).parent / "karpool", "validate", "-f", file]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    assert (result.returncode, result.stderr) == (2, f"karpool: {file}: cannot be read: Permission denied\n")


def test_sound_input_is_counted_by_kind() -> None:
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"n{number}"}} for number in range(5000)]
    service = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "s"}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*spaces, service]})
    result = run("-f", "-", "--output", "json", given=text)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert json.loads(result.stdout) == {
        "kinds": {"Namespace": 5000},
        "skipped": {"Endpoints": 1},
        "warnings": [],
        "problems": [],
    }


def test_the_table_counts_skips_warns_and_lists_problems() -> None:
    text = spec("foo: 1") + "---\nkind: Endpoints\n---\nkind: Pod\nmetadata: {name: a}\nspec: {nodeName: ghost}\n"
    result = run("-f", "-", given=text)
    assert result.exit_code == 2
    for part in (
        "NodePool |",
        "Skipped, not needed: 1 Endpoints",
        "Warnings: 1",
        "spec.foo: is not a known field",
        "Problems: 1",
    ):
        assert part in result.stdout
    assert "\x1b" not in result.stdout


def test_all_problems_are_in_the_json() -> None:
    result = run("-f", "-", "-o", "json", given=spec("weight: 0\n  disruption: {consolidationPolicy: Sometimes}"))
    assert [problem["rule"] for problem in json.loads(result.stdout)["problems"]] == [
        "WeightRange",
        "ConsolidationPolicy",
    ]


def test_help_reads_like_a_manual_page() -> None:
    text = run("--help").stdout
    for section in ("WHAT -f READS", "WHAT IS CHECKED", "EXAMPLES", "EXIT STATUS"):
        assert section in text


def test_a_table_for_people_stops_at_fifty_lines() -> None:
    text = "---\n".join(
        f"kind: Pod\nmetadata: {{name: p{number}}}\nspec: {{nodeName: ghost}}\n" for number in range(60)
    )
    assert "and 10 more; --output json lists all" in run("-f", "-", given=text).stdout


def test_the_real_program_refuses_without_a_traceback(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text("[" * 200_000 + "]" * 200_000)
    program = Path(sys.executable).parent / "karpool"
    result = subprocess.run([program, "validate", "-f", file], capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    assert (result.returncode, result.stderr) == (
        2,
        f"karpool: {file}: document 1: is nested too deeply; no manifest is\n",
    )


def test_an_expensive_pool_that_is_preferred_to_a_cheap_one_is_warned_about(tmp_path: Path) -> None:
    def pool(name: str, kind: str, weight: str) -> str:
        rule = f"{{key: node.kubernetes.io/instance-type, operator: In, values: [{kind}]}}"
        return (POOL % (f"{CLASS}, requirements: [{rule}]", weight)).replace("name: p}", f"name: {name}}}")

    file = tmp_path / "pools.yaml"
    file.write_text(f"{pool('expensive', 'p4d.24xlarge', 'weight: 100')}---\n{pool('inexpensive', 't3.small', '')}")
    result = run("-f", str(file), "--output", "json")
    assert result.exit_code == 0
    (warning,) = (entry for entry in json.loads(result.output)["warnings"] if entry["field"] == "spec.weight")
    assert (warning["object"], warning["rule"]) == ("NodePool expensive", "DearFavourite")
    assert warning["file"] == str(file)
