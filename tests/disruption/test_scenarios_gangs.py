"""Pending gangs keep the room that they fit into as a whole, and none otherwise."""

from typing import Any

import pytest
from tests.disruption.scenarios import NOTHING, Scenario, either_search, node, pool_of
from tests.factories import pod
from tests.factories.gangs import members, pod_group

from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.explain import explain_node
from karpool.disruption.plan import Plan, context_of

NO_SUPPLY = pool_of(limits={"cpu": 0})


def two_nodes(**rest: Any) -> dict[str, Any]:
    """Room for two pods of 3 CPUs, on nodes of four."""
    return {"nodes": [node("a"), node("b", pods=[{"cpu": "500m"}])], "pools": [NO_SUPPLY], **rest}


def unschedulable(words: str, count: int) -> Any:
    def check(plan: Plan) -> bool:
        assert len(plan.unschedulable) == count
        assert all(words in reason.message for _, reason in plan.unschedulable), plan.unschedulable
        return True

    return check


SCENARIOS = (
    Scenario(
        "pods that wait one by one take what there is",
        **two_nodes(pods=[pod(f"w-{at}", cpu="3", pending=True) for at in range(3)]),
        removes=NOTHING,
        reasons={"a": "PodsWouldNotFit"},
        check=unschedulable("no node can take it: 2 nodes: not enough cpu", 1),
    ),
    Scenario(
        "a gang that does not fit takes no room",
        **two_nodes(pods=members("train", 3, cpu="3")),
        removes="a",
        check=unschedulable("3 pods need room at once (all that wait, for nobody says how many it needs)", 3),
    ),
    Scenario(
        "a gang that fits keeps its room",
        **two_nodes(pods=members("train", 2, cpu="3")),
        removes=NOTHING,
        reasons={"a": "PodsWouldNotFit"},
        check=lambda plan: not plan.unschedulable,
    ),
    Scenario(
        "of a gang as many as it needs are enough",
        **two_nodes(pods=members("train", 3, cpu="3"), other_objects={"pod_groups": (pod_group("train", 2),)}),
        removes=NOTHING,
        check=unschedulable("not enough cpu", 1),
    ),
    Scenario(
        "a gang whose pods are not all there takes no room",
        **two_nodes(pods=members("train", 2, cpu="3"), other_objects={"pod_groups": (pod_group("train", 3),)}),
        removes="a",
        check=unschedulable("3 pods are needed, but only 2 wait", 2),
    ),
    Scenario(
        "others get the room that a gang cannot use",
        **two_nodes(pods=[*members("train", 3, cpu="3"), pod("w-1", cpu="3200m", pending=True)]),
        removes="a",
        check=unschedulable("its gang default/train runs only together", 3),
    ),
    Scenario(
        "the pods of a gang that run are no gang that waits",
        nodes=[node("a", pods=members("train", 2, cpu="1", node="a")), node("b", pods=[{"cpu": "500m"}])],
        pools=[NO_SUPPLY],
        removes="b",
        free_choice=True,
    ),
)


@either_search(SCENARIOS)
def test_gangs(scenario: Scenario) -> None:
    scenario.verify()


@pytest.mark.parametrize(("count", "goes"), [(2, False), (3, True)])
def test_explain_agrees_with_the_plan(count: int, *, goes: bool) -> None:
    scenario = Scenario("", **two_nodes(pods=members("train", count, cpu="3")))
    made = context_of(
        scenario.objects, scenario.catalog, now=scenario.now, settings=scenario.settings, options=scenario.options
    )
    with made as context:
        explained = explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows["a"]))
    assert (explained.command is not None) == goes
    assert [step.command.nodes for step in scenario.plan().steps] == ([("a",)] if goes else [])
