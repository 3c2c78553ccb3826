"""Nodes that go before their replacement can be launched: in full reservations, and in pools at their limit."""

from dataclasses import replace
from typing import Any

import pytest
from tests.disruption.repair.policies import POLICIES, fault
from tests.disruption.scenarios import REFERENCE, NodeWithPods, Scenario, ago, node, pool_of
from tests.factories import Z1, instance_type

from karpool.catalog.instance_types import Catalog, Offering
from karpool.disruption.command import TerminateFirst
from karpool.disruption.plan import Plan
from karpool.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVATION_ID, RESERVED, ZONE
from karpool.model.requirements import Requirements, one_of

FIRST = replace(
    REFERENCE, repair=POLICIES, terminate_first_drift=True, terminate_first_repair=True, static_capacity=True
)
GATES_OFF = replace(REFERENCE, repair=POLICIES, static_capacity=True)
NOT_REFILLED = replace(FIRST, static_capacity=False)
BIG = [{"cpu": "3"}]


def catalog(*, units: int = 0, available: bool = True, on_demand: bool | None = None) -> Catalog:
    """One type in a reservation with so many units left; `on_demand`: whether that can be had, None if never sold."""
    held = Requirements.of_labels({CAPACITY_TYPE: RESERVED, ZONE: Z1, RESERVATION_ID: "r1"})
    offerings = [Offering(held, 0.0, available=available, reservation_id="r1", reservation_capacity=units)]
    if on_demand is not None:
        sold = Requirements.of_labels({CAPACITY_TYPE: ON_DEMAND, ZONE: Z1})
        offerings.append(Offering(sold, 0.2, available=on_demand))
    plain = instance_type("held", 4, "16Gi")
    rest = plain.requirements.without(CAPACITY_TYPE).items()
    kinds = Requirements([*rest, (CAPACITY_TYPE, one_of(RESERVED, ON_DEMAND))])
    return Catalog((replace(plain, requirements=kinds, offerings=tuple(offerings)),))


def reserved(name: str, *, why: str, kind: Catalog, pods: Any = BIG, **rest: Any) -> NodeWithPods:
    """A node of the reservation that has drifted, or is broken."""
    labels = {RESERVATION_ID: "r1"}
    sick = {"conditions": [fault("Broken", ago(minutes=5))]} if why == "repair" else {}
    claim = {"drifted": ago(hours=1)} if why == "drift" else {}
    return node(
        name, "held", catalog=kind, capacity_type=RESERVED, labels=labels, pods=pods, claim=claim, **sick, **rest
    )


def first(why: TerminateFirst | None, replacements: int = 0) -> Any:
    def check(plan: Plan) -> bool:
        command = plan.steps[0].command
        return command.terminate_first is why and len(command.replacements) == replacements

    return check


def on_reserved(name: str, why: str, kind: Catalog, pods: Any = BIG, **rest: Any) -> Scenario:
    pool = pool_of("default", RESERVED, consolidate_after="Never")
    nodes = [reserved("a", why=why, kind=kind, pods=pods)]
    return Scenario(name, nodes=nodes, catalog=kind, **{"settings": FIRST, "pools": [pool], **rest})


EITHER = pytest.mark.parametrize("why", ["drift", "repair"])


@EITHER
def test_a_node_in_a_full_reservation_goes_first(why: str) -> None:
    check = first(TerminateFirst.NO_RESERVED_CAPACITY)
    on_reserved("full", why, catalog(), removes="a", check=check).verify()


@EITHER
def test_without_the_gate_it_stays(why: str) -> None:
    on_reserved("off", why, catalog(), settings=GATES_OFF, reasons={"a": "PodsWouldNotFit"}).verify()


@EITHER
def test_another_pool_that_sells_something_comes_first(why: str) -> None:
    kind = catalog(on_demand=True)
    pools = [
        pool_of("default", RESERVED, weight=10, consolidate_after="Never"),
        pool_of("other", consolidate_after="Never"),
    ]
    on_reserved("on-demand", why, kind, pools=pools, removes="a", check=first(None, 1)).verify()


@EITHER
def test_a_reservation_that_is_gone_frees_no_slot(why: str) -> None:
    on_reserved("gone", why, catalog(available=False), reasons={"a": "PodsWouldNotFit"}).verify()


@EITHER
def test_pods_that_need_two_slots_keep_their_node(why: str) -> None:
    apart = [{"cpu": "1", "labels": {"app": "web"}}, {"cpu": "3900m", "labels": {"app": "web"}}]
    on_reserved("two slots", why, catalog(), pods=apart, reasons={"a": "PodsWouldNotFit"}).verify()


@EITHER
def test_a_slot_that_is_left_is_used_before_the_node_goes(why: str) -> None:
    on_reserved("room", why, catalog(units=1), removes="a", check=first(None, 1)).verify()


# -- pools of a fixed size -----------------------------------------------------------------------------------------


def static(why: str, count: int, *, limit: int, kind: Catalog, **rest: Any) -> Scenario:
    pool = pool_of("default", RESERVED, ON_DEMAND, replicas=count, limits={"nodes": limit}, **rest.pop("pool", {}))
    broken = 1 if why == "repair" else count
    nodes = [reserved(name, why=why if at < broken else "", kind=kind) for at, name in enumerate("abcde"[:count])]
    return Scenario("static", nodes=nodes, catalog=kind, **{"settings": FIRST, "pools": [pool], **rest})


SOLD = catalog(on_demand=True)


def test_a_static_pool_at_its_limit_loses_drifted_nodes_first_within_its_budget() -> None:
    case = static("drift", 5, limit=5, kind=SOLD, pool={"budgets": ["2"]})
    steps = case.plan(2).steps
    assert [step.command.terminate_first for step in steps] == [TerminateFirst.STATIC_AT_LIMIT] * 2
    assert not any(step.command.replacements for step in steps)


def test_a_static_pool_at_its_limit_loses_a_broken_node_first() -> None:
    static("repair", 3, limit=3, kind=SOLD, removes="a", check=first(TerminateFirst.STATIC_AT_LIMIT)).verify()


@EITHER
def test_a_static_pool_at_its_limit_keeps_its_nodes_without_the_gate(why: str) -> None:
    static(why, 3, limit=3, kind=SOLD, settings=GATES_OFF, reasons={"a": "NodeLimitReached"}).verify()


@pytest.mark.parametrize(("why", "code"), [("drift", "StaticPool"), ("repair", "NodeLimitReached")])
def test_a_static_pool_that_nobody_refills_keeps_its_nodes(why: str, code: str) -> None:
    static(why, 3, limit=3, kind=SOLD, settings=NOT_REFILLED, reasons={"a": code}).verify()


@EITHER
def test_a_static_pool_with_room_gets_the_new_node_first(why: str) -> None:
    static(why, 3, limit=4, kind=SOLD, removes="a", check=first(None, 1)).verify()


@EITHER
def test_a_static_pool_whose_reservations_are_full_loses_nodes_that_hold_a_slot(why: str) -> None:
    check = first(TerminateFirst.NO_RESERVED_CAPACITY)
    case = static(why, 1, limit=4, kind=catalog(), removes="a", check=check)
    case.verify()


@EITHER
def test_capacity_that_is_sold_but_short_does_not_make_reservations_full(why: str) -> None:
    static(why, 1, limit=4, kind=catalog(on_demand=False), reasons={"a": "PodsWouldNotFit"}).verify()
