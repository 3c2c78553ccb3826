"""`karpool diff` and `--fail-if` through the real entry."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.tables import row, table

from karpool.cli.main import cli

EXAMPLES = Path(__file__).parents[2] / "examples"
OPTIONS = ("--catalog", "sample", "--at", "2026-11-15T12:00:00Z", "--effort", "0")
POOLS = (EXAMPLES / "nodepools.yaml").read_text()


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=given)


@cache
def plan() -> str:
    return run("plan", "-f", str(EXAMPLES), *OPTIONS, "-o", "json").stdout


def changed(tmp_path: Path, before: str, after: str) -> str:
    assert before in POOLS
    file = tmp_path / "new.yaml"
    file.write_text(POOLS.replace(before, after))
    return str(file)


def compared(second: str, *arguments: str) -> Any:
    first = str(EXAMPLES / "nodepools.yaml")
    result = run("diff", first, second, "-f", str(EXAMPLES), *OPTIONS, *arguments, "-o", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@table(
    row("it holds", condition="savings>20%", status=3, said="this holds: savings is 66.873"),
    row("it does not", condition="savings>90% or pending>0", status=0, said=""),
    row("nobody knows", condition="distance>1%", status=3, said="this cannot be ruled out: distance is ? %"),
)
def test_a_plan_fails_on_what_the_user_names(condition: str, status: int, said: str) -> None:
    result = run("plan", "-f", str(EXAMPLES), *OPTIONS, "--no-bound", "--fail-if", condition, "-o", "json")
    assert result.exit_code == status
    assert said in result.stderr
    assert result.stderr.count("\n") == (1 if said else 0)
    assert json.loads(result.stdout)["kind"] == "Plan"


def test_a_bad_condition_is_one_line_before_anything_is_read() -> None:
    result = run("plan", "-f", "nowhere.json", "--fail-if", "savings>lots")
    assert result.exit_code == 2
    assert "--fail-if" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_same_plan_twice_makes_no_difference(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan())
    result = run("diff", str(file), str(file))
    assert result.exit_code == 0, result.stderr
    assert "The second plan makes no difference to price, nodes and evictions." in result.stdout


def test_a_plan_comes_from_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan())
    result = run("diff", "-", str(file), "-o", "json", given=plan())
    document = json.loads(result.stdout)
    assert (document["kind"], document["compared"], document["pricePerHour"]) == ("PlanDiff", "Plans", 0.0)
    assert document["first"]["evictions"] == document["second"]["evictions"] > 0


def test_the_same_pools_make_no_difference() -> None:
    document = compared(str(EXAMPLES / "nodepools.yaml"))
    assert (document["pricePerHour"], document["evictions"], document["changedNodes"]) == (0.0, 0, [])


def test_a_pool_that_lets_nothing_go_costs_what_the_plan_would_have_saved(tmp_path: Path) -> None:
    closed = compared(changed(tmp_path, "nodes: 50%", "nodes: '0'"))
    assert closed["pricePerHour"] == pytest.approx(closed["second"]["pricePerHour"] - closed["first"]["pricePerHour"])
    assert closed["pricePerHour"] > 1
    assert closed["second"]["evictions"] == 0
    assert {node["verdicts"][1] for node in closed["changedNodes"]} == {"keep"}


def test_a_changed_template_makes_all_nodes_of_its_pools_drift(tmp_path: Path) -> None:
    """As in the cluster, where a controller compares hashes of the template."""
    document = compared(changed(tmp_path, "expireAfter: Never", "expireAfter: 720h"))
    drifted = [node for node in document["changedNodes"] if "NodePoolDrifted" in node["reasons"][1]]
    assert drifted
    assert document["evictions"] > 0


def test_what_deleting_a_pool_with_nodes_costs_is_not_known_and_fails_a_pipeline(tmp_path: Path) -> None:
    only = tmp_path / "one.yaml"
    only.write_text(POOLS.split("---\n")[0])
    document = compared(str(only))
    nodes = document["deletedPools"][0]["nodes"]
    assert document["deletedPools"] == [{"name": "batch", "nodes": nodes}]
    assert nodes > 0
    unknown = [document[name] for name in ("pricePerHour", "pricePerMonth", "nodes", "evictions", "pending")]
    assert unknown == [None] * 5
    assert [document["second"][name] for name in ("nodes", "removed", "evictions", "pending")] == [None] * 4
    assert [pool["nodes"][1] for pool in document["pools"] if pool["name"] == "batch"] == [None]
    assert "deleting a NodePool deletes its nodes; where their pods go is not planned here" in document["warnings"]
    pools = str(EXAMPLES / "nodepools.yaml")
    result = run("diff", pools, str(only), "-f", str(EXAMPLES), *OPTIONS, "--fail-if", "evictions>0 or price>1$/month")
    assert result.exit_code == 3
    headline = f"What this NodePool change would cost and evict cannot be told: NodePool batch is deleted with {nodes} "
    assert headline in result.stdout.replace("\n", " ")
    assert "this cannot be ruled out: evictions is ?, price is ? $/month" in result.stderr


def test_deleting_a_pool_without_nodes_changes_what_is_planned_only(tmp_path: Path) -> None:
    """Here its nodes are another pool's: nothing goes with it."""
    spare = tmp_path / "spare.yaml"
    spare.write_text(f"{POOLS}---\n{POOLS.split('---' + chr(10))[1].replace('name: batch', 'name: spare')}")
    pools = str(EXAMPLES / "nodepools.yaml")
    result = run("diff", str(spare), pools, "-f", str(EXAMPLES), *OPTIONS, "-o", "json")
    document = json.loads(result.stdout)
    assert (document["deletedPools"], document["second"]["nodes"] is None) == ([], False), result.stderr


