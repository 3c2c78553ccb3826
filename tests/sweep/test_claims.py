"""What is claimed of the consolidation grace period, on the recording that comes with Karpool, over several seeds."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from karpool.cli.main import cli
from karpool.virtual.statistics import Estimate, paired

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trials() -> list[dict[str, Any]]:
    asked = ["--set", "consolidateAfter=30s", "--set", "gracePeriod=Never,30m", "--seeds", "3", "--length", "6h"]
    result = CliRunner().invoke(cli, ["sweep", "workday", *asked, "--run-all", "-o", "json"])
    assert result.exit_code == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)["trials"]
    return found


def changed_by(trials: list[dict[str, Any]], name: str) -> Estimate:
    """What the grace period changes in a measure, on the same seeds."""
    values = [
        [trial["result"][name] for trial in trials if trial["setting"]["gracePeriod"] == period]
        for period in ("30m", "Never")
    ]
    found = paired(*values)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["evictions", "nodesLaunched", "pendingPodSeconds"])
def test_a_grace_period_means_less_churn_with_confidence(trials: list[dict[str, Any]], name: str) -> None:
    high = changed_by(trials, name).high
    assert high is not None
    assert high < 0


def test_and_it_has_its_price(trials: list[dict[str, Any]]) -> None:
    assert changed_by(trials, "cost").mean > 0
