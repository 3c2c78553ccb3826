"""NodeOverlays as users meet them: behind a gate, and never silent."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from karpool.cli.main import cli

EXAMPLES = str(Path(__file__).parents[2] / "examples")
HALF = """
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: savings-plan}
spec:
  requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
  priceAdjustment: "-50%"
"""
ON = ("--feature-gates", "NodeOverlay=true")


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    """Plans the examples with an overlay in a file."""

    def made(overlay: str, *arguments: str) -> Result:
        (tmp_path / "overlay.yaml").write_text(overlay)
        files = ("-f", EXAMPLES, "-f", str(tmp_path / "overlay.yaml"))
        fixed = ("--at", "2026-11-15T12:00:00Z", "--effort", "0", "--output", "json")
        return CliRunner().invoke(cli, ["plan", *files, *fixed, *arguments])

    return made


def before(result: Result) -> float:
    assert result.exit_code == 0, result.stderr
    price: float = json.loads(result.stdout)["before"]["pricePerHour"]
    return price


@pytest.mark.slow
def test_an_overlay_changes_prices_behind_its_gate_and_is_named_without(plan: Any) -> None:
    off, on = plan(HALF), plan(HALF, *ON)
    assert before(on) == pytest.approx(before(off) / 2)
    assert off.stderr == "karpool: 1 NodeOverlays change no prices; --feature-gates NodeOverlay=true has them do so\n"
    assert on.stderr == ""


@pytest.mark.slow
def test_an_overlay_of_one_pool_changes_what_its_nodes_cost(plan: Any) -> None:
    of_a_pool = HALF.replace("kubernetes.io/os", "karpenter.sh/nodepool").replace("linux", "general")
    result = plan(of_a_pool, *ON)
    assert before(plan(HALF, *ON)) < before(result) < before(plan(of_a_pool))
    assert result.stderr == ""


@pytest.mark.slow
def test_an_overlay_that_is_left_out_is_named_with_the_reason(plan: Any) -> None:
    of_nothing = HALF.replace("kubernetes.io/os", "example.com/nobody")
    result = plan(of_nothing, *ON)
    assert before(result) == before(plan(of_nothing))
    assert result.stderr.startswith("karpool: NodeOverlay savings-plan is left out: requires example.com/nobody")


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ('priceAdjustment: "half"', "spec.priceAdjustment"),
        ('priceAdjustment: "-50%"\n  price: "1"', "spec.priceAdjustment"),
        ('price: "-1"', "spec.price"),
        ("capacity: {cpu: 4}", "spec.capacity.cpu"),
        ("weight: 20000", "spec.weight"),
    ],
)
def test_what_an_api_server_refuses_is_one_clear_line(plan: Any, written: str, field: str) -> None:
    result = plan(HALF.replace('priceAdjustment: "-50%"', written))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert field in result.stderr
