"""Dashboards and rules name what the programs serve, are made from it, and Prometheus understands them."""

import json
import re
import runpy
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.compaction.clusters import decided, pool_node
from tests.monitoring.promtool import ROOT, promtool

from karpool.compaction.metrics import PREFIX as COMPACTION_PREFIX
from karpool.observability.compactor_metrics import CompactorMetrics
from karpool.observability.metrics import Metrics
from karpool.observability.series import COUNTERS, GAUGES, HISTOGRAMS

FOLDER = ROOT / "deploy" / "monitoring"
BOARDS = ("dashboard.json", "dashboard-compactor.json")
RULES: dict[str, Any] = yaml.safe_load((FOLDER / "rules.yaml").read_text())
OF_SCRAPES = {"job", "instance", "le"}
OF_THE_COMPACTOR = {"node", "nodepool", "brake"}


def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "monitoring"))


def board(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return document


def queries(name: str) -> list[str]:
    return [target["expr"] for panel in board(name)["panels"] for target in panel.get("targets", ())]


def rules() -> Iterator[dict[str, Any]]:
    return (rule for group in RULES["groups"] for rule in group["rules"])


def served() -> set[str]:
    """The names that the controller and the compactor really serve, with those of a histogram's parts."""
    compactor = CompactorMetrics()
    compactor.decided(decided(pool_node("a", pods=["1"])), datetime(2026, 11, 15, tzinfo=UTC))
    pages = (Metrics().page(), compactor.page())
    families = [family for page in pages for family in text_string_to_metric_families(page.decode())]
    names = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    parts = {f"{family.name}_{part}" for family in families if family.type == "histogram" for part in ("bucket", "sum")}
    return names | parts


def named(query: str) -> set[str]:
    return set(re.findall(r"(?<![:\w])(?:karpool|estafette_node_compactor|process)_\w+", query))


def all_queries() -> list[str]:
    return [*chain.from_iterable(map(queries, BOARDS)), *(rule["expr"] for rule in rules())]


def test_the_files_are_what_the_script_makes_of_the_metrics_now() -> None:
    made = script()["files"]((FOLDER / "rules.yaml").read_text())
    old = [name for name, text in made.items() if (FOLDER / name).read_text() != text]
    assert not old, f"run scripts/monitoring: {old}"


def test_every_metric_of_dashboards_and_rules_is_served() -> None:
    there = served()
    for query in all_queries():
        assert named(query) <= there, query


def test_every_label_of_dashboards_and_rules_is_one_of_its_metrics() -> None:
    declared = {**COUNTERS, **GAUGES, **{name: series for name, (series, _) in HISTOGRAMS.items()}}
    for query in all_queries():
        names = {re.sub(r"_bucket$", "", name.removeprefix("karpool_")) for name in named(query)}
        known = {label for name in names if name in declared for label in declared[name].labels} | OF_SCRAPES
        if any("compactor" in name for name in names):
            known |= OF_THE_COMPACTOR
        grouped = {label.strip() for by in re.findall(r"\b(?:by|on) \(([^)]*)\)", query) for label in by.split(",")}
        selected = set(re.findall(r"[{,]\s*(\w+)\s*[=!]", query))
        assert grouped | selected <= known, query


def test_every_recorded_metric_that_a_rule_names_is_recorded() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    for query in all_queries():
        assert set(re.findall(r"karpool:\w+(?::\w+)*", query)) <= recorded


def test_the_dashboards_show_every_metric() -> None:
    shown = {re.sub(r"_bucket$", "", name) for board in BOARDS for query in queries(board) for name in named(query)}
    missing = {name for name in served() if not re.search(r"_(?:bucket|sum)$", name)} - shown
    assert {name for name in missing if name.startswith(("karpool", "estafette"))} == {"karpool_build_info"}


@pytest.mark.parametrize("name", BOARDS)
def test_panels_have_numbers_of_their_own_and_do_not_overlap(name: str) -> None:
    panels = board(name)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert all(first["gridPos"]["y"] <= second["gridPos"]["y"] for first, second in pairwise(panels))


def test_every_alert_has_a_test_and_says_what_to_do() -> None:
    tests = (FOLDER / "rules-test.yaml").read_text()
    for rule in rules():
        if "alert" in rule:
            assert rule["alert"] in tests
            assert rule["labels"]["severity"] in {"critical", "warning", "info"}
            assert rule["annotations"]["action"].endswith(".")
            page, _, anchor = rule["annotations"]["runbook"].partition("#")
            assert anchor == rule["alert"].lower()
            assert f"\n### {rule['alert']}\n" in (ROOT / page).read_text()


@pytest.mark.slow
def test_alerts_fire_when_they_should_and_only_then() -> None:
    assert "SUCCESS" in promtool("test", "rules", str(FOLDER / "rules-test.yaml"))


def series_of(names: set[str], labels: dict[str, tuple[str, ...]]) -> Iterator[dict[str, str]]:
    """Made-up series, one of each metric, that grow."""
    for name in sorted(names):
        plain = re.sub(r"_bucket$", "", name)
        pairs = ['job="karpool"', 'instance="a"', *(f'{label}="some"' for label in labels.get(plain, ()))]
        for end in (['le="1"'], ['le="+Inf"']) if name.endswith("_bucket") else ([],):
            yield {"series": f"{name}{{{', '.join([*pairs, *end])}}}", "values": "1+1x30"}


@pytest.mark.slow
def test_every_query_of_the_dashboards_is_answered(tmp_path: Path) -> None:
    made = script()
    labels = dict(made["LABELS"]) | {
        name: ("nodepool", "node") if "node_count" not in name else ("nodepool",)
        for name in made["COMPACTOR_HELP"]
        if name.startswith(COMPACTION_PREFIX)
    }
    labels["karpool_compactor_brakes"] = ("brake",)
    asked = [
        query.replace('"$job"', '"karpool"').replace('"$nodepool"', '".*"').replace("$__rate_interval", "10m")
        for name in BOARDS
        for query in queries(name)
    ]
    test = {
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": list(series_of(set().union(*map(named, asked)), labels)),
                "promql_expr_test": [
                    {
                        "expr": f"count({query}) > bool 0",
                        "eval_time": "20m",
                        "exp_samples": [{"labels": "{}", "value": 1}],
                    }
                    for query in asked
                ],
            }
        ],
    }
    (tmp_path / "queries.yaml").write_text(yaml.safe_dump(test))
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "queries.yaml"))


def test_alerts_link_to_the_runbook_where_it_has_an_address() -> None:
    address = "https://docs.example.com/runbook/"
    linked = yaml.safe_load(script()["linked"]((FOLDER / "rules.yaml").read_text(), address))
    made = [rule for group in linked["groups"] for rule in group["rules"] if "alert" in rule]
    written = [rule["annotations"]["runbook"] for rule in rules() if "alert" in rule]
    assert [rule["annotations"]["runbook_url"] for rule in made] == [
        f"{address}#{path.partition('#')[2]}" for path in written
    ]
    assert not any("runbook" in rule["annotations"] for rule in made)
