"""The algorithm, case by case: marks, states of nodes, counts and order."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.compaction.clusters import (
    MARKED,
    NOW,
    ROOMY,
    ago,
    codes,
    config,
    decided,
    draining,
    marks,
    names,
    pool_config,
    pool_node,
)
from tests.factories import pod, taint
from tests.tables import row, table

from karpool.compaction.config import TimeWindow
from karpool.compaction.decide import nodes_by_reason
from karpool.compaction.marks import Mark
from karpool.compaction.settings import CompactionSettings
from karpool.wire.duration import parse_duration

# -- marks -----------------------------------------------------------------------------------------------------------


@table(
    row("newly under the limit", requested="1", mark=None, marked=True, since=NOW),
    row("still under the limit", requested="1", mark=MARKED, marked=True, since=MARKED.marked_at),
    row("just under the limit", requested="2999m", mark=None, marked=True, since=NOW),
    row("at the limit", requested="3", mark=None, marked=False, since=None),
    row("no longer under the limit", requested="3", mark=MARKED, marked=False, since=None),
    row("full", requested="4", mark=MARKED, marked=False, since=None),
    row("marked at an unknown time", requested="1", mark=replace(MARKED, marked_at=None), marked=True, since=NOW),
)
def test_a_node_is_marked_while_it_is_under_the_limit(
    requested: str, mark: Mark | None, *, marked: bool, since: Any
) -> None:
    (verdict,) = decided(pool_node("n1", pods=[requested], mark=mark)).nodes
    assert (verdict.view.mark.marked, verdict.view.mark.marked_at) == (marked, since)


def test_both_cpu_and_memory_must_be_under_their_limits() -> None:
    given = config(main=pool_config(memory_limit=0.5))
    full = pod("full-1", cpu="1", memory="8Gi", node="a")
    decision = decided(pool_node("a", pods=[full]), pool_node("b", pods=["1"]), ROOMY, given=given)
    assert codes(decision)["a"] == ["MemoryOverLimit"]
    assert (marks(decision), names(decision)) == ("b", ["b"])


def test_a_node_of_a_pool_that_is_not_enabled_loses_its_mark_and_is_not_touched_otherwise() -> None:
    decision = decided(pool_node("a", pods=["1"], pool="other"), pool_node("b", pods=["1"], pool=""))
    assert codes(decision) == {"a": ["PoolNotEnabled"], "b": ["NoPool"]}
    assert (marks(decision), names(decision)) == ("", [])


# -- the state of a node ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ({"created": ago(seconds=1199)}, "NodeTooYoung"),
        ({"created": ago(seconds=1200)}, None),
        ({"ready": False}, "NodeNotReady"),
        ({"cordoned": True}, "NodeCordoned"),
        ({"deleted": ago(seconds=5)}, "NodeDeleting"),
        ({"taints": [taint("ToBeDeletedByClusterAutoscaler=1")]}, "NodeDeleting"),
        ({"cpu": "0"}, "SizeUnknown"),
        ({"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}, "ScaleDownDisabled"),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "NodeDoNotDisrupt"),
        ({"mark": Mark(marked=True, marked_at=ago(seconds=299))}, "MarkedTooShort"),
        ({"mark": Mark(marked=True, marked_at=ago(seconds=300))}, None),
        ({"mark": None}, "MarkedTooShort"),
        ({"mark": None, "annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "NodeDoNotDisrupt"),
        ({"mark": replace(MARKED, retry_after=NOW + timedelta(seconds=1))}, "GivenUpRecently"),
        ({"mark": replace(MARKED, retry_after=NOW)}, None),
    ],
)
def test_what_a_node_itself_has_against_being_drained(rest: dict[str, Any], code: str | None) -> None:
    decision = decided(pool_node("n1", pods=["1"], **rest), ROOMY)
    assert codes(decision)["n1"] == ([] if code is None else [code])
    assert names(decision) == ([] if code else ["n1"])


def test_the_times_can_be_set() -> None:
    quick = CompactionSettings(needed_marked_time=timedelta(0), minimum_node_age=timedelta(0))
    assert names(decided(pool_node("n1", pods=["1"], mark=None, created=NOW), ROOMY, settings=quick)) == ["n1"]


# -- how many, and which ---------------------------------------------------------------------------------------------


@table(
    row("exactly as many as required", under=5, required=5, in_progress=0, goes=True),
    row("one too few", under=4, required=5, in_progress=0, goes=False),
    row("one in progress, and no spare", under=5, required=5, in_progress=1, goes=False),
    row("one in progress, and one spare", under=6, required=5, in_progress=1, goes=True),
    row("two in progress, and two spare", under=3, required=1, in_progress=2, goes=True),
    row("two in progress, and one spare", under=2, required=1, in_progress=2, goes=False),
    row("none required", under=1, required=0, in_progress=0, goes=True),
)
def test_as_many_as_required_and_one_more_for_each_in_progress(
    under: int, required: int, in_progress: int, *, goes: bool
) -> None:
    nodes = [pool_node(f"n{i}", pods=["100m"]) for i in range(under)] + [draining(f"x{i}") for i in range(in_progress)]
    decision = decided(*nodes, ROOMY, given=config(main=pool_config(required=required)))
    assert names(decision) == (["n0"] if goes else [])
    (count,) = (pool for pool in decision.pools if pool.name == "main")
    assert (count.nodes, count.underutilized, count.marked) == (under + in_progress, under, under)
    assert count.in_progress == in_progress
    if not goes:
        assert all(codes(decision)[f"n{i}"] == ["TooFewUnderutilizedNodes"] for i in range(under))


def test_the_lowest_use_of_cpu_goes_first_whatever_its_memory() -> None:
    heavy = pod("heavy-1", cpu="500m", memory="15Gi", node="b")
    decision = decided(
        pool_node("a", pods=["600m"]), pool_node("b", pods=[heavy]), pool_node("c", pods=["700m"]), ROOMY
    )
    assert names(decision) == ["b"]
    assert codes(decision)["a"] == codes(decision)["c"] == ["AnotherNodeFirst"]


def test_a_tie_is_decided_by_name() -> None:
    assert names(decided(pool_node("b", pods=["1"]), pool_node("c", pods=["1"]), pool_node("a", pods=["1"]))) == ["a"]


def test_the_part_counts_not_the_amount() -> None:
    assert names(decided(pool_node("big", pods=["2"], cpu="16"), pool_node("small", pods=["1"], cpu="4"))) == ["big"]


def test_no_more_scale_downs_at_once_than_are_allowed() -> None:
    nodes = [pool_node(f"n{i}", pods=["100m"]) for i in range(9)]
    single = config(main=pool_config(max_in_progress=1))
    assert names(decided(*nodes, given=single)) == ["n0"]
    decision = decided(*nodes, draining("x"), given=single)
    assert names(decision) == []
    assert codes(decision)["n0"] == ["TooManyScaleDowns"]
    assert codes(decision)["x"] == ["ScaleDownInProgress"]


@pytest.mark.parametrize(("schedule", "opened"), [("0 11 * * *", True), ("0 20 * * *", False)])
def test_scale_downs_begin_only_in_windows_but_marks_are_set_at_any_time(schedule: str, *, opened: bool) -> None:
    windows = (
        TimeWindow(schedule="0 3 * * sun", duration=parse_duration("1h")),
        TimeWindow(schedule=schedule, duration=parse_duration("2h")),
    )
    decision = decided(
        pool_node("n1", pods=["1"], mark=None),
        pool_node("n2", pods=["1"]),
        given=config(main=pool_config(windows=windows)),
    )
    assert names(decision) == (["n2"] if opened else [])
    assert marks(decision) == "n1 n2"
    if not opened:
        assert codes(decision)["n2"] == ["OutsideWindow"]
        assert "20:00 UTC" in decision.nodes[1].reasons[0].message


@pytest.mark.parametrize(("seconds", "opened"), [(0, True), (9, True), (10, False), (60, False)])
def test_no_scale_down_begins_when_the_window_may_have_closed_already(seconds: int, *, opened: bool) -> None:
    windows = (TimeWindow(schedule="0 11 * * *", duration=parse_duration("1h10s")),)
    decision = decided(
        pool_node("n1", pods=["1"]),
        pool_node("n2", pods=["1"]),
        given=config(main=pool_config(windows=windows)),
        uncertainty=timedelta(seconds=seconds),
    )
    assert bool(names(decision)) is opened
    assert opened or codes(decision)["n1"] == ["OutsideWindow"]


def test_nodes_are_counted_by_reason_and_each_once_for_every_code() -> None:
    kept = pool_node("a", pods=[pod("one", node="a", owner=None), pod("two", node="a", owner=None)])
    decision = decided(kept, pool_node("b", pods=["3500m"]), pool_node("c", pods=["3600m"]), ROOMY)
    assert nodes_by_reason(decision) == {"CPUOverLimit": 2, "PodNotReplicated": 1, "PoolNotEnabled": 1}
    assert next(iter(nodes_by_reason(decision))) == "CPUOverLimit"


@pytest.mark.parametrize(
    ("required", "nodes", "message"),
    [
        (2, (pool_node("a", pods=["1"]),), "1 node of pool main is under-used; 2 are needed"),
        (
            3,
            (pool_node("a", pods=["1"]), pool_node("b", pods=["1"])),
            "2 nodes of pool main are under-used; 3 are needed",
        ),
    ],
)
def test_one_is_and_two_are(required: int, nodes: Any, message: str) -> None:
    decision = decided(*nodes, given=config(main=pool_config(required=required)))
    assert message in [reason.message for reason in decision.nodes[0].reasons]
