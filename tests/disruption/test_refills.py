"""What comes in the place of nodes that go first: plans count it, and no plan ends below its own bound."""

from dataclasses import replace
from typing import Any

import pytest
from tests.disruption.repair.policies import POLICIES, fault
from tests.disruption.scenarios import CATALOG, NOW, REFERENCE, NodeWithPods, Scenario, ago, node, pool_of
from tests.factories import Z1, instance_type

from karpool.catalog.instance_types import Catalog, Offering
from karpool.disruption.plan import Plan, Planner, context_of
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, RESERVATION_ID, RESERVED, ZONE
from karpool.model.requirements import Requirements
from karpool.packing.options import Options
from karpool.report.plans.assemble import plan_document
from karpool.report.plans.plan_metrics import evictions_of

FIRST = replace(
    REFERENCE, repair=POLICIES, terminate_first_drift=True, terminate_first_repair=True, static_capacity=True
)
WHY = pytest.mark.parametrize("why", ["drift", "repair"])


def due(name: str, why: str, size: str = "medium", **rest: Any) -> NodeWithPods:
    """A node that has drifted or is broken."""
    sick = {"conditions": [fault("Broken", ago(minutes=5))]} if why == "repair" else {}
    claim = {"drifted": ago(hours=1)} if why == "drift" else {}
    return node(name, size, claim=claim, **sick, **rest)


def planned(nodes: list[NodeWithPods], pools: list[Any], catalog: Catalog = CATALOG) -> Plan:
    case = Scenario("refill", nodes=nodes, pools=pools, catalog=catalog, settings=FIRST)
    context = context_of(case.objects, catalog, now=NOW, settings=FIRST, options=Options())
    return Planner(context).plan(bound=True)


def expect_price_above_bound(made: Plan) -> None:
    assert made.lower_bound is not None
    assert made.after.price >= made.lower_bound.price - 1e-9


def static(*types: str, count: int) -> Any:
    asked = [(INSTANCE_TYPE, "In", *types)] if types else []
    return pool_of(requirements=asked, replicas=count, limits={"nodes": count}, budgets=["100%"])


@WHY
def test_a_static_pool_launches_another_and_its_pods_go_there(why: str) -> None:
    nodes = [due("a", why, pods=2), node("b", pods=[{"cpu": "3"}]), node("c", pods=[{"cpu": "3"}])]
    made = planned(nodes, [static("medium", count=3)])
    (step,) = made.steps
    assert (step.command.decision, [new.instance_types for new in step.command.refills]) == (
        "terminate-first",
        [("medium",)],
    )
    assert {move.target for move in step.command.moves} == {0}
    assert step.command.savings == pytest.approx(0.0)
    assert (made.after.nodes, made.after.pods, made.after.price) == (3, 4, pytest.approx(made.before.price))
    assert evictions_of(plan_document(made)) == 2
    assert "then its pool launches medium" in made.fates[0].reasons[0].message
    expect_price_above_bound(made)


@WHY
def test_a_static_pool_launches_the_cheapest_and_pods_that_it_does_not_hold_are_displaced(why: str) -> None:
    made = planned([due("a", why, pods=[{"cpu": "3"}, {"cpu": "500m"}])], [static(count=1)])
    (step,) = made.steps
    assert step.command.refills[0].instance_types[0] == "tiny"
    assert len(step.command.displaced) == len(step.command.moves) == 1
    assert (made.after.pods, made.displaced) == (1, step.command.displaced)
    assert evictions_of(plan_document(made)) == 2
    expect_price_above_bound(made)


@WHY
def test_pods_that_a_new_node_does_not_hold_go_where_room_is_left(why: str) -> None:
    nodes = [due("a", why, pods=[{"cpu": "3"}]), node("b", pods=[{"cpu": "500m"}])]
    made = planned(nodes, [static(count=2)])
    assert (len(made.steps[0].command.displaced), made.displaced, made.after.pods) == (1, (), 2)
    expect_price_above_bound(made)


def test_all_drifted_nodes_of_a_static_pool_are_launched_again_and_drift_no_more() -> None:
    nodes = [due(name, "drift", pods=number % 2) for number, name in enumerate("abc")]
    made = planned(nodes, [static("medium", count=3)])
    assert [step.command.nodes for step in made.steps] == [("a",), ("b",), ("c",)]
    assert (made.after.nodes, made.after.price) == (3, pytest.approx(0.6))
    expect_price_above_bound(made)


def test_a_static_pool_that_can_launch_nothing_leaves_its_pods_waiting() -> None:
    short = (
        replace(entry, offerings=tuple(replace(offering, available=False) for offering in entry.offerings))
        for entry in CATALOG.types
    )
    made = planned([due("a", "drift", pods=1)], [static("medium", count=1)], Catalog(tuple(short)))
    (step,) = made.steps
    assert (step.command.refills, made.after.nodes, len(made.displaced)) == ((), 0, 1)
    expect_price_above_bound(made)


def held(*, units: int, sold: bool) -> Catalog:
    """One type in a reservation of 0.05 $/h with so many units left, and on demand for 0.2 $/h if it is sold."""
    wanted = Requirements.of_labels({CAPACITY_TYPE: RESERVED, ZONE: Z1, RESERVATION_ID: "r1"})
    offerings = [Offering(wanted, 0.05, reservation_id="r1", reservation_capacity=units)]
    if sold:
        offerings.append(Offering(Requirements.of_labels({CAPACITY_TYPE: ON_DEMAND, ZONE: Z1}), 0.2))
    plain = instance_type("held", 4, "16Gi")
    requirements = plain.requirements.without(CAPACITY_TYPE)
    return Catalog((replace(plain, requirements=requirements, offerings=tuple(offerings)),))


@WHY
@pytest.mark.parametrize("replicas", [None, 1])
def test_a_new_node_gets_the_slot_that_the_old_one_gives_back(why: str, replicas: int | None) -> None:
    catalog = held(units=0, sold=False)
    labels = {RESERVATION_ID: "r1"}
    old = due("a", why, "held", catalog=catalog, capacity_type=RESERVED, labels=labels, pods=[{"cpu": "3"}])
    fixed = {} if replicas is None else {"replicas": replicas}
    made = planned([old], [pool_of("default", RESERVED, consolidate_after="Never", **fixed)], catalog)
    (step,) = made.steps
    assert (step.command.decision, len(step.command.refills), step.command.savings) == ("terminate-first", 1, 0.0)
    assert [(move.source, move.target) for move in step.command.moves] == [("a", 0)]
    assert (made.after.nodes, made.after.pods, made.after.price) == (1, 1, made.before.price)
    expect_price_above_bound(made)


def test_a_static_pool_at_its_limit_takes_the_slot_before_it_buys() -> None:
    catalog = held(units=0, sold=True)
    old = due("a", "drift", "held", catalog=catalog, capacity_type=RESERVED, labels={RESERVATION_ID: "r1"}, pods=1)
    pool = pool_of("default", RESERVED, ON_DEMAND, replicas=1, limits={"nodes": 1})
    made = planned([old], [pool], catalog)
    assert [new.price for new in made.steps[0].command.refills] == [0.05]
    assert made.after.price == pytest.approx(0.05)
    expect_price_above_bound(made)


def test_a_static_node_is_no_saving_that_a_bound_could_count_on() -> None:
    made = planned([node("a", pods=1), node("b")], [static("medium", count=2)])
    assert made.lower_bound is not None
    assert (made.steps, made.lower_bound.price) == ((), pytest.approx(0.4))
