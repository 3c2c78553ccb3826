"""Budgets of a pool, seen from the plan: how many nodes go at once, when, and for which reason."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.disruption.scenes import Scene, ago, box, names, pool_of

from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import BUDGETS
from karpool.model.nodepool import Budget
from karpool.wire.duration import parse_duration


def window(nodes: str, schedule: str, duration: str, *reasons: str) -> Budget:
    return Budget(nodes=nodes, schedule=schedule, duration=parse_duration(duration), reasons=reasons or None)


def at(name: str, goes: str, *budgets: Any, now: datetime | None = None, count: int = 4, **rest: Any) -> Scene:
    """Some empty nodes of a pool with budgets, at a moment."""
    boxes = [box(f"n{i}", **rest) for i in range(count)]
    given = {} if now is None else {"now": now}
    return Scene(name, boxes, goes, pools=[pool_of(budgets=budgets)], **given)


ALL = "n0 n1 n2 n3"
NOON = datetime(2026, 6, 15, 12, tzinfo=UTC)
MIDNIGHT_ABROAD = datetime(2026, 6, 14, 23, tzinfo=UTC)
NEW_YEAR = datetime(2027, 1, 1, 12, tzinfo=UTC)
CLOSED = "0"

BUDGET_SCENES = [
    at("no budgets at all", ALL),
    at("percent rounds up", "n0", "1%"),
    at("a quarter of four", "n0", "25%"),
    at("26% of four", "n0 n1", "26%"),
    at("the tightest of several", "n0", "50%", "1", "100%"),
    at("a number above what there is", ALL, "99"),
    at("closed in business hours, now", "", window(CLOSED, "0 9 * * mon-fri", "8h")),
    at("closed in business hours, on a Sunday", ALL, window(CLOSED, "0 9 * * mon-fri", "8h"),
    now=datetime(2026, 6, 14, 12, tzinfo=UTC)),
    at("the first second of a window", "", window(CLOSED, "0 12 * * *", "1h"), now=NOON),
    at("the last second of a window", "", window(CLOSED, "0 11 * * *", "1h"),
    now=datetime(2026, 6, 15, 11, 59, 59, tzinfo=UTC)),
    at("the second after a window", ALL, window(CLOSED, "0 11 * * *", "1h"), now=NOON),
    at("@daily for half an hour, at midnight an hour east", ALL, window(CLOSED, "@daily", "30m"), now=MIDNIGHT_ABROAD),
    at("@daily for half an hour, at midnight UTC", "", window(CLOSED, "@daily", "30m"),
    now=datetime(2026, 6, 15, tzinfo=UTC)),
    at("@yearly for a day, noon of New Year", "", window(CLOSED, "@yearly", "24h"), now=NEW_YEAR),
    at("@daily for two days is always", "", window(CLOSED, "@daily", "48h")),
    at("a range that runs backwards stops everything", "", "100%", window("100%", "0 0 * * tue-mon", "1h")),
    at("an unreadable schedule for another reason stops everything, too", "",
    window("100%", "whenever", "1h", "Drifted")),
    at("unreadable nodes stop everything", "", "100%", "many"),
    at("unreadable nodes of a closed window stop nobody", ALL, "100%", window("many", "0 3 * * *", "1h")),
    at("a schedule without a duration stops everything", "", Budget(nodes="100%", schedule="@daily")),
    at("a budget for an empty list of reasons binds nobody", ALL, Budget(nodes=CLOSED, reasons=())),
    at("reason Empty", "n0", Budget(nodes="1", reasons=("Empty",)), "100%"),
    at("reason Underutilized", ALL, Budget(nodes="1", reasons=("Underutilized",)), "100%"),
    at("reasons Drifted and Empty", "", Budget(nodes=CLOSED, reasons=("Drifted", "Empty")), "100%"),
]  # fmt: skip

BUSY = [
    Scene("a node that is not ready is busy", [box("a"), box("b", ready=False, pods=1)], pools=[pool_of(budgets=["1"])],
          why={"a": "BudgetExhausted"}),
    Scene("not ready, and the budget has room for both", [box("a"), box("b", ready=False, pods=1)], "a",
          pools=[pool_of(budgets=["2"])]),
    Scene("a node on its way out is busy", [box("a"), box("b", claim={"deleted": ago(minutes=5)})],
          pools=[pool_of(budgets=["1"])]),
    Scene("an instance that terminates is no longer counted", [box("a"), box("b", claim={"terminating": True})], "a",
          pools=[pool_of(budgets=["1"])]),
    Scene("an uninitialized node is not counted", [box("a"), box("b", initialized=False, ready=False)], "a",
          pools=[pool_of(budgets=["1"])]),
    Scene("a node of nobody is not counted", [box("a"), box("b", managed=False, ready=False)], "a",
          pools=[pool_of(budgets=["1"])]),
    Scene("other pools' busy nodes do not matter", [box("a"), box("b", pool="two", ready=False)], "a",
          pools=[pool_of(budgets=["1"]), pool_of("two", budgets=["1"])]),
    Scene("a share of the nodes that count: half of three is two",
          [box("a"), box("b"), box("c", pods=7), box("d", initialized=False)], "a b", pools=[pool_of(budgets=["50%"])]),
    Scene("consolidation looks at its own reason", [box("a", "huge", 1)], pools=[
          pool_of(budgets=[Budget(nodes="0", reasons=("Underutilized",))])], why={"a": "BudgetExhausted"}),
    Scene("one pool closed, the other open", [box("a", "huge", 1), box("b", "huge", 1, pool="two")], "b",
          pools=[pool_of(budgets=["0"]), pool_of("two")], why={"a": "BudgetExhausted"}),
]  # fmt: skip


@pytest.mark.parametrize("scene", BUDGET_SCENES, ids=names)
def test_a_budget_lets_so_many_empty_nodes_go(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", BUSY, ids=names)
def test_busy_nodes_use_budgets_up(scene: Scene) -> None:
    scene.verify()


def test_budgets_in_an_annotation_count_when_asked_for() -> None:
    pool = pool_of(budgets=["0"], annotations={BUDGETS: '[{"nodes": "1"}]'})
    boxes = [box("a"), box("b")]
    Scene("spec", boxes, pools=[pool]).verify()
    Scene("annotation", boxes, "a", pools=[pool], settings=DisruptionSettings(annotated_budgets=True)).verify()


def test_a_later_step_counts_the_nodes_that_remain() -> None:
    made = Scene("halves", [box(f"n{i}") for i in range(8)], pools=[pool_of(budgets=["50%"])]).plan(None)
    assert [len(step.command.nodes) for step in made.steps] == [4, 2, 1, 1]


def test_a_budget_that_keeps_a_node_is_named_with_its_numbers() -> None:
    scene = at("named", "", window(CLOSED, "0 9 * * mon-fri", "8h"))
    (reason,) = scene.plan().fates[0].reasons
    assert reason.code == "BudgetExhausted"
    assert reason.object == "NodePool default"
    assert "0 9 * * mon-fri for 8h" in reason.message
