"""The second look: a command is carried out only if it would be decided again."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace as changed
from tests.disruption.scenarios import NOW, Scenario, ago, node, pool_of
from tests.factories import pdb, pod

from karpool.disruption.command import Command
from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import context_of
from karpool.disruption.revalidate import revalidate
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.nodepool import Budget
from karpool.model.reasons import Reason

KEEP = {DO_NOT_DISRUPT: "true"}
LATER = NOW + timedelta(seconds=15)


def context(scenario: Scenario, now: datetime = LATER) -> DecisionContext:
    return context_of(scenario.objects, scenario.catalog, now=now, settings=scenario.settings, options=scenario.options)


def decided(scenario: Scenario) -> Command:
    return scenario.plan().steps[0].command


TWO_EMPTY = Scenario("two empty nodes", nodes=[node("a"), node("b")])
REPLACED = Scenario("replaced", nodes=[node("a", "huge", pods=[{"cpu": 1}])])
DELETED = Scenario(
    "deleted", nodes=[node("a", pods=[{"cpu": 1}]), node("b", "large", pods=[{"cpu": 3}], annotations=KEEP)]
)
TOGETHER = Scenario("together", nodes=[node(name, "huge", pods=[{"cpu": 1}]) for name in "abc"])
DRIFTED = Scenario("drifted", nodes=[node("a", pods=[{"cpu": 3}], claim={"drifted": ago(hours=1)})])


@pytest.mark.parametrize(
    "scenario", [TWO_EMPTY, REPLACED, DELETED, TOGETHER, DRIFTED], ids=lambda scenario: scenario.name
)
def test_a_command_holds_while_nothing_changes(scenario: Scenario) -> None:
    assert revalidate(decided(scenario), context(scenario)) == decided(scenario)


def test_a_pod_on_one_of_two_empty_nodes_leaves_the_other() -> None:
    busier = replace(TWO_EMPTY, pods=[pod("x-0", node="a")])
    found = revalidate(decided(TWO_EMPTY), context(busier))
    assert isinstance(found, Command)
    assert found.nodes == ("b",)
    assert found.price == pytest.approx(0.2)


def test_pods_on_both_empty_nodes_leave_nothing() -> None:
    busier = replace(TWO_EMPTY, pods=[pod("x-0", node="a"), pod("x-1", node="b")])
    found = revalidate(decided(TWO_EMPTY), context(busier))
    assert isinstance(found, Reason)
    assert found.code == "CandidateChanged"


def test_a_budget_that_has_shrunk_shrinks_an_emptiness_command() -> None:
    tighter = replace(TWO_EMPTY, pools=[pool_of(budgets=["1"])])
    found = revalidate(decided(TWO_EMPTY), context(tighter))
    assert isinstance(found, Command)
    assert len(found.nodes) == 1
    closed = replace(TWO_EMPTY, pools=[pool_of(budgets=["0"])])
    refused = revalidate(decided(TWO_EMPTY), context(closed))
    assert isinstance(refused, Reason)
    assert refused.code == "BudgetExhausted"


def test_drift_is_not_looked_at_again() -> None:
    gone = replace(DRIFTED, nodes=[])
    assert revalidate(decided(DRIFTED), context(gone)) == decided(DRIFTED)


def test_a_pod_that_fits_the_planned_types_joins_the_command() -> None:
    more = replace(REPLACED, pods=[pod("x-0", node="a", cpu="100m")])
    found = revalidate(decided(REPLACED), context(more))
    assert isinstance(found, Command)
    assert [move.pod for move in found.moves] == ["default/a-0", "default/x-0"]
    assert found.replacements == decided(REPLACED).replacements


@dataclass(frozen=True)
class Change:
    """What becomes of a scenario after a command was decided, and the reason why the command is given up."""

    name: str
    _: KW_ONLY
    scenario: Scenario
    becomes: Mapping[str, Any]
    refused: str


CHANGES = [
    Change(
        "a pod that needs another type",
        scenario=REPLACED,
        becomes={"pods": [pod("x-0", node="a", cpu=3)]},
        refused="ReplacementChanged",
    ),
    Change(
        "a pod that needs a second node",
        scenario=REPLACED,
        becomes={"pods": [pod("x-0", node="a", cpu="63")]},
        refused="ReplacementChanged",
    ),
    Change(
        "a pod with do-not-disrupt",
        scenario=REPLACED,
        becomes={"pods": [pod("x-0", node="a", annotations=KEEP)]},
        refused="CandidateChanged",
    ),
    Change(
        "a PDB that blocks",
        scenario=REPLACED,
        becomes={"pdbs": [pdb("keep", {"app": "a"}, allowed=0)]},
        refused="CandidateChanged",
    ),
    Change(
        "a pod that fits nowhere",
        scenario=REPLACED,
        becomes={"pods": [pod("x-0", node="a", selector={"disk": "ssd"})]},
        refused="PodsWouldNotFit",
    ),
    Change(
        "a pending pod that counts on the node",
        scenario=REPLACED,
        becomes={"pods": [pod("x-0", cpu=60, pending=True)]},
        refused="ReplacementChanged",
    ),
    Change(
        "the room on the other node is taken",
        scenario=DELETED,
        becomes={"pods": [pod("x-0", node="b", cpu=4)]},
        refused="ReplacementChanged",
    ),
    Change(
        "room appears: no new node is needed",
        scenario=replace(REPLACED, settings=DisruptionSettings(search="prefix")),
        becomes={"nodes": [*REPLACED.nodes, node("z", "large")]},
        refused="ReplacementChanged",
    ),
    Change("the node is gone", scenario=REPLACED, becomes={"nodes": []}, refused="CandidateChanged"),
    Change(
        "the node is empty now", scenario=REPLACED, becomes={"nodes": [node("a", "huge")]}, refused="CandidateChanged"
    ),
    Change(
        "the node is on its way out",
        scenario=REPLACED,
        becomes={"nodes": [node("a", "huge", pods=[{"cpu": 1}], claim={"deleted": NOW})]},
        refused="CandidateChanged",
    ),
    Change(
        "the pool says WhenEmpty now",
        scenario=REPLACED,
        becomes={"pools": [pool_of(policy="WhenEmpty")]},
        refused="CandidateChanged",
    ),
    Change(
        "a pod event, and a window",
        scenario=REPLACED,
        becomes={
            "nodes": [node("a", "huge", pods=[{"cpu": 1}], claim={"last_pod_event": NOW})],
            "pools": [pool_of(consolidate_after="1m")],
        },
        refused="CandidateChanged",
    ),
    Change("budget gone", scenario=REPLACED, becomes={"pools": [pool_of(budgets=["0"])]}, refused="BudgetExhausted"),
    Change(
        "budget for fewer than the command takes",
        scenario=TOGETHER,
        becomes={"pools": [pool_of(budgets=["2"])]},
        refused="BudgetExhausted",
    ),
    Change(
        "one of three is protected",
        scenario=TOGETHER,
        becomes={"nodes": [*TOGETHER.nodes[:2], node("c", "huge", pods=[{"cpu": 1, "annotations": KEEP}])]},
        refused="CandidateChanged",
    ),
    Change(
        "types are sold out",
        scenario=REPLACED,
        becomes={"pools": [pool_of(limits={"cpu": 0})]},
        refused="PodsWouldNotFit",
    ),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_consolidation_is_given_up_when_its_reasons_have_changed(change: Change) -> None:
    changed_scenario = replace(change.scenario, **change.becomes)
    reason = revalidate(decided(change.scenario), context(changed_scenario))
    assert isinstance(reason, Reason)
    assert reason.code == change.refused, reason


def test_a_higher_price_is_not_looked_at_again() -> None:
    """What is planned may cost more by now; the launch still keeps to the planned types and capacity type."""
    from tests.factories import Z1, instance_type

    from karpool.catalog.instance_types import Catalog

    dearer = Catalog(
        tuple(instance_type(t.name, t.capacity["cpu"].units, f"{4 * t.capacity['cpu'].units}Gi", price=9.0, zones=[Z1])
              for t in REPLACED.catalog.types)
    )  # fmt: skip
    assert isinstance(revalidate(decided(REPLACED), context(replace(REPLACED, catalog=dearer))), Command)


def test_a_nominated_node_is_not_disrupted() -> None:
    busy = context(TWO_EMPTY)
    expected = DecisionContext(busy.engine, replace(busy.policies, nominated=frozenset({"a"})), LATER)
    found = revalidate(decided(TWO_EMPTY), expected)
    assert isinstance(found, Command)
    assert found.nodes == ("b",)


def test_a_budget_window_that_opens_in_between_counts() -> None:
    from karpool.wire.duration import parse_duration

    hour = Budget(nodes="0", schedule="1 12 * * *", duration=parse_duration("1h"))
    scenario = replace(REPLACED, pools=[pool_of(budgets=[hour])])
    command = decided(scenario)
    assert isinstance(revalidate(command, context(scenario, NOW + timedelta(seconds=59))), Command)
    refused = revalidate(command, context(scenario, NOW + timedelta(seconds=60)))
    assert isinstance(refused, Reason)
    assert refused.code == "BudgetExhausted"


def test_a_claim_that_is_marked_after_the_decision_is_left_alone() -> None:
    marked = [replace(one, node=changed(one.node, metadata=changed(one.node.metadata, annotations=KEEP)))
              for one in REPLACED.nodes if one.node is not None]  # fmt: skip
    found = revalidate(decided(REPLACED), context(replace(REPLACED, nodes=marked)))
    assert isinstance(found, Reason)
    assert DO_NOT_DISRUPT in found.message
