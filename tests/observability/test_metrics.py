"""The metrics for Prometheus: names and labels of Karpenter, and nothing of pools that are gone."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from karpool import __version__
from karpool.observability.metrics import DisruptedClaim, Metrics, PoolSample
from karpool.observability.series import COUNTERS, GAUGES, HISTOGRAMS, PREFIX

DOCS = Path(__file__).parents[2] / "docs" / "operations.md"


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"karpool_{name}", labels)


def test_what_happens_is_counted_under_the_names_of_karpenter() -> None:
    metrics = Metrics()
    metrics.claim_created("general", "provisioned")
    metrics.claim_created("general", "provisioned")
    gone = DisruptedClaim(
        pool="general",
        reason="Underutilized",
        capacity_type="spot",
        policy="WhenEmptyOrUnderutilized",
        mode="eventual",
        pods=3,
    )
    metrics.claim_disrupted(gone)
    metrics.unhealthy_disrupted(gone, "NetworkUnavailable", "ami-1")
    metrics.claim_terminated("general", "spot", "z1", seconds=40)
    metrics.api_request("evict", "pods", 429, 0.01)
    metrics.api_request("patch", "nodes", 409, 0.01)
    assert (
        value(metrics, "nodeclaims_created_total", nodepool="general", reason="provisioned", min_values_relaxed="false")
        == 2
    )
    common = {"nodepool": "general", "capacity_type": "spot", "termination_mode": "eventual"}
    disrupted = {**common, "reason": "underutilized", "consolidation_policy": "when_empty_or_underutilized"}
    assert value(metrics, "nodeclaims_disrupted_total", **disrupted) == 1
    assert value(metrics, "pods_disruption_initiated_total", **disrupted) == 3
    repaired = {**common, "condition": "network_unavailable", "image_id": "ami-1"}
    assert value(metrics, "nodeclaims_unhealthy_disrupted_total", **repaired) == 1
    assert value(metrics, "nodeclaims_terminated_total", nodepool="general", capacity_type="spot", zone="z1") == 1
    assert value(metrics, "nodeclaims_termination_duration_seconds_sum", nodepool="general") == 40
    assert value(metrics, "pods_eviction_requests_total", code="429") == 1
    assert value(metrics, "api_requests_total", verb="patch", resource="nodes", code="409") == 1
    assert value(metrics, "api_request_duration_seconds_count", verb="patch", resource="nodes") == 1


@pytest.mark.parametrize(
    ("method", "reason", "kind"),
    [
        ("Emptiness", "empty", "empty"),
        ("Drift", "drifted", ""),
        ("MultiNodeConsolidation", "underutilized", "multi"),
        ("SingleNodeConsolidation", "underutilized", "single"),
    ],
)
def test_a_method_is_labelled_as_dashboards_know_it(method: str, reason: str, kind: str) -> None:
    metrics = Metrics()
    metrics.command_started(method, "replace", ["general"])
    metrics.command_invalidated(method)
    metrics.command_rolled_back(method, "replace")
    labels = {"decision": "replace", "reason": reason, "consolidation_type": kind}
    assert value(metrics, "voluntary_disruption_decisions_total", **labels) == 1
    assert value(metrics, "voluntary_disruption_decisions_by_nodepool_total", nodepool="general", **labels) == 1
    assert value(metrics, "voluntary_disruption_queue_failures_total", **labels) == 1
    assert value(metrics, "voluntary_disruption_failed_validations_total", consolidation_type=kind) == 1


def test_moves_are_counted_for_every_policy_and_scored_for_balanced_pools() -> None:
    metrics = Metrics()
    metrics.move_judged("general", "Balanced", approved=True, score=0.5)
    metrics.move_judged("general", "Balanced", approved=False, score=0.4)
    metrics.move_judged("other", "WhenEmptyOrUnderutilized", approved=True, score=None)
    labels = {"decision": "approved", "nodepool": "general", "policy": "Balanced"}
    assert value(metrics, "consolidation_moves_total", **labels) == 1
    assert value(metrics, "consolidation_score_sum", **labels) == 0.5
    assert value(metrics, "consolidation_score_sum", **{**labels, "decision": "rejected"}) == 0.4
    plain = {"decision": "approved", "nodepool": "other", "policy": "WhenEmptyOrUnderutilized"}
    assert value(metrics, "consolidation_moves_total", **plain) == 1
    assert value(metrics, "consolidation_score_count", **plain) is None


def test_savings_add_up_and_dearer_commands_take_nothing_away() -> None:
    metrics = Metrics()
    for savings in (0.5, -0.2, 0.25):
        metrics.command_completed(savings)
    assert value(metrics, "saved_dollars_per_hour_total") == pytest.approx(0.75)


def test_figures_of_a_pool_are_shown_with_their_units() -> None:
    metrics = Metrics()
    metrics.pools(
        [PoolSample(name="general", nodes=3, cost=0.6, unpriced=1, limits={"cpu": 100}, allowed={"empty": 2})],
    )
    assert value(metrics, "cluster_cost_dollars_per_hour", nodepool="general") == pytest.approx(0.6)
    assert value(metrics, "cluster_unpriced_nodes", nodepool="general") == 1
    assert value(metrics, "nodepools_limit", nodepool="general", resource_type="cpu") == 100
    assert value(metrics, "nodepools_allowed_disruptions", nodepool="general", reason="empty") == 2


def test_every_series_of_a_removed_pool_ends() -> None:
    metrics = Metrics()
    for pool in ("stays", "goes"):
        metrics.claim_created(pool, "provisioned")
        metrics.node_terminated(pool, "z1", seconds=30, age=3600)
    metrics.pools([PoolSample(name="stays", nodes=1), PoolSample(name="goes", nodes=1, limits={"cpu": 1})])
    assert b'"goes"' in metrics.page()
    metrics.pools([PoolSample(name="stays", nodes=1)])
    assert b'"goes"' not in metrics.page()
    assert (
        value(metrics, "nodeclaims_created_total", nodepool="stays", reason="provisioned", min_values_relaxed="false")
        == 1
    )


def test_reasons_of_the_last_pass_replace_those_of_the_one_before() -> None:
    metrics = Metrics()
    metrics.rejections(rejections={"PodDoNotDisrupt": 4, "NotCheaper": 2}, eligible={"Empty": 1})
    metrics.rejections(rejections={"NotCheaper": 3}, eligible={"Empty": 0})
    assert value(metrics, "rejections", code="PodDoNotDisrupt") is None
    assert value(metrics, "rejections", code="NotCheaper") == 3
    assert value(metrics, "voluntary_disruption_eligible_nodes", reason="empty") == 0


def test_the_page_parses_and_has_the_version_and_the_process() -> None:
    metrics = Metrics()
    metrics.leading(leads=True)
    page = metrics.page().decode()
    families = {family.name for family in text_string_to_metric_families(page)}
    assert {"karpool_build_info", "karpool_leading", "process_resident_memory_bytes"} <= families
    assert f'karpool_build_info{{version="{__version__}"}} 1.0' in page
    assert "_created" not in re.sub(r"\w+_created_total", "", page)


def test_a_dry_run_says_so_and_is_no_leader() -> None:
    metrics = Metrics()
    assert (value(metrics, "leading"), value(metrics, "dry_run")) == (0, 0)
    metrics.dry_run()
    assert (value(metrics, "leading"), value(metrics, "dry_run")) == (0, 1)


def test_two_processes_in_one_share_nothing() -> None:
    first, second = Metrics(), Metrics()
    first.node_created("general", "z1")
    assert value(second, "nodes_created_total", nodepool="general", zone="z1") is None


def test_the_documentation_has_every_metric_with_its_labels_and_its_help() -> None:
    declared = {**COUNTERS, **{name: series for name, (series, _) in HISTOGRAMS.items()}, **GAUGES}
    rows = [f"| `{PREFIX}_{name}` | {', '.join(series.labels)} | {series.help} |" for name, series in declared.items()]
    rows.append(f"| `{PREFIX}_build_info` | version | The version of Karpool. |")
    assert re.findall(r"^\| `karpool_\w+` .*$", DOCS.read_text(), re.MULTILINE) == rows
