"""Nodes whose room a CapacityBuffer keeps."""

from dataclasses import replace
from typing import Any

import pytest
from tests.disruption.scenarios import NOTHING, POOL, REFERENCE, Scenario, either_search, node, pool_of
from tests.factories import anti_affinity, pod
from tests.factories.buffers import capacity_buffer, pod_template

from karpool.disruption.plan import Plan

NO_SUPPLY = pool_of(limits={"cpu": 0})


def buffered(replicas: int, *, cpu: str = "2", memory: str | None = None, **keywords: Any) -> dict[str, Any]:
    """A buffer for some pods."""
    return {
        "capacity_buffers": (capacity_buffer("spare", replicas, template="chunk"),),
        "pod_templates": (pod_template(cpu=cpu, memory=memory, **keywords),),
    }


def shared(pods: int, placed: int, price: float) -> Any:
    """Checks what a plan says of the only buffer."""

    def check(plan: Plan) -> bool:
        (share,) = plan.buffers
        assert (share.pods, share.placed) == (pods, placed)
        return share.price == pytest.approx(price)

    return check


def _memory(plan: Plan) -> float:
    """The memory of the only node, in bytes."""
    return plan.fates[0].candidate.state.allocatable["memory"].units


SCENARIOS = (
    Scenario("without a buffer an empty node goes", nodes=[node("a")], removes="a"),
    Scenario(
        "room that a buffer keeps is not empty",
        nodes=[node("a")],
        pools=[NO_SUPPLY],
        other_objects=buffered(1),
        reasons={"a": "PodsWouldNotFit"},
        check=shared(1, 1, 0.2),  # the node is there for nothing else
    ),
    Scenario(
        "a pool that removes only empty nodes keeps those with headroom",
        nodes=[node("a"), node("b", pods=1)],
        pools=[pool_of(policy="WhenEmpty", limits={"cpu": 0})],
        other_objects=buffered(2),
        reasons={"a": "PolicyWhenEmpty"},
    ),
    Scenario(
        "headroom moves for nothing",
        nodes=[node("a"), node("b", "large", pods=1)],
        pools=[NO_SUPPLY],
        other_objects=buffered(2),
        removes="a",
        check=lambda plan: not plan.steps[0].command.evicted and plan.buffers[0].nodes == ("b",),
    ),
    Scenario(
        "headroom that needs the node keeps it",
        nodes=[node("a"), node("b", pods=[{"cpu": "3"}])],
        pools=[NO_SUPPLY],
        other_objects=buffered(2),
        reasons={"a": "PodsWouldNotFit"},
    ),
    Scenario(
        "pods come before headroom",
        nodes=[node("a", pods=[{"cpu": "2"}])],
        pods=[pod("waiting-1", cpu="1500m", pending=True)],
        pools=[NO_SUPPLY],
        other_objects=buffered(1),
        check=lambda plan: not plan.unschedulable and plan.buffers[0].placed == 0,
    ),
    Scenario(
        "headroom that fits nowhere blocks nothing, and is no pending pod",
        nodes=[node("a", pods=1), node("b", pods=1)],
        pools=[NO_SUPPLY],
        other_objects=buffered(3, cpu="60"),
        removes="a",
        free_choice=True,
        check=lambda plan: not plan.unschedulable and plan.buffers[0].placed == 0,
    ),
    Scenario(
        "headroom is replaced together with pods",
        nodes=[node("a", "huge", pods=1)],
        pools=[POOL],
        other_objects=buffered(1),
        removes="a",
        launches="medium",
        check=lambda plan: len(plan.steps[0].command.evicted) == plan.buffers[0].placed == 1,
    ),
    Scenario(
        "the rules of its template hold for headroom",
        nodes=[node("a"), node("b"), node("c", pods=1)],
        pools=[NO_SUPPLY],
        other_objects=buffered(3, cpu="100m", labels={"app": "web"}, anti=[anti_affinity({"app": "web"})]),
        reasons={"a": "PodsWouldNotFit", "b": "PodsWouldNotFit"},
    ),
    Scenario(
        "buffers that are switched off keep nothing",
        nodes=[node("a")],
        settings=replace(REFERENCE, capacity_buffers=False),
        other_objects=buffered(1),
        removes="a",
        check=lambda plan: not plan.buffers,
    ),
    Scenario(
        "a share of a node that has pods is paid for by what it takes most of",
        nodes=[node("a", pods=[{"cpu": "2"}])],
        pools=[NO_SUPPLY],
        other_objects=buffered(1, cpu="1", memory="8Gi"),
        removes=NOTHING,
        check=lambda plan: plan.buffers[0].price == pytest.approx(0.2 * 8 * 2**30 / _memory(plan)),
    ),
)


@either_search(SCENARIOS)
def test_headroom(scenario: Scenario) -> None:
    scenario.verify()


def test_the_way_of_a_plan_evicts_no_headroom_however_often_it_moves() -> None:
    nodes = [node(name, pods=[{"cpu": "100m"}]) for name in "abcd"]
    scenario = Scenario(
        "many", nodes=nodes, pools=[pool_of(limits={"cpu": 0}, budgets=["1"])], other_objects=buffered(1)
    )
    plan = scenario.plan(None)
    assert (len(plan.steps), plan.after.nodes) == (3, 1)
    assert sum(len(step.command.evicted) for step in plan.steps) == 3
    assert plan.buffers[0].placed == 1
    assert plan.after.pods == plan.before.pods == 4
