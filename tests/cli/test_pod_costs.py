"""Pod costs that cannot be read, as plan, lint and validate tell of them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from karpool.cli.main import cli

AT = ("--at", "2026-11-15T12:00:00Z")
BAD = ("karpenter.sh/disruption-cost", "abc"), ("controller.kubernetes.io/pod-deletion-cost", "1.5")


def cluster(folder: Path, *costs: tuple[str, str]) -> str:
    """A node and as many pods as costs, each with the annotation that it names."""
    labels = {"kubernetes.io/hostname": "n", "node.kubernetes.io/instance-type": "m5.large"}
    size = {"cpu": "2", "memory": "8Gi", "pods": "58"}
    there = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": "shop", "annotations": dict([cost])},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]},
        }
        for number, cost in enumerate(costs)
    ]
    items = [{**there, "status": {"capacity": size, "allocatable": size}}, *pods]
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


@pytest.mark.parametrize("command", [("plan", "--effort", "0", "--no-bound"), ("lint",)])
def test_plan_and_lint_say_in_one_sentence_that_costs_count_as_0(tmp_path: Path, command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, [*command, "-f", cluster(tmp_path, *BAD), "--catalog", "sample", *AT])
    expected = "the cost of 2 pods, such as shop/p0, (karpenter.sh/disruption-cost) is no 32-bit number and counts as 0"
    assert expected in result.stderr


def test_costs_that_can_be_read_are_no_news(tmp_path: Path) -> None:
    file = cluster(
        tmp_path, ("karpenter.sh/disruption-cost", "-3"), ("controller.kubernetes.io/pod-deletion-cost", "7")
    )
    for command in (["plan", "--effort", "0", "--no-bound", *AT], ["validate"]):
        result = CliRunner().invoke(cli, [*command, "-f", file, "--catalog", "sample"])
        assert "counts as 0" not in result.stderr + result.stdout


@pytest.mark.parametrize("cost", BAD)
def test_validate_names_the_pod_the_annotation_and_its_value(tmp_path: Path, cost: tuple[str, str]) -> None:
    told = json.loads(CliRunner().invoke(cli, ["validate", "-f", cluster(tmp_path, cost), "--output", "json"]).stdout)
    (warning,) = [entry for entry in told["warnings"] if entry["rule"] == "CostIgnored"]
    assert (warning["object"], warning["message"]) == (
        "Pod shop/p0",
        f"{cost[1]!r} is no 32-bit number, so it counts as 0",
    )
    assert cost[0] in warning["field"]
