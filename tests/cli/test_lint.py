"""`karpool lint` through the real entry: what it prints, its exit status, and what CI systems read."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from karpool.cli.main import cli
from karpool.lint.rules import RULES

EXAMPLES = str(Path(__file__).parents[2] / "examples")
NOON = "2026-11-15T12:00:00Z"
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec: {template: {spec: {nodeClassRef: {group: g, kind: k, name: n}, requirements: [%s]}}, disruption: {budgets: [%s]}}
"""
TYPE = "{key: node.kubernetes.io/instance-type, operator: In, values: [%s]}"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["lint", "--catalog", "sample", "--at", NOON, *arguments])


def linted(*arguments: str) -> Any:
    return json.loads(run(*arguments, "-o", "json").stdout)


@pytest.fixture
def pools(tmp_path: Path) -> str:
    file = tmp_path / "pools.yaml"
    file.write_text(POOL % ("closed", TYPE % "m6i.large", "{nodes: '0'}") + "---" + POOL % ("moon", TYPE % "m99", ""))
    return str(file)


def test_the_table_says_what_is_so_why_and_what_to_do() -> None:
    result = run("-f", EXAMPLES, "--costs", "0")
    assert result.exit_code == 0, result.stderr
    assert "warning PdbNeverAllows: A PodDisruptionBudget that never allows an eviction" in result.stdout
    assert "PodDisruptionBudget shop/ledger |       ? | needs 1 healthy pods of 1" in result.stdout
    assert "Allow one disruption (maxUnavailable: 1), or run one replica more" in result.stdout
    assert "0 errors, 3 warnings." in result.stdout


def test_the_document_has_costs_by_the_hour_and_by_the_month() -> None:
    document = linted("-f", EXAMPLES, "--costs", "1")
    assert (document["apiVersion"], document["kind"], document["rules"]) == ("karpool.sh/v1", "Lint", len(RULES))
    first, second, *_ = document["findings"]
    assert first["costPerMonth"] == pytest.approx(first["costPerHour"] * 730)
    assert (second["aboutMoney"], second["costPerMonth"]) == (True, None)
    assert first["file"].endswith("examples/workloads.yaml")


def test_manifests_of_pools_are_enough(pools: str) -> None:
    document = linted("-f", pools)
    assert [(found["code"], found["object"]) for found in document["findings"]] == [
        ("NoKnownType", "NodePool moon"),
        ("FewSpotTypes", "NodePool closed"),
        ("BudgetNeverOpens", "NodePool closed"),
    ]
    assert (
        run("-f", pools, "--costs", "0").stderr
        == (
            "karpool: NodePool moon: no known type meets node.kubernetes.io/instance-type In [m99]: "
            "the catalogue does not know this label, and no node of the pool shows it\n"
        )
        or not run("-f", pools, "--costs", "0").stderr
    )


def test_a_value_that_breaks_a_rule_leads_to_validate(tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec: {weight: 0}\n")
    result = run("-f", str(file))
    assert result.exit_code == 2
    assert result.stderr.endswith("or leave it out; karpool validate lists all that is wrong\n")
    assert "validate" not in run("-f", "nowhere.yaml").stderr


def test_without_pods_no_figure_is_made_up(pools: str) -> None:
    of_money = [found for found in linted("-f", pools)["findings"] if found["aboutMoney"]]
    assert {(found["code"], found["costPerMonth"]) for found in of_money} == {
        ("FewSpotTypes", None), ("BudgetNeverOpens", None),
    }  # fmt: skip
    assert "NodePool closed |       ? | " in run("-f", pools).stdout


@pytest.mark.parametrize(
    ("level", "where", "status"),
    [("error", "pools", 3), ("warning", "examples", 3), ("error", "examples", 0), ("never", "pools", 0)],
)
def test_the_exit_status_says_whether_what_was_asked_for_was_found(
    level: str, where: str, status: int, pools: str
) -> None:
    file = pools if where == "pools" else EXAMPLES
    assert run("-f", file, "--costs", "0", "--fail-on", level).exit_code == status


def test_an_unknown_level_is_one_line_that_names_the_right_one() -> None:
    result = run("-f", EXAMPLES, "--fail-on", "warnings")
    assert result.exit_code == 2
    assert "did you mean warning?" in result.stderr
    assert result.stderr.count("\n") == 1


def test_validate_says_what_manifests_alone_tell(pools: str) -> None:
    result = CliRunner().invoke(cli, ["validate", "-f", pools, "-o", "json"])
    assert result.exit_code == 0, result.stderr
    assert {"NoKnownType", "BudgetNeverOpens"} <= {warning["rule"] for warning in json.loads(result.stdout)["warnings"]}


def test_validate_ends_with_the_number_of_warnings_too(pools: str) -> None:
    result = CliRunner().invoke(cli, ["validate", "-f", pools])
    assert result.exit_code == 0
    assert result.stdout.endswith("No problems, 3 warnings; --strict makes warnings problems.\n")


def test_validate_knows_the_types_of_the_catalogue_that_is_named(tmp_path: Path) -> None:
    file = tmp_path / "pool.yaml"
    file.write_text(POOL % ("azure", TYPE % "Standard_D2s_v5", ""))

    def rules(*options: str) -> set[str]:
        result = CliRunner().invoke(cli, ["validate", "-f", str(file), *options, "-o", "json"])
        return {warning["rule"] for warning in json.loads(result.stdout)["warnings"]}

    assert "NoKnownType" in rules()
    assert "NoKnownType" not in rules("--catalog", "azure")


def test_strict_validation_fails_on_warnings(pools: str) -> None:
    result = CliRunner().invoke(cli, ["validate", "-f", pools, "--strict", "-o", "json"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    document = json.loads(result.stdout)
    assert document["warnings"] == []
    assert document["problems"]
