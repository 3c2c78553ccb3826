"""Empty nodes, and how long nodes must have been quiet: emptiness, consolidateAfter, consolidationGracePeriod."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace as changed
from tests.disruption.scenarios import MIXED, NOTHING, NOW, REFERENCE, Scenario, ago, either_search, node, pool_of
from tests.factories import pod

from karpool.model.labels import GRACE_PERIOD, POD_DELETION_COST
from karpool.model.nodepool import Budget, NodePool
from karpool.wire.objects import Condition

NEVER = pool_of(consolidate_after="Never")
MINUTE = pool_of(consolidate_after="1m")
STILL = pool_of("still", consolidate_after="Never")
EMPTY = pool_of(policy="WhenEmpty")


def event(**since: float) -> dict[str, Any]:
    """A claim whose last pod event was so long ago."""
    return {"claim": {"last_pod_event": ago(**since)}}


def initialized(**since: float) -> dict[str, Any]:
    """A claim that has had no pod event and was initialized so long ago."""
    return {"claim": {"last_pod_event": None, "initialized_at": ago(**since)}}


def empties(count: int, **rest: Any) -> list[Any]:
    return [node(f"n{number}", **rest) for number in range(count)]


EMPTINESS = [
    Scenario("no pods at all", nodes=[node("a")], removes="a", method="Emptiness"),
    Scenario("only DaemonSet pods", nodes=[node("a", pods=[{"owner": "DaemonSet"}])], removes="a", method="Emptiness"),
    Scenario("only mirror pods", nodes=[node("a", pods=[{"owner": "Node"}])], removes="a", method="Emptiness"),
    Scenario(
        "only finished pods",
        nodes=[node("a", pods=[{"phase": "Succeeded"}, {"phase": "Failed"}])],
        removes="a",
        method="Emptiness",
    ),
    Scenario(
        "only terminating pods", nodes=[node("a", pods=[{"deleted": ago(minutes=1)}])], removes="a", method="Emptiness"
    ),
    Scenario(
        "terminating pod of a StatefulSet needs a place",
        nodes=[node("a", pods=[{"deleted": ago(minutes=1), "owner": "StatefulSet"}])],
        removes="a",
        method="Single",
        launches="tiny",
    ),
    Scenario(
        "a pod without any eviction cost is still a pod",
        nodes=[
            node("a", pods=[{"annotations": {POD_DELETION_COST: "-999999999"}}]),
            node("b", "huge", pods=1, pool="still"),
        ],
        pools=(pool_of(), STILL),
        removes="a",
        method="Single",
    ),
    Scenario(
        "empty nodes of several pools go together",
        nodes=[node("a"), node("b", pool="two"), node("c", pods=7)],
        pools=(pool_of(), pool_of("two")),
        removes="a b",
        method="Emptiness",
    ),
    Scenario(
        "every policy lets empty nodes go",
        nodes=[node("a", pool="e"), node("b", pool="b")],
        pools=(pool_of("e", policy="WhenEmpty"), pool_of("b", policy="Balanced")),
        removes="a b",
    ),
    Scenario(
        "emptiness comes before consolidation",
        nodes=[node("a"), node("b", pods=1), node("c", pods=1)],
        removes="a",
        method="Emptiness",
    ),
    Scenario(
        "emptiness comes before drift",
        nodes=[node("a"), node("b", pods=1, claim={"drifted": True})],
        removes="a",
        method="Emptiness",
    ),
    Scenario("consolidateAfter Never", nodes=[node("a")], pools=[NEVER], reasons={"a": "ConsolidateAfterNever"}),
    Scenario(
        "consolidateAfter Never, drifted",
        nodes=[node("a", claim={"drifted": True})],
        pools=[NEVER],
        removes="a",
        method="Drift",
    ),
    Scenario(
        "a price nobody knows",
        nodes=[node("a", zone="nowhere")],
        removes="a",
        method="Emptiness",
        check=lambda p: p.steps[0].command.unpriced == 1,
    ),
    Scenario(
        "a pending pod that fits keeps its node",
        nodes=[node("a")],
        pods=[pod("w-0", cpu=3, pending=True)],
        reasons={"a": "NotCheaper"},
    ),
    Scenario(
        "a pending pod may do with a smaller node",
        nodes=[node("a", "large")],
        pods=[pod("w-0", cpu=1, pending=True)],
        removes="a",
        method="Single",
        launches="small",
        check=lambda p: p.steps[0].command.moves[0].source is None,
    ),
    Scenario(
        "a pending pod that fits nowhere keeps nobody",
        nodes=[node("a")],
        pods=[pod("w-0", cpu=99, pending=True)],
        removes="a",
        check=lambda p: p.unschedulable[0][0] == "default/w-0",
    ),
    Scenario(
        "a pod that the scheduler has not looked at yet keeps its node", nodes=[node("a")], pods=[pod("w-0", cpu=3)]
    ),
    Scenario(
        "a pod behind a scheduling gate keeps nobody",
        nodes=[node("a")],
        pods=[
            changed(
                pod("w-0", cpu=3),
                status=changed(
                    pod("w-0").status,
                    conditions=(Condition(type="PodScheduled", status="False", reason="SchedulingGated"),),
                ),
            )
        ],
        removes="a",
    ),
    Scenario(
        "a pod of a deleting node that fits keeps the node",
        nodes=[node("a"), node("b", pods=[{"cpu": 3}], claim={"deleted": ago(minutes=1)})],
        reasons={"a": "NotCheaper"},
    ),
]

BUDGETS = [
    Scenario("30% of ten", nodes=empties(10), pools=[pool_of(budgets=["30%"])], removes="n0 n1 n2"),
    Scenario(
        "100% of ten",
        nodes=empties(10),
        pools=[pool_of(budgets=["100%"])],
        removes=" ".join(f"n{i}" for i in range(10)),
    ),
    Scenario("0%", nodes=empties(10), pools=[pool_of(budgets=["0%"])], reasons={"n0": "BudgetExhausted"}),
    Scenario("none", nodes=empties(2), pools=[pool_of(budgets=["0"])], messages={"n0": "allows 0 of 2 nodes"}),
    Scenario("10% of one is one", nodes=empties(1), pools=[pool_of(budgets=["10%"])], removes="n0"),
    Scenario(
        "budgets are per pool",
        nodes=[*empties(3), node("x", pool="two"), node("y", pool="two")],
        pools=(pool_of(budgets=["1"]), pool_of("two")),
        removes="n0 x y",
    ),
    Scenario(
        "one empty and one busy node, budget of one",
        nodes=[node("a"), node("b", "huge", pods=1)],
        pools=[pool_of(budgets=["1"])],
        removes="a",
    ),
    Scenario(
        "most expensive first",
        nodes=[node("a", "small"), node("b", "large")],
        pools=[pool_of(budgets=["1"])],
        removes="b",
    ),
    Scenario(
        "a budget for another reason",
        nodes=empties(2),
        pools=[pool_of(budgets=[Budget(nodes="0", reasons=("Drifted",))])],
        removes="n0 n1",
    ),
    Scenario(
        "a budget for this reason", nodes=empties(2), pools=[pool_of(budgets=[Budget(nodes="0", reasons=("Empty",))])]
    ),
    Scenario(
        "budgets may be ignored",
        nodes=empties(2),
        pools=[pool_of(budgets=["0"])],
        settings=replace(REFERENCE, ignore_budgets=True),
        removes="n0 n1",
    ),
    Scenario(
        "a deleting node takes of the budget",
        nodes=[node("a"), node("b", claim={"deleted": ago(minutes=1)})],
        pools=[pool_of(budgets=["1"])],
        messages={"a": "1 is on the way out"},
    ),
]

WINDOWS = [
    Scenario("empty, a minute has passed", nodes=[node("a", **event(minutes=1))], pools=[MINUTE], removes="a"),
    Scenario(
        "empty, a second is missing",
        nodes=[node("a", **event(seconds=59))],
        pools=[MINUTE],
        reasons={"a": "ConsolidateAfterWindow"},
        messages={"a": "12:00:01 UTC"},
    ),
    Scenario(
        "no pod event: since it was initialized, over",
        nodes=[node("a", **initialized(minutes=2))],
        pools=[MINUTE],
        removes="a",
    ),
    Scenario(
        "no pod event: since it was initialized, not over", nodes=[node("a", **initialized(seconds=30))], pools=[MINUTE]
    ),
    Scenario("0s waits for nothing", nodes=[node("a", **event(seconds=0))], removes="a"),
    Scenario(
        "a stored condition is not asked: it says no", nodes=[node("a", claim={"consolidatable": False})], removes="a"
    ),
    Scenario(
        "a stored condition is not asked: it says yes",
        nodes=[node("a", claim={"consolidatable": True, "last_pod_event": NOW})],
        pools=[MINUTE],
    ),
    Scenario(
        "drift does not wait",
        nodes=[node("a", claim={"last_pod_event": NOW, "drifted": True})],
        pools=[MINUTE],
        removes="a",
        method="Drift",
    ),
    Scenario(
        "source inside its window",
        nodes=[node("a", pods=1, **event(seconds=30)), node("b", "huge", pods=1, pool="still")],
        pools=(MINUTE, STILL),
        reasons={"a": "ConsolidateAfterWindow"},
    ),
    Scenario(
        "source past its window",
        nodes=[node("a", pods=1, **event(minutes=2)), node("b", "huge", pods=1, pool="still")],
        pools=(MINUTE, STILL),
        removes="a",
    ),
    Scenario(
        "destination inside its window",
        nodes=[node("a", "tiny", pods=1), node("b", "huge", pods=1, pool="later", **event(seconds=30))],
        pools=(pool_of(), pool_of("later", consolidate_after="1m")),
        reasons={"a": "NotCheaper", "b": "ConsolidateAfterWindow"},
    ),
    Scenario(
        "destination past its window",
        nodes=[node("a", "tiny", pods=1), node("b", "medium", pods=6, pool="later", **event(seconds=60))],
        pools=(pool_of(), pool_of("later", consolidate_after="1m")),
        removes="a",
    ),
    Scenario(
        "destination with consolidateAfter Never",
        nodes=[node("a", "tiny", pods=1), node("b", "huge", pods=1, pool="still", **event(seconds=1))],
        pools=(pool_of(), STILL),
        removes="a",
    ),
    Scenario(
        "destination of a static pool has no window",
        nodes=[node("a", "tiny", pods=1), node("b", "huge", pods=1, pool="later", **event(seconds=1))],
        pools=(pool_of(), pool_of("later", consolidate_after="1m", replicas=1)),
        removes="a",
    ),
    Scenario(
        "destination inside its window, but a cheaper new node will do",
        nodes=[node("a", "medium", pods=1), node("b", "huge", pods=1, pool="later", **event(seconds=30))],
        pools=(pool_of(), pool_of("later", consolidate_after="1m")),
        removes="a",
        launches="tiny",
    ),
    Scenario(
        "a pod in phase Pending may go to a node inside its window",
        nodes=[
            node("a", "tiny", pods=[{"phase": "Pending"}]),
            node("b", "huge", pods=1, pool="later", **event(seconds=30)),
        ],
        pools=(pool_of(), pool_of("later", consolidate_after="1m")),
        removes="a",
    ),
    Scenario(
        "drift may send pods to a node inside its window",
        nodes=[
            node("a", "tiny", pods=1, claim={"drifted": True}),
            node("b", "huge", pods=1, pool="later", **event(seconds=30)),
        ],
        pools=(pool_of(), pool_of("later", consolidate_after="1m")),
        removes="a",
        method="Drift",
        launches=NOTHING,
    ),
]

GRACE = pool_of("later", grace_period="30m")
NOTED = pool_of("later", annotations={GRACE_PERIOD: "30m"})
GRACES = [
    Scenario(
        "destination in its grace period",
        nodes=[node("a", "tiny", pods=1), node("b", "huge", pods=1, pool="later", **event(minutes=29))],
        pools=(pool_of(), GRACE),
        reasons={"a": "NotCheaper", "b": "GracePeriod"},
    ),
    Scenario(
        "destination past its grace period",
        nodes=[node("a", "tiny", pods=1), node("b", "medium", pods=6, pool="later", **event(minutes=30))],
        pools=(pool_of(), GRACE),
        removes="a",
    ),
    Scenario(
        "the annotation means the same",
        nodes=[node("a", "tiny", pods=1), node("b", "huge", pods=1, pool="later", **event(minutes=29))],
        pools=(pool_of(), NOTED),
        reasons={"b": "GracePeriod"},
    ),
    Scenario(
        "an unreadable annotation leaves nodes alone",
        nodes=[node("b", "huge", pods=1, pool="later")],
        pools=[pool_of("later", annotations={GRACE_PERIOD: "soon"})],
        reasons={"b": "GracePeriodInvalid"},
    ),
    Scenario(
        "Never is off",
        nodes=[node("b", pool="later", **event(minutes=1))],
        pools=[pool_of("later", grace_period="Never")],
        removes="b",
    ),
    Scenario(
        "no pod event ever", nodes=[node("b", pool="later", **initialized(minutes=1))], pools=[GRACE], removes="b"
    ),
    Scenario(
        "emptiness waits too",
        nodes=[node("b", pool="later", **event(minutes=29))],
        pools=[GRACE],
        reasons={"b": "GracePeriod"},
    ),
    Scenario(
        "drift does not wait",
        nodes=[node("b", pool="later", pods=1, claim={"last_pod_event": NOW, "drifted": True})],
        pools=[GRACE],
        removes="b",
        method="Drift",
    ),
    Scenario(
        "drift uses it as a destination",
        nodes=[
            node("a", "tiny", pods=1, claim={"drifted": True}),
            node("b", "huge", pods=1, pool="later", **event(minutes=1)),
        ],
        pools=(pool_of(), GRACE),
        removes="a",
        launches=NOTHING,
    ),
    Scenario(
        "a bound pod that has not started may go to a node in its grace period",
        nodes=[
            node("a", "tiny", pods=[{"phase": "Pending"}]),
            node("b", "huge", pods=1, pool="later", **event(minutes=1)),
        ],
        pools=(pool_of(), GRACE),
        removes="a",
        launches=NOTHING,
    ),
    Scenario(
        "a bound pod that has not started, beside one that runs",
        nodes=[
            node("a", "tiny", pods=[{"phase": "Pending"}, {"phase": "Running"}]),
            node("b", "huge", pods=1, pool="later", **event(minutes=1)),
        ],
        pools=(pool_of(), GRACE),
        reasons={"a": "NotCheaper", "b": "GracePeriod"},
    ),
    Scenario(
        "the node of a bound pod that has not started waits for its own grace period",
        nodes=[
            node("a", "tiny", pods=[{"phase": "Pending"}], pool="later", **event(minutes=29)),
            node("b", "huge", pods=1, pool="still"),
        ],
        pools=(STILL, GRACE),
        reasons={"a": "GracePeriod"},
    ),
    Scenario(
        "drift does not wait for bound pods that have not started",
        nodes=[
            node(
                "a", "tiny", pods=[{"phase": "Pending"}], pool="later", claim={"last_pod_event": NOW, "drifted": True}
            ),
            node("b", "huge", pods=1, pool="still"),
        ],
        pools=(STILL, GRACE),
        removes="a",
        method="Drift",
        launches=NOTHING,
    ),
    Scenario(
        "a replacement is not in its grace period",
        nodes=[node("a", "huge", pods=1, pool="later", **event(hours=1))],
        pools=[GRACE],
        removes="a",
        launches="tiny",
    ),
]


@either_search(EMPTINESS)
def test_a_node_is_empty_when_no_pod_needs_another_place(scenario: Scenario) -> None:
    scenario.verify()


@either_search(BUDGETS)
def test_as_many_empty_nodes_go_at_once_as_budgets_allow(scenario: Scenario) -> None:
    scenario.verify()


@either_search(WINDOWS)
def test_consolidate_after_holds_for_sources_and_destinations(scenario: Scenario) -> None:
    scenario.verify()


@either_search(GRACES)
def test_a_node_in_its_grace_period_is_neither_source_nor_destination(scenario: Scenario) -> None:
    scenario.verify()


START = datetime(2026, 6, 15, 8, tzinfo=UTC)
SETTLING: NodePool = pool_of(consolidate_after="30s", grace_period="30m")


def timeline(minutes: float, last_event: float) -> Scenario:
    """Nodes A and B with room for each other's pods, C full, and D, whose last pod event was at a minute."""
    quiet = {"claim": {"last_pod_event": START - timedelta(days=1)}}
    late = {"claim": {"last_pod_event": START + timedelta(minutes=last_event)}}
    pods = [{"name": "d-0", "cpu": "100m"}] if last_event < 5 else []
    nodes = [
        node("node-a", "small", pods=[{"cpu": "1700m"}], **quiet),
        node("node-b", "small", pods=[{"cpu": "1700m"}], **quiet),
        node("node-c", "small", pods=[{"cpu": "1700m"}], **quiet),
        node("node-d", "large", pods=pods, **late),
    ]
    return Scenario("timeline", nodes=nodes, pools=[SETTLING], now=START + timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("minute", "event_at", "seen"),
    [*((m, 1, False) for m in (1, 1.5, 2, 3, 4, 4.99)), *((m, 5, False) for m in range(5, 35)), (34.99, 5, False),
     (35, 5, True), (35.5, 5, True), (60, 5, True)],
)  # fmt: skip
def test_the_example_of_the_grace_period_minute_by_minute(minute: float, event_at: float, *, seen: bool) -> None:
    made = timeline(minute, event_at).plan()
    codes = {fate.candidate.name: [reason.code for reason in fate.reasons] for fate in made.fates}
    targets = {move.target for step in made.steps for move in step.command.moves}
    if seen:
        assert made.steps[0].command.nodes == ("node-d",)
    else:
        assert not made.steps
        assert not targets
        assert codes["node-d"] == ["ConsolidateAfterWindow" if minute == event_at else "GracePeriod"]
        assert codes["node-a"][0] == codes["node-b"][0] == codes["node-c"][0] == "NotCheaper"


def test_without_a_grace_period_the_new_node_takes_part_at_once() -> None:
    scenario = timeline(2, 1)
    open_pool = pool_of(consolidate_after="0s")
    made = Scenario("open", nodes=scenario.nodes, pools=[open_pool], now=scenario.now).plan()
    assert "node-d" in made.steps[0].command.nodes


def test_our_own_moves_start_no_window() -> None:
    """Step after step, nodes that received pods go on taking part."""
    nodes = [node(f"n{number}", pods=[{"cpu": "900m"}], pool="later", **event(hours=1)) for number in range(4)]
    made = Scenario(
        "windows", nodes=nodes, pools=[pool_of("later", consolidate_after="10m", grace_period="30m", budgets=["1"])]
    ).plan(None)
    assert len(made.steps) >= 3
    assert made.after.nodes == 1


def test_whether_spot_or_not_makes_no_difference_to_emptiness() -> None:
    Scenario(
        "spot",
        nodes=[node("a", capacity_type="spot"), node("b", capacity_type="reserved")],
        pools=[MIXED],
        removes="a b",
    ).verify()
