"""Empty nodes, and how long nodes must have been quiet: emptiness, consolidateAfter, consolidationGracePeriod."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.disruption.scenes import MIXED, NOW, Scene, ago, box, names, pool_of
from tests.factories import pod

from karpool.disruption.settings import DisruptionSettings
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
    return [box(f"n{number}", **rest) for number in range(count)]


EMPTINESS = [
    Scene("no pods at all", [box("a")], "a", by="Emptiness"),
    Scene("only DaemonSet pods", [box("a", pods=[{"owner": "DaemonSet"}])], "a", by="Emptiness"),
    Scene("only mirror pods", [box("a", pods=[{"owner": "Node"}])], "a", by="Emptiness"),
    Scene("only finished pods", [box("a", pods=[{"phase": "Succeeded"}, {"phase": "Failed"}])], "a", by="Emptiness"),
    Scene("only terminating pods", [box("a", pods=[{"deleted": ago(minutes=1)}])], "a", by="Emptiness"),
    Scene("terminating pod of a StatefulSet needs a place",
          [box("a", pods=[{"deleted": ago(minutes=1), "owner": "StatefulSet"}])], "a", by="Single", to="tiny"),
    Scene("a pod without any eviction cost is still a pod",
          [box("a", pods=[{"annotations": {POD_DELETION_COST: "-999999999"}}]),
          box("b", "huge", 1, pool="still")], "a", pools=(pool_of(), STILL), by="Single"),
    Scene("empty nodes of several pools go together", [box("a"), box("b", pool="two"), box("c", pods=7)], "a b",
          pools=(pool_of(), pool_of("two")), by="Emptiness"),
    Scene("every policy lets empty nodes go", [box("a", pool="e"), box("b", pool="b")], "a b",
          pools=(pool_of("e", policy="WhenEmpty"), pool_of("b", policy="Balanced"))),
    Scene("emptiness comes before consolidation", [box("a"), box("b", pods=1), box("c", pods=1)], "a", by="Emptiness"),
    Scene("emptiness comes before drift", [box("a"), box("b", pods=1, claim={"drifted": True})], "a", by="Emptiness"),
    Scene("consolidateAfter Never", [box("a")], pools=[NEVER], why={"a": "ConsolidateAfterNever"}),
    Scene("consolidateAfter Never, drifted", [box("a", claim={"drifted": True})], "a", pools=[NEVER], by="Drift"),
    Scene("a price nobody knows", [box("a", zone="nowhere")], "a", by="Emptiness",
          check=lambda p: p.steps[0].command.unpriced == 1),
    Scene("a pending pod that fits keeps its node", [box("a")], pods=[pod("w-0", cpu=3, pending=True)],
          why={"a": "NotCheaper"}),
    Scene("a pending pod may do with a smaller node", [box("a", "large")], "a", pods=[pod("w-0", cpu=1, pending=True)],
          by="Single", to="small", check=lambda p: p.steps[0].command.moves[0].source is None),
    Scene("a pending pod that fits nowhere keeps nobody", [box("a")], "a", pods=[pod("w-0", cpu=99, pending=True)],
          check=lambda p: p.unschedulable[0][0] == "default/w-0"),
    Scene("a pod that the scheduler has not looked at yet keeps its node", [box("a")], pods=[pod("w-0", cpu=3)]),
    Scene("a pod behind a scheduling gate keeps nobody", [box("a")], "a", pods=[
        replace(pod("w-0", cpu=3), status=replace(pod("w-0").status, conditions=(
            Condition(type="PodScheduled", status="False", reason="SchedulingGated"),)))]),
    Scene("a pod of a deleting node that fits keeps the node", [
        box("a"), box("b", pods=[{"cpu": 3}], claim={"deleted": ago(minutes=1)})], why={"a": "NotCheaper"}),
]  # fmt: skip

BUDGETS = [
    Scene("30% of ten", empties(10), "n0 n1 n2", pools=[pool_of(budgets=["30%"])]),
    Scene("100% of ten", empties(10), " ".join(f"n{i}" for i in range(10)), pools=[pool_of(budgets=["100%"])]),
    Scene("0%", empties(10), pools=[pool_of(budgets=["0%"])], why={"n0": "BudgetExhausted"}),
    Scene("none", empties(2), pools=[pool_of(budgets=["0"])], said={"n0": "allows 0 of 2 nodes"}),
    Scene("10% of one is one", empties(1), "n0", pools=[pool_of(budgets=["10%"])]),
    Scene("budgets are per pool", [*empties(3), box("x", pool="two"), box("y", pool="two")], "n0 x y",
          pools=(pool_of(budgets=["1"]), pool_of("two"))),
    Scene("one empty and one busy node, budget of one", [box("a"), box("b", "huge", 1)], "a",
          pools=[pool_of(budgets=["1"])]),
    Scene("dearest first", [box("a", "small"), box("b", "large")], "b", pools=[pool_of(budgets=["1"])]),
    Scene("a budget for another reason", empties(2), "n0 n1",
          pools=[pool_of(budgets=[Budget(nodes="0", reasons=("Drifted",))])]),
    Scene("a budget for this reason", empties(2), pools=[pool_of(budgets=[Budget(nodes="0", reasons=("Empty",))])]),
    Scene("budgets may be ignored", empties(2), "n0 n1", pools=[pool_of(budgets=["0"])],
          settings=DisruptionSettings(ignore_budgets=True)),
    Scene("a deleting node takes of the budget", [box("a"), box("b", claim={"deleted": ago(minutes=1)})],
          pools=[pool_of(budgets=["1"])], said={"a": "1 is on the way out"}),
]  # fmt: skip

WINDOWS = [
    Scene("empty, a minute has passed", [box("a", **event(minutes=1))], "a", pools=[MINUTE]),
    Scene("empty, a second is missing", [box("a", **event(seconds=59))], pools=[MINUTE],
          why={"a": "ConsolidateAfterWindow"}, said={"a": "12:00:01 UTC"}),
    Scene("no pod event: since it was initialized, over", [box("a", **initialized(minutes=2))], "a", pools=[MINUTE]),
    Scene("no pod event: since it was initialized, not over", [box("a", **initialized(seconds=30))], pools=[MINUTE]),
    Scene("0s waits for nothing", [box("a", **event(seconds=0))], "a"),
    Scene("a stored condition is not asked: it says no", [box("a", claim={"consolidatable": False})], "a"),
    Scene("a stored condition is not asked: it says yes",
          [box("a", claim={"consolidatable": True, "last_pod_event": NOW})], pools=[MINUTE]),
    Scene("drift does not wait", [box("a", claim={"last_pod_event": NOW, "drifted": True})], "a", pools=[MINUTE],
          by="Drift"),
    Scene("source inside its window", [box("a", pods=1, **event(seconds=30)), box("b", "huge", 1, pool="still")],
          pools=(MINUTE, STILL), why={"a": "ConsolidateAfterWindow"}),
    Scene("source past its window", [box("a", pods=1, **event(minutes=2)), box("b", "huge", 1, pool="still")], "a",
          pools=(MINUTE, STILL)),
    Scene("destination inside its window",
          [box("a", "tiny", 1), box("b", "huge", 1, pool="later", **event(seconds=30))],
          pools=(pool_of(), pool_of("later", consolidate_after="1m")),
          why={"a": "NotCheaper", "b": "ConsolidateAfterWindow"}),
    Scene("destination past its window",
          [box("a", "tiny", 1), box("b", "medium", 6, pool="later", **event(seconds=60))], "a",
          pools=(pool_of(), pool_of("later", consolidate_after="1m"))),
    Scene("destination with consolidateAfter Never",
          [box("a", "tiny", 1), box("b", "huge", 1, pool="still", **event(seconds=1))],
          "a", pools=(pool_of(), STILL)),
    Scene("destination of a static pool has no window",
          [box("a", "tiny", 1), box("b", "huge", 1, pool="later", **event(seconds=1))], "a",
          pools=(pool_of(), pool_of("later", consolidate_after="1m", replicas=1))),
    Scene("destination inside its window, but a cheaper new node will do",
          [box("a", "medium", 1), box("b", "huge", 1, pool="later", **event(seconds=30))], "a", to="tiny",
          pools=(pool_of(), pool_of("later", consolidate_after="1m"))),
    Scene("a pod in phase Pending may go to a node inside its window",
          [box("a", "tiny", [{"phase": "Pending"}]), box("b", "huge", 1, pool="later", **event(seconds=30))], "a",
          pools=(pool_of(), pool_of("later", consolidate_after="1m"))),
    Scene("drift may send pods to a node inside its window", [
        box("a", "tiny", 1, claim={"drifted": True}), box("b", "huge", 1, pool="later", **event(seconds=30))], "a",
        by="Drift",
        to="", pools=(pool_of(), pool_of("later", consolidate_after="1m"))),
]  # fmt: skip

GRACE = pool_of("later", grace_period="30m")
NOTED = pool_of("later", annotations={GRACE_PERIOD: "30m"})
GRACES = [
    Scene("destination in its grace period",
          [box("a", "tiny", 1), box("b", "huge", 1, pool="later", **event(minutes=29))],
          pools=(pool_of(), GRACE), why={"a": "NotCheaper", "b": "GracePeriod"}),
    Scene("destination past its grace period",
          [box("a", "tiny", 1), box("b", "medium", 6, pool="later", **event(minutes=30))], "a",
          pools=(pool_of(), GRACE)),
    Scene("the annotation means the same",
          [box("a", "tiny", 1), box("b", "huge", 1, pool="later", **event(minutes=29))],
          pools=(pool_of(), NOTED), why={"b": "GracePeriod"}),
    Scene("an unreadable annotation leaves nodes alone", [box("b", "huge", 1, pool="later")],
          pools=[pool_of("later", annotations={GRACE_PERIOD: "soon"})], why={"b": "GracePeriodInvalid"}),
    Scene("Never is off", [box("b", pool="later", **event(minutes=1))], "b",
          pools=[pool_of("later", grace_period="Never")]),
    Scene("no pod event ever", [box("b", pool="later", **initialized(minutes=1))], "b", pools=[GRACE]),
    Scene("emptiness waits too", [box("b", pool="later", **event(minutes=29))], pools=[GRACE],
          why={"b": "GracePeriod"}),
    Scene("drift does not wait", [box("b", pool="later", pods=1, claim={"last_pod_event": NOW, "drifted": True})], "b",
          pools=[GRACE], by="Drift"),
    Scene("drift uses it as a destination", [
        box("a", "tiny", 1, claim={"drifted": True}), box("b", "huge", 1, pool="later", **event(minutes=1))], "a",
        to="",
        pools=(pool_of(), GRACE)),
    Scene("a replacement is not in its grace period", [box("a", "huge", 1, pool="later", **event(hours=1))], "a",
          to="tiny",
          pools=[GRACE]),
]  # fmt: skip


@pytest.mark.parametrize("scene", EMPTINESS, ids=names)
def test_a_node_is_empty_when_no_pod_needs_another_place(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", BUDGETS, ids=names)
def test_as_many_empty_nodes_go_at_once_as_budgets_allow(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", WINDOWS, ids=names)
def test_consolidate_after_holds_for_sources_and_destinations(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", GRACES, ids=names)
def test_a_node_in_its_grace_period_is_neither_source_nor_destination(scene: Scene) -> None:
    scene.verify()


START = datetime(2026, 6, 15, 8, tzinfo=UTC)
SETTLING: NodePool = pool_of(consolidate_after="30s", grace_period="30m")


def timeline(minutes: float, last_event: float) -> Scene:
    """Nodes A and B with room for each other's pods, C full, and D, whose last pod event was at a minute."""
    quiet = {"claim": {"last_pod_event": START - timedelta(days=1)}}
    late = {"claim": {"last_pod_event": START + timedelta(minutes=last_event)}}
    pods = [{"name": "d-0", "cpu": "100m"}] if last_event < 5 else []
    boxes = [
        box("node-a", "small", [{"cpu": "1700m"}], **quiet),
        box("node-b", "small", [{"cpu": "1700m"}], **quiet),
        box("node-c", "small", [{"cpu": "1700m"}], **quiet),
        box("node-d", "large", pods, **late),
    ]
    return Scene("timeline", boxes, pools=[SETTLING], now=START + timedelta(minutes=minutes))


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
    scene = timeline(2, 1)
    open_pool = pool_of(consolidate_after="0s")
    made = Scene("open", scene.boxes, pools=[open_pool], now=scene.now).plan()
    assert "node-d" in made.steps[0].command.nodes


def test_our_own_moves_start_no_window() -> None:
    """Step after step, nodes that received pods go on taking part."""
    boxes = [box(f"n{number}", pods=[{"cpu": "900m"}], pool="later", **event(hours=1)) for number in range(4)]
    made = Scene(
        "windows", boxes, pools=[pool_of("later", consolidate_after="10m", grace_period="30m", budgets=["1"])]
    ).plan(None)
    assert len(made.steps) >= 3
    assert made.after.nodes == 1


def test_whether_spot_or_not_makes_no_difference_to_emptiness() -> None:
    Scene("spot", [box("a", kind="spot"), box("b", kind="reserved")], "a b", pools=[MIXED]).verify()
