from datetime import UTC, datetime
from typing import Any

import pytest
from tests.factories import pdb, pod

from karpool.disruption.candidates.pdbs import PdbLimits, Waves, currently_reschedulable
from karpool.model.labels import DISRUPTED_TAINT, DO_NOT_DISRUPT
from karpool.model.pod import Pod
from karpool.model.selectors import LabelSelector, SelectorExpression
from karpool.model.workloads import PodDisruptionBudget

NOW = datetime(2026, 11, 16, 14, 0, tzinfo=UTC)
WEB = {"app": "web"}


def web(name: str = "web-1", **rest: Any) -> Pod:
    return pod(name, node="n1", **rest)


@pytest.mark.parametrize(
    ("selector", "namespace", "matches"),
    [
        (WEB, "default", True),
        (WEB, "other", False),
        ({"app": "web", "tier": "front"}, "default", False),
        ({}, "default", True),
        (None, "default", False),
        (
            LabelSelector(match_expressions=(SelectorExpression(key="app", operator="In", values=("api", "web")),)),
            "default",
            True,
        ),
        (
            LabelSelector(match_expressions=(SelectorExpression(key="app", operator="In", values=("api",)),)),
            "default",
            False,
        ),
        (LabelSelector(match_expressions=(SelectorExpression(key="app", operator="In"),)), "default", False),
        (LabelSelector(match_expressions=(SelectorExpression(key="app", operator="Exists"),)), "default", True),
        (
            LabelSelector(match_expressions=(SelectorExpression(key="app", operator="NotIn", values=("web",)),)),
            "default",
            False,
        ),
        (
            LabelSelector(
                match_labels=WEB, match_expressions=(SelectorExpression(key="canary", operator="DoesNotExist"),)
            ),
            "default",
            True,
        ),
    ],
)
def test_a_budget_covers_pods_of_its_namespace_that_its_selector_finds(
    selector: Any, namespace: str, *, matches: bool
) -> None:
    budget = pdb("web", selector, namespace=namespace)
    others = [pdb(f"other-{i}", {"app": f"other-{i}"}) for i in range(3)]
    assert PdbLimits([*others, budget]).matching(web()) == ([budget] if matches else [])


def test_a_budget_that_allows_one_at_a_time_blocks_nobody() -> None:
    pdbs = PdbLimits([pdb("web", WEB, allowed=1, healthy=5)])
    assert all(pdbs.eviction_blocked(web(f"web-{i}"), NOW) is None for i in range(5))


def test_a_budget_that_allows_nothing_blocks_and_is_named() -> None:
    reason = PdbLimits([pdb("web", WEB, allowed=0, healthy=3)]).eviction_blocked(web(), NOW)
    assert reason is not None
    assert (reason.code, reason.object) == ("PodDisruptionBudget", "Pod default/web-1")
    assert "default/web allows no disruption now: 3 healthy" in reason.message


def test_a_budget_without_a_status_counts_as_allowing_nothing_and_says_so() -> None:
    reason = PdbLimits([pdb("web", WEB, allowed=0, healthy=0, max_unavailable=1)]).eviction_blocked(web(), NOW)
    assert reason is not None
    assert "no status yet" in reason.message


def test_two_budgets_over_one_pod_block_it_whatever_they_allow() -> None:
    pdbs = PdbLimits(
        [pdb("b", {}, allowed=5, healthy=5), pdb("a", WEB, allowed=5, healthy=5, unhealthy_policy="AlwaysAllow")]
    )
    for reason in (pdbs.eviction_blocked(web(ready=False), NOW), pdbs.fully_blocked(web(), NOW)):
        assert reason is not None
        assert reason.code == "MultiplePodDisruptionBudgets"
        assert "default/a, default/b" in reason.message


