"""Beside Karpenter only pools with budgets for Karpool are its business, as a source and as a supply."""

import pytest
from tests.disruption.scenarios import Scenario, node, pool_of

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.settings import DisruptionSettings
from karpool.model.labels import BUDGETS
from karpool.packing.options import Options

ASKS = {BUDGETS: '[{"nodes": "100%"}]'}
OPT_IN = DisruptionSettings(brakes=BrakeSettings(opt_in=True), annotated_budgets=True)
EVERYWHERE = DisruptionSettings(brakes=BrakeSettings(opt_in=True, all_pools=True), annotated_budgets=True)
ONLY_ASKED = Options(supply_annotation=BUDGETS)


def test_nodes_of_a_pool_that_does_not_ask_stay_and_say_so() -> None:
    pools = (pool_of("default"), pool_of("asks", annotations=ASKS))
    nodes = [node("a"), node("b", pool="asks")]
    plan = Scenario("opt in", nodes=nodes, pools=pools, settings=OPT_IN).plan()
    assert [step.command.nodes for step in plan.steps] == [("b",)]
    ((reason,),) = [fate.reasons for fate in plan.fates if fate.step is None]
    assert (reason.code, reason.object) == ("NotOptedIn", "NodePool default")
    assert reason.message == "has no annotation karpool.sh/budgets, so Karpool leaves it alone"


@pytest.mark.parametrize("settings", [EVERYWHERE, DisruptionSettings()], ids=["all pools", "no other controller"])
def test_otherwise_no_pool_has_to_ask(settings: DisruptionSettings) -> None:
    assert len(Scenario("all", nodes=[node("a")], settings=settings).plan().steps) == 1


def test_a_pool_that_does_not_ask_supplies_no_new_node_and_still_takes_pods() -> None:
    asks = pool_of("asks", annotations=ASKS, weight=1)
    silent = pool_of("silent", weight=100)
    nodes = [node("a", "huge", pods=[{"cpu": 1}], pool="asks")]
    free = Scenario("any", nodes=nodes, pools=(asks, silent), settings=EVERYWHERE).plan()
    assert free.steps[0].command.replacements[0].pool == "silent"
    held = Scenario("asked", nodes=nodes, pools=(asks, silent), settings=OPT_IN, options=ONLY_ASKED).plan()
    assert held.steps[0].command.replacements[0].pool == "asks"
    room = node("b", "large", pods=[{"cpu": 3}], pool="silent")
    moved = Scenario("room", nodes=[*nodes, room], pools=(asks, silent), settings=OPT_IN, options=ONLY_ASKED).plan()
    (step,) = moved.steps
    assert step.command.nodes == ("a",)
    assert step.command.replacements == ()


def test_where_no_pool_asks_nothing_is_replaced_and_the_reason_names_the_pool() -> None:
    asks = pool_of("asks", annotations=ASKS, requirements=[("kubernetes.io/arch", "In", "arm64")])
    silent = pool_of("silent")
    nodes = [node("a", "huge", pods=[{"cpu": 1}], pool="asks")]
    plan = Scenario("none", nodes=nodes, pools=(asks, silent), settings=OPT_IN, options=ONLY_ASKED).plan()
    assert plan.steps == ()
    assert "pool silent: is left alone by Karpool" in plan.fates[0].reasons[0].message
