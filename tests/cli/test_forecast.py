"""`karpool plan --forecast`, run as a user runs it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.factories.clouds import eks_node, one_pod_each

from karpool.cli.main import cli

EXAMPLES = str(Path(__file__).parents[2] / "examples")
AT = ("--at", "2026-11-15T12:00:00Z", "--no-bound", "--effort", "0")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def forecast_of(file: str, *options: str) -> Any:
    result = run("plan", "-f", file, *AT, *options, "--output", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["forecast"]


def test_nothing_is_forecast_unless_asked_for() -> None:
    assert forecast_of(EXAMPLES, "--steps", "1") is None


def test_a_forecast_stands_beside_what_the_plan_has() -> None:
    told = run("plan", "-f", EXAMPLES, "--catalog", "sample", *AT, "--steps", "2", "--forecast").stdout
    words = "Once kube-scheduler chooses places (LeastAllocated): about 1.66 $/h, 14 evictions, 2 launches;"
    assert f"{words} the plan has 1.66 $/h, 14 and 2." in told


def test_nodes_without_their_finalizer_are_drained_all_the_same(tmp_path: Path) -> None:
    items = [
        item for file in sorted(Path(EXAMPLES).glob("[a-z]*")) for item in yaml.safe_load_all(file.read_text()) if item
    ]
    listed = [part for item in items for part in item.get("items", [item])]
    for part in listed:
        part["metadata"].pop("finalizers", None)
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": listed}, default=str))
    options = ("--catalog", "sample", "--steps", "2", "--forecast")
    assert forecast_of(str(file), *options) == forecast_of(EXAMPLES, *options)


def test_the_scheduler_that_a_plan_foresees_is_the_one_of_the_forecast() -> None:
    part = forecast_of(EXAMPLES, "--steps", "1", "--scheduler", "MostAllocated", "--forecast")
    assert (part["scheduler"], part["foreseen"]) == ("MostAllocated", True)
    assert part["expected"] == pytest.approx(part["planned"])


def test_what_comes_of_a_plan_for_node_groups_is_unknown_and_says_why(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    manifests = one_pod_each([eks_node(f"n{at}", "web") for at in range(4)])
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    part = forecast_of(str(file), "--forecast")
    assert part["planned"]["evictions"]
    assert part["expected"] == {"pricePerHour": None, "evictions": None, "launches": None}
    assert "node group web" in part["reason"]
    told = run("plan", "-f", str(file), *AT, "--forecast").stdout
    assert f"once kube-scheduler chooses places (LeastAllocated) is not known: {part['reason']}." in told


def test_a_fleet_has_no_forecast(tmp_path: Path) -> None:
    result = run("plan", "--fleet", str(tmp_path), "--forecast")
    assert result.exit_code != 0
    assert "--forecast: is of one cluster" in result.stderr