@pytest.mark.parametrize(
    ("rest", "blocked"),
    [
        ({}, True),
        ({"owner": "DaemonSet"}, True),
        ({"owner": "Node"}, False),
        ({"phase": "Succeeded"}, False),
        ({"deleted": NOW}, False),
        ({"tolerations": [DISRUPTED_TAINT]}, False),
        ({"annotations": {DO_NOT_DISRUPT: "true"}}, False),
    ],
)
def test_only_pods_that_would_be_evicted_are_tested(rest: dict[str, Any], *, blocked: bool) -> None:
    pdbs = PdbLimits([pdb("web", WEB, allowed=0, healthy=1, max_unavailable=0)])
    assert (pdbs.eviction_blocked(web(**rest), NOW) is not None) is blocked
    assert (pdbs.fully_blocked(web(**rest), NOW) is not None) is blocked


@pytest.mark.parametrize(
    ("policy", "ready", "blocked"),
    [("AlwaysAllow", False, False), ("AlwaysAllow", True, True), ("IfHealthyBudget", False, True), ("", False, True)],
)
def test_always_allow_lets_unready_pods_go(policy: str, *, ready: bool, blocked: bool) -> None:
    pdbs = PdbLimits([pdb("web", WEB, allowed=0, healthy=1, max_unavailable=0, unhealthy_policy=policy)])
    assert (pdbs.eviction_blocked(web(ready=ready), NOW) is not None) is blocked
    assert (pdbs.fully_blocked(web(ready=ready), NOW) is not None) is blocked


@pytest.mark.parametrize(
    ("spec", "blocked"),
    [
        ({"max_unavailable": 0}, True),
        ({"max_unavailable": "0%"}, True),
        ({"min_available": "100%"}, True),
        ({"min_available": 100}, False),
        ({"max_unavailable": 1}, False),
        ({"min_available": "99%"}, False),
    ],
)
def test_a_budget_blocks_fully_by_what_it_says_not_by_its_status(spec: dict[str, Any], *, blocked: bool) -> None:
    pdbs = PdbLimits([pdb("web", WEB, allowed=0 if not blocked else 3, healthy=3, **spec)])
    assert (pdbs.fully_blocked(web(), NOW) is not None) is blocked
    assert currently_reschedulable(web(), pdbs, NOW) is not blocked


@pytest.mark.parametrize(
    ("rest", "counts"),
    [
        ({}, True),
        ({"owner": None}, True),
        ({"owner": "DaemonSet"}, False),
        ({"owner": "Node"}, False),
        ({"deleted": NOW}, False),
        ({"deleted": NOW, "owner": "StatefulSet"}, True),
        ({"annotations": {DO_NOT_DISRUPT: "true"}}, False),
        ({"deleted": NOW, "owner": "StatefulSet", "annotations": {DO_NOT_DISRUPT: "true"}}, True),
    ],
)
def test_which_pods_need_another_place_now(rest: dict[str, Any], *, counts: bool) -> None:
    assert currently_reschedulable(web(**rest), PdbLimits([]), NOW) is counts


@pytest.mark.parametrize(("count", "allowed", "waves"), [(1, 1, 1), (3, 1, 3), (5, 2, 3), (4, 4, 1), (2, 0, None)])
def test_pods_that_share_a_budget_leave_in_waves(count: int, allowed: int, waves: int | None) -> None:
    pdbs = PdbLimits([pdb("web", WEB, allowed=allowed, healthy=9), pdb("idle", {"app": "idle"})])
    leaving = [*(web(f"web-{i}") for i in range(count)), web("web-gone", deleted=NOW), pod("api-1", node="n1")]
    assert pdbs.waves(leaving, NOW) == {"default/web": Waves(pods=count, allowed=allowed, waves=waves)}


def test_a_pod_is_compared_with_the_budgets_of_its_rarest_label_not_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    matches = PodDisruptionBudget.matches

    def counted(budget: PodDisruptionBudget, namespace: str, labels: dict[str, str]) -> bool:
        nonlocal compared
        compared += 1
        return matches(budget, namespace, labels)

    monkeypatch.setattr(PodDisruptionBudget, "matches", counted)
    shared, apps = {"tier": "backend"}, 300
    pdbs = PdbLimits(pdb(f"app-{i}", {**shared, "app": f"app-{i}"}) for i in range(apps))
    pods = [pod(f"app-{i}-x", node="n1", labels={**shared, "app": f"app-{i}", "zone": "a"}) for i in range(apps)]
    assert all(pdbs.eviction_blocked(each, NOW) is None for each in pods)
    assert compared == apps
