"""Budgets of a pool, seen from the plan: how many nodes go at once, when, and for which reason."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tests.disruption.scenarios import NOTHING, NOW, REFERENCE, Scenario, ago, either_search, node, pool_of

from karpool.model.labels import BUDGETS
from karpool.model.nodepool import Budget
from karpool.wire.duration import parse_duration


def window(nodes: str, schedule: str, duration: str, *reasons: str) -> Budget:
    return Budget(nodes=nodes, schedule=schedule, duration=parse_duration(duration), reasons=reasons or None)


def four_empty(name: str, *, removes: str, budgets: Sequence[Any] = (), now: datetime = NOW) -> Scenario:
    """Four empty nodes of a pool with budgets, at a moment."""
    nodes = [node(f"n{i}") for i in range(4)]
    return Scenario(name, nodes=nodes, pools=[pool_of(budgets=budgets)], now=now, removes=removes)


ALL = "n0 n1 n2 n3"
NOON = datetime(2026, 6, 15, 12, tzinfo=UTC)
MIDNIGHT_ABROAD = datetime(2026, 6, 14, 23, tzinfo=UTC)
NEW_YEAR = datetime(2027, 1, 1, 12, tzinfo=UTC)
CLOSED = "0"

BUDGET_SCENARIOS = [
    four_empty("no budgets at all", removes=ALL),
    four_empty("percent rounds up", budgets=["1%"], removes="n0"),
    four_empty("a quarter of four", budgets=["25%"], removes="n0"),
    four_empty("26% of four", budgets=["26%"], removes="n0 n1"),
    four_empty("the tightest of several", budgets=["50%", "1", "100%"], removes="n0"),
    four_empty("a number above what there is", budgets=["99"], removes=ALL),
    four_empty("closed in business hours, now", budgets=[window(CLOSED, "0 9 * * mon-fri", "8h")], removes=NOTHING),
    four_empty(
        "closed in business hours, on a Sunday",
        budgets=[window(CLOSED, "0 9 * * mon-fri", "8h")],
        now=datetime(2026, 6, 14, 12, tzinfo=UTC),
        removes=ALL,
    ),
    four_empty("the first second of a window", budgets=[window(CLOSED, "0 12 * * *", "1h")], now=NOON, removes=NOTHING),
    four_empty(
        "the last second of a window",
        budgets=[window(CLOSED, "0 11 * * *", "1h")],
        now=datetime(2026, 6, 15, 11, 59, 59, tzinfo=UTC),
        removes=NOTHING,
    ),
    four_empty("the second after a window", budgets=[window(CLOSED, "0 11 * * *", "1h")], now=NOON, removes=ALL),
    four_empty(
        "@daily for half an hour, at midnight an hour east",
        budgets=[window(CLOSED, "@daily", "30m")],
        now=MIDNIGHT_ABROAD,
        removes=ALL,
    ),
    four_empty(
        "@daily for half an hour, at midnight UTC",
        budgets=[window(CLOSED, "@daily", "30m")],
        now=datetime(2026, 6, 15, tzinfo=UTC),
        removes=NOTHING,
    ),
    four_empty(
        "@yearly for a day, noon of New Year", budgets=[window(CLOSED, "@yearly", "24h")], now=NEW_YEAR, removes=NOTHING
    ),
    four_empty("@daily for two days is always", budgets=[window(CLOSED, "@daily", "48h")], removes=NOTHING),
    four_empty(
        "a range that runs backwards stops everything",
        budgets=["100%", window("100%", "0 0 * * tue-mon", "1h")],
        removes=NOTHING,
    ),
    four_empty(
        "an unreadable schedule for another reason stops everything, too",
        budgets=[window("100%", "whenever", "1h", "Drifted")],
        removes=NOTHING,
    ),
    four_empty("unreadable nodes stop everything", budgets=["100%", "many"], removes=NOTHING),
    four_empty(
        "unreadable nodes of a closed window stop nobody",
        budgets=["100%", window("many", "0 3 * * *", "1h")],
        removes=ALL,
    ),
    four_empty(
        "a schedule without a duration stops everything",
        budgets=[Budget(nodes="100%", schedule="@daily")],
        removes=NOTHING,
    ),
    four_empty(
        "a budget for an empty list of reasons binds nobody", budgets=[Budget(nodes=CLOSED, reasons=())], removes=ALL
    ),
    four_empty("reason Empty", budgets=[Budget(nodes="1", reasons=("Empty",)), "100%"], removes="n0"),
    four_empty("reason Underutilized", budgets=[Budget(nodes="1", reasons=("Underutilized",)), "100%"], removes=ALL),
    four_empty(
        "reasons Drifted and Empty",
        budgets=[Budget(nodes=CLOSED, reasons=("Drifted", "Empty")), "100%"],
        removes=NOTHING,
    ),
]

BUSY = [
    Scenario(
        "a node that is not ready is busy",
        nodes=[node("a"), node("b", ready=False, pods=1)],
        pools=[pool_of(budgets=["1"])],
        reasons={"a": "BudgetExhausted"},
    ),
    Scenario(
        "not ready, and the budget has room for both",
        nodes=[node("a"), node("b", ready=False, pods=1)],
        pools=[pool_of(budgets=["2"])],
        removes="a",
    ),
    Scenario(
        "a node on its way out is busy",
        nodes=[node("a"), node("b", claim={"deleted": ago(minutes=5)})],
        pools=[pool_of(budgets=["1"])],
    ),
    Scenario(
        "an instance that terminates is no longer counted",
        nodes=[node("a"), node("b", claim={"terminating": True})],
        pools=[pool_of(budgets=["1"])],
        removes="a",
    ),
    Scenario(
        "an uninitialized node is not counted",
        nodes=[node("a"), node("b", initialized=False, ready=False)],
        pools=[pool_of(budgets=["1"])],
        removes="a",
    ),
    Scenario(
        "a node of nobody is not counted",
        nodes=[node("a"), node("b", managed=False, ready=False)],
        pools=[pool_of(budgets=["1"])],
        removes="a",
    ),
    Scenario(
        "other pools' busy nodes do not matter",
        nodes=[node("a"), node("b", pool="two", ready=False)],
        pools=[pool_of(budgets=["1"]), pool_of("two", budgets=["1"])],
        removes="a",
    ),
    Scenario(
        "a share of the nodes that count: half of three is two",
        nodes=[node("a"), node("b"), node("c", pods=7), node("d", initialized=False)],
        pools=[pool_of(budgets=["50%"])],
        removes="a b",
    ),
    Scenario(
        "consolidation looks at its own reason",
        nodes=[node("a", "huge", pods=1)],
        pools=[pool_of(budgets=[Budget(nodes="0", reasons=("Underutilized",))])],
        reasons={"a": "BudgetExhausted"},
    ),
    Scenario(
        "one pool closed, the other open",
        nodes=[node("a", "huge", pods=1), node("b", "huge", pods=1, pool="two")],
        pools=[pool_of(budgets=["0"]), pool_of("two")],
        removes="b",
        reasons={"a": "BudgetExhausted"},
    ),
]


@either_search(BUDGET_SCENARIOS)
def test_a_budget_lets_so_many_empty_nodes_go(scenario: Scenario) -> None:
    scenario.verify()


@either_search(BUSY)
def test_busy_nodes_use_budgets_up(scenario: Scenario) -> None:
    scenario.verify()


def test_budgets_in_an_annotation_count_when_asked_for() -> None:
    pool = pool_of(budgets=["0"], annotations={BUDGETS: '[{"nodes": "1"}]'})
    nodes = [node("a"), node("b")]
    Scenario("spec", nodes=nodes, pools=[pool]).verify()
    Scenario(
        "annotation", nodes=nodes, pools=[pool], settings=replace(REFERENCE, annotated_budgets=True), removes="a"
    ).verify()


def test_a_later_step_counts_the_nodes_that_remain() -> None:
    made = Scenario("halves", nodes=[node(f"n{i}") for i in range(8)], pools=[pool_of(budgets=["50%"])]).plan(None)
    assert [len(step.command.nodes) for step in made.steps] == [4, 2, 1, 1]


def test_a_budget_that_keeps_a_node_is_named_with_its_numbers() -> None:
    scenario = four_empty("named", budgets=[window(CLOSED, "0 9 * * mon-fri", "8h")], removes=NOTHING)
    (reason,) = scenario.plan().fates[0].reasons
    assert reason.code == "BudgetExhausted"
    assert reason.object == "NodePool default"
    assert "0 9 * * mon-fri for 8h" in reason.message