def test_other_pools_of_the_cluster_stay(tmp_path: Path) -> None:
    """A file with one pool changes that one only."""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    batch = POOLS.split("---\n")[1]
    old.write_text(batch)
    new.write_text(batch.replace("nodes: 50%", "nodes: '0'"))
    result = run("diff", str(old), str(new), "-f", str(EXAMPLES), *OPTIONS, "-o", "json")
    document = json.loads(result.stdout)
    assert {node["nodePool"] for node in document["changedNodes"]} <= {"batch", "general"}
    assert "general" in [pool["name"] for pool in document["pools"]]
    assert document["second"]["removed"] > 0


def test_a_difference_fails_on_what_the_user_names(tmp_path: Path) -> None:
    new = changed(tmp_path, "nodes: 50%", "nodes: '0'")
    first = str(EXAMPLES / "nodepools.yaml")
    result = run("diff", first, new, "-f", str(EXAMPLES), *OPTIONS, "-o", "markdown", "--fail-if", "price>100$/month")
    assert result.exit_code == 3
    assert result.stdout.startswith("### Karpool: This NodePool change would cost 1,087 $/month more")
    assert "this holds: price is 1,087" in result.stderr


@table(
    row("a plan and a manifest", arguments=["PLAN", "POOLS"], said="one of the two is a plan"),
    row("plans and a cluster", arguments=["PLAN", "PLAN", "-f", "POOLS"], said="two plans are compared as they are"),
    row("twice standard input", arguments=["-", "-"], said="standard input can be read only once"),
    row("a file that is not there", arguments=["no.yaml", "POOLS"], said="no.yaml: does not exist"),
    row("pods", arguments=["PODS", "POOLS"], said="holds neither a plan (karpool plan -o json) nor NodePools"),
    row("half a plan", arguments=["HALF", "HALF"], said="is not a plan that can be read"),
)
def test_bad_input_is_one_line(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(plan())
    (tmp_path / "half.json").write_text('{"kind": "Plan", "time": "2026-11-15T12:00:00Z"}')
    files = {
        "PLAN": tmp_path / "plan.json",
        "HALF": tmp_path / "half.json",
        "POOLS": EXAMPLES / "nodepools.yaml",
        "PODS": EXAMPLES / "pods.json",
    }
    result = run("diff", *(str(files.get(word, word)) for word in arguments))
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
