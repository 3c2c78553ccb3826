"""All that is known of one node: every reason, what it waits for, and where its pods would go."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.compaction.clusters import (
    IN_PROGRESS,
    MARKED,
    NOW,
    ROOMY,
    ago,
    cluster,
    config,
    draining,
    pool_config,
    pool_node,
)
from tests.factories import pdb, pod, taint

from karpool.compaction.config import Config, TimeWindow
from karpool.compaction.explain import CompactionExplanation, Waits, explain
from karpool.compaction.marks import Mark
from karpool.compaction.settings import DEFAULTS
from karpool.wire.duration import parse_duration


def explained(name: str, *nodes: Any, given: Config | None = None, **others: Any) -> CompactionExplanation:
    return explain(cluster(nodes, **others), given or config(), NOW, name, DEFAULTS)


def codes(explanation: CompactionExplanation) -> list[str]:
    return [str(reason.code) for reason in explanation.reasons]


def outcomes(explanation: CompactionExplanation) -> dict[str, tuple[bool, str | None]]:
    return {outcome.pod.metadata.name: (outcome.leaves, outcome.target) for outcome in explanation.pods}


# -- reasons -----------------------------------------------------------------------------------------------------------


def test_every_reason_is_told_not_only_the_first_kind() -> None:
    alone = pod("alone", cpu="3500m", node="a", owner=None)
    covered = pod("web-1", cpu="100m", node="a", labels={"app": "web"})
    blocked = pool_node(
        "a",
        pods=[alone, covered],
        created=ago(minutes=5),
        ready=False,
        annotations={"karpenter.sh/do-not-disrupt": "true"},
        mark=Mark(retry_after=NOW + timedelta(minutes=9)),
    )
    budgets = (pdb("web", {"app": "web"}, allowed=0),)
    explanation = explained("a", blocked, given=config(main=pool_config(required=3)), pod_disruption_budgets=budgets)
    assert codes(explanation) == [
        "NodeNotReady",
        "CPUOverLimit",
        "NodeTooYoung",
        "NodeDoNotDisrupt",
        "GivenUpRecently",
        "PodNotReplicated",
        "PodDisruptionBudget",
        "TooFewUnderutilizedNodes",
        "PodsWouldNotFit",
        "PodsWouldNotFit",
    ]
    assert {outcome.keeps.code for outcome in explanation.pods if outcome.keeps} == {
        "PodNotReplicated",
        "PodDisruptionBudget",
    }


@pytest.mark.parametrize(
    ("name", "nodes", "expected"),
    [
        ("a", (pool_node("a", pods=["1"]), ROOMY), []),
        ("b", (pool_node("a", pods=["1"]), pool_node("b", pods=["2"]), ROOMY), ["AnotherNodeFirst"]),
        (
            "z-roomy",
            (ROOMY, pool_node("a", pods=["1"]), pool_node("c", cpu="16", mark=None, pool="other")),
            ["PoolNotEnabled"],
        ),
        ("a", (pool_node("a", pods=["1"], pool=""), ROOMY), ["NoPool"]),
        ("a", (draining("a", pods=["1"]), ROOMY), ["ScaleDownInProgress"]),
        ("a", (pool_node("a", pods=["1"], deleted=NOW), ROOMY), ["NodeDeleting"]),
    ],
)
def test_a_node_without_more_against_it_has_the_reason_of_the_plan(name: str, nodes: Any, expected: list[str]) -> None:
    explanation = explained(name, *nodes)
    assert codes(explanation) == expected
    assert explanation.chosen == (not expected)


def test_the_pods_that_find_no_place_keep_no_node_of_a_pool_that_does_not_check_it() -> None:
    explanation = explained("a", pool_node("a", pods=["1", "1"]), given=config(main=pool_config(check_fit=False)))
    assert (codes(explanation), explanation.chosen) == ([], True)
    assert all(outcome.target is None and outcome.nowhere is not None for outcome in explanation.pods)


# -- what it waits for -------------------------------------------------------------------------------------------------

EMPTY = replace(IN_PROGRESS, drained_at=ago(minutes=1))
EVENING = TimeWindow(schedule="0 20 * * *", duration=parse_duration("2h"))
HELD: dict[str, Any] = {"underutilized": 1, "underutilized_needed": 1}


def ahead(**time: float) -> datetime:
    return NOW + timedelta(**time)


@pytest.mark.parametrize(
    ("made", "given", "expected"),
    [
        (pool_node("a", pods=["1"]), config(), Waits(**HELD)),
        (pool_node("a", pods=["1"], mark=None), config(), Waits(marked_long_enough_at=ahead(minutes=5), **HELD)),
        (
            pool_node("a", pods=["1"], mark=Mark(marked=True, marked_at=ago(minutes=1))),
            config(),
            Waits(marked_long_enough_at=ahead(minutes=4), **HELD),
        ),
        (
            pool_node("a", pods=["1"], mark=None, created=ago(minutes=5)),
            config(),
            Waits(old_enough_at=ahead(minutes=15), underutilized=0, underutilized_needed=1),
        ),
        (
            pool_node("a", pods=["1"], mark=replace(MARKED, retry_after=ahead(minutes=7))),
            config(),
            Waits(left_alone_until=ahead(minutes=7), **HELD),
        ),
        (
            pool_node("a", pods=["1"]),
            config(main=pool_config(windows=(EVENING,))),
            Waits(window_opens_at=ahead(hours=8), **HELD),
        ),
        (
            pool_node("a", pods=["1"]),
            config(main=pool_config(required=4)),
            Waits(underutilized=1, underutilized_needed=4),
        ),
        (pool_node("a", pods=["1"]), config(other=pool_config()), Waits()),
        (draining("a", pods=["1"]), config(), Waits(pods_leave_by=ahead(minutes=13))),
        (draining("a", mark=EMPTY), config(), Waits(removed_by=ahead(minutes=59))),
    ],
)
def test_what_a_node_still_waits_for(made: Any, given: Config, expected: Waits) -> None:
    assert explained("a", made, ROOMY, given=given).waits == expected


def test_a_node_waits_for_the_pace_of_its_pool() -> None:
    nodes = (pool_node("a", pods=["1"]), pool_node("b", pods=["1"]), draining("x"), ROOMY)
    assert explained("a", *nodes).waits.next_begin_at == ahead(minutes=3)
    assert explained("a", *nodes, given=config(main=pool_config(max_in_progress=2))).waits.next_begin_at is None


# -- its pods ----------------------------------------------------------------------------------------------------------


def test_each_pod_leaves_or_stays_and_goes_where_the_engine_finds_room() -> None:
    others = (
        pod("agent-1", node="a", owner="DaemonSet"),
        pod("dns-1", node="a", namespace="kube-system"),
        pod("going-1", node="a", deleted=NOW),
        pod("picky-1", node="a", selector={"disk": "ssd"}),
    )
    explanation = explained("a", pool_node("a", pods=["1", *others]), ROOMY)
    assert outcomes(explanation) == {
        "a-0": (True, "z-roomy"),
        "agent-1": (False, None),
        "dns-1": (False, None),
        "going-1": (True, None),
        "picky-1": (True, None),
    }
    whys = {outcome.pod.metadata.name: outcome.why for outcome in explanation.pods}
    assert [name for name, why in whys.items() if not why] == ["a-0", "picky-1"]
    lost = {outcome.pod.metadata.name: outcome.nowhere.message for outcome in explanation.pods if outcome.nowhere}
    assert list(lost) == ["picky-1"]
    assert "requires disk" in lost["picky-1"]
    assert [reason.code for reason in explanation.warnings] == ["SystemPod"]


def test_every_pod_without_a_place_is_told_why() -> None:
    explanation = explained("a", pool_node("a", pods=["1", "1", "1"]))
    assert all("there is no other node" in outcome.nowhere.message for outcome in explanation.pods if outcome.nowhere)
    assert len([outcome for outcome in explanation.pods if outcome.nowhere]) == 3


@pytest.mark.parametrize(
    "made",
    [
        draining("a", pods=["1"]),
        pool_node("a", pods=["1"], deleted=NOW),
        pool_node("a", pods=["1"], ready=False),
        pool_node("a", pods=["1"], taints=[taint("ToBeDeletedByClusterAutoscaler=1")]),
        pool_node("a", pods=["1"], pool=""),
    ],
)
def test_places_are_found_for_any_node(made: Any) -> None:
    assert outcomes(explained("a", made, ROOMY)) == {"a-0": (True, "z-roomy")}


def test_a_chosen_node_has_the_places_of_the_plan_after_the_pools_before_its_own() -> None:
    given = config(main=pool_config(), second=pool_config())
    room = pool_node("c", pods=["2500m"], mark=None)
    nodes = (
        pool_node("a", pods=["1200m"]),
        pool_node("b", pods=["1300m"], pool="second", taints=[taint("only=b")]),
        room,
    )
    assert outcomes(explained("a", *nodes, given=given)) == {"a-0": (True, "c")}
    assert outcomes(explained("b", *nodes, given=given)) == {"b-0": (True, None)}
    assert codes(explained("b", *nodes, given=given)) == ["PodsWouldNotFit"]
