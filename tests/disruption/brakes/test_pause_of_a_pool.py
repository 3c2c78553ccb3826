"""A pool that a person has paused keeps its nodes, and each says why."""

import pytest
from tests.disruption.scenarios import NOW, NodeWithPods, Scenario, ago, node, pool_of

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stops_of import stops_of
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.explain import explain_node
from karpool.disruption.plan import context_of
from karpool.disruption.revalidate import revalidate
from karpool.model.labels import PAUSED
from karpool.model.objects import Objects
from karpool.model.reasons import Reason

STILL = pool_of("default", annotations={PAUSED: "upgrade of the database"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is paused by its annotation karpool.sh/paused"),
        ("true", "is paused by its annotation karpool.sh/paused"),
        (
            "false",
            "is paused by its annotation karpool.sh/paused: false (any value pauses; remove the annotation to go on)",
        ),
        ("until\nMonday", "is paused by its annotation karpool.sh/paused: until\\nMonday"),
    ],
)
def test_any_value_pauses_and_says_what_a_person_wrote(text: str, message: str) -> None:
    pools = (pool_of("a", annotations={PAUSED: text}), pool_of("b"))
    stops = stops_of(Objects(node_pools=pools), BrakeSettings(), NOW)
    stop = stops.of("a")
    assert stop is not None
    assert stop.reason == Reason("Paused", message, "NodePool a")
    assert stops.of("b") is None


@pytest.mark.parametrize(
    "nodes",
    [
        [node("a")],
        [node("a", pods=[{"cpu": 1}]), node("b", "large", pods=[{"cpu": 3}])],
        [node("a", pods=[{"cpu": 3}], claim={"drifted": ago(hours=1)})],
    ],
    ids=["empty", "under-used", "drifted"],
)
def test_nothing_of_a_paused_pool_goes_and_every_node_says_why(nodes: list[NodeWithPods]) -> None:
    assert Scenario("goes", nodes=nodes).plan().steps
    plan = Scenario("stays", nodes=nodes, pools=(STILL,)).plan()
    assert plan.steps == ()
    assert {reason.code for fate in plan.fates for reason in fate.reasons} == {"Paused"}


def test_the_nodes_of_other_pools_go() -> None:
    other = pool_of("other")
    plan = Scenario("one of two", nodes=[node("a"), node("b", pool="other")], pools=(STILL, other)).plan()
    assert [step.command.nodes for step in plan.steps] == [("b",)]


@pytest.mark.parametrize(
    "nodes",
    [[node("a")], [node("a", pods=[{"cpu": 3}], claim={"drifted": ago(hours=1)})]],
    ids=["empty", "drifted"],
)
def test_a_command_is_not_started_when_its_pool_was_paused_since(nodes: list[NodeWithPods]) -> None:
    command = Scenario("before", nodes=nodes).plan().steps[0].command
    later = Scenario("after", nodes=nodes, pools=(STILL,))
    context = context_of(later.objects, later.catalog, now=NOW, settings=later.settings, options=later.options)
    refused = revalidate(command, context)
    assert isinstance(refused, Reason)
    assert "is paused by its annotation" in refused.message


def test_explain_names_the_brake_and_what_would_be_saved_without_it() -> None:
    scenario = Scenario("explained", nodes=[node("a")], pools=(STILL,))
    context = context_of(
        scenario.objects, scenario.catalog, now=NOW, settings=scenario.settings, options=scenario.options
    )
    told = explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows["a"]))
    failed = [rule for rule in told.outcomes if not rule.passed]
    assert [(rule.rule, rule.reason and rule.reason.code) for rule in failed] == [("no brake holds its pool", "Paused")]
    assert [alternative.condition for alternative in told.alternatives] == ["NodePool default were not paused"]
