"""The page about pipelines has every name that conditions may speak of, with its units and its meaning."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from karpool.report.plans.condition import Metric
from karpool.report.plans.plan_diff import DIFF_METRICS
from karpool.report.plans.plan_metrics import PLAN_METRICS

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"


def documented(metrics: Mapping[str, Metric]) -> str:
    rows = [f"| `{name}` | {' '.join(m.units) or 'a number'} | {m.meaning} |" for name, m in metrics.items()]
    return "\n".join(["| name | units | meaning |", "|---|---|---|", *rows])


@pytest.mark.parametrize("metrics", [PLAN_METRICS, DIFF_METRICS], ids=["plan", "diff"])
def test_the_page_has_a_table_of_the_names_of_conditions(metrics: Mapping[str, Metric]) -> None:
    assert documented(metrics) in PAGE.read_text()


def test_every_name_of_a_difference_is_one_of_a_plan() -> None:
    assert DIFF_METRICS.keys() <= PLAN_METRICS.keys()
