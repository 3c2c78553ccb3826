"""One cheaper node in the place of another: prices, capacity types, minimum choice, and where pods must be."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.disruption.scenarios import CATALOG, MIXED, NOTHING, REFERENCE, Scenario, ago, either_search, node, pool_of
from tests.factories import Z1, Z2, Z3, daemon_set, instance_type, node_term, pod, pv, pvc, spread

from karpool.catalog.instance_types import Catalog
from karpool.cluster.constraints import Preferences
from karpool.disruption.plan import Plan
from karpool.model.labels import (
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    INSTANCE_TYPE,
    ON_DEMAND,
    RESERVATION_ID,
    RESERVED,
    SPOT,
    ZONE,
)
from karpool.model.nodepool import PoolRequirement
from karpool.packing.options import MinValues, Options

GATE = replace(REFERENCE, spot_to_spot=True)
KEEP = {DO_NOT_DISRUPT: "true"}


def at_least(count: int, key: str = INSTANCE_TYPE) -> PoolRequirement:
    return PoolRequirement(key=key, operator="Exists", min_values=count)


def types(*made: tuple[str, float, float], **rest: Any) -> Catalog:
    """Types of four CPUs by name, on-demand price and spot price."""
    return Catalog(tuple(instance_type(name, 4, price=p, spot_price=s, zones=[Z1, Z2], **rest) for name, p, s in made))


def ladder(count: int) -> Catalog:
    """Types t00, t01, … of four CPUs, each a cent more expensive than the one before; the last is called old."""
    names = [f"t{number:02}" for number in range(count)]
    return types(*((name, 0.1 + 0.01 * at, 0.05 + 0.01 * at) for at, name in enumerate(names)), ("old", 0.9, 0.8))


def on(catalog: Catalog, *, capacity_type: str = ON_DEMAND, type_name: str = "old", **rest: Any) -> list[Any]:
    """One node of a type with one pod that fills most of it."""
    return [node("a", type_name, pods=[{"cpu": 3}], catalog=catalog, capacity_type=capacity_type, **rest)]


def listed(plan: Plan) -> Sequence[str]:
    return plan.steps[0].command.replacements[0].instance_types


TWO = types(("cheap", 0.6, 0.2), ("old", 0.5, 0.5))
ZONAL = Catalog((
    instance_type("cheap", 4, offers=[(ON_DEMAND, Z1, 0.2), (ON_DEMAND, Z2, 0.9)]),
    instance_type("old", 4, offers=[(ON_DEMAND, Z1, 0.5)]),
))  # fmt: skip
UNKNOWN = Catalog((
    instance_type("dark", 4, offers=[(ON_DEMAND, Z1, None)]), instance_type("old", 4, offers=[(ON_DEMAND, Z1, 0.5)]),
))  # fmt: skip
SOLD_OUT = Catalog((
    instance_type("cheap", 4, price=0.1, zones=[Z1], unavailable=[(ON_DEMAND, Z1)]),
    instance_type("old", 4, price=0.5, zones=[Z1]),
))  # fmt: skip
PRICES = [
    Scenario(
        "small pod on a expensive node",
        nodes=[node("a", "huge", pods=1)],
        removes="a",
        method="Single",
        launches="tiny",
        check=lambda p: listed(p) == ("tiny", "small", "medium", "large"),
    ),
    Scenario(
        "nothing is cheaper",
        nodes=[node("a", "tiny", pods=1)],
        reasons={"a": "NotCheaper"},
        messages={"a": "tiny in test-zone-1, costs 0.05 $/h, not less than today's 0.05"},
    ),
    Scenario(
        "the same price is not cheaper",
        nodes=on(types(("same", 0.9, 0.9), ("old", 0.9, 0.9))),
        catalog=types(("same", 0.9, 0.9), ("old", 0.9, 0.9)),
        reasons={"a": "NotCheaper"},
    ),
    Scenario(
        "almost full: replaced by its like is no gain", nodes=[node("a", "medium", pods=7)], reasons={"a": "NotCheaper"}
    ),
    Scenario("on-demand only, and only spot would be cheaper", nodes=on(TWO), catalog=TWO, reasons={"a": "NotCheaper"}),
    Scenario(
        "spot allowed, and spot is cheaper",
        nodes=on(TWO),
        catalog=TWO,
        pools=[MIXED],
        removes="a",
        launches="cheap",
        check=lambda p: p.steps[0].command.replacements[0].capacity_type == SPOT,
    ),
    Scenario(
        "one expensive zone disqualifies a type",
        free_choice=True,
        nodes=on(ZONAL),
        catalog=ZONAL,
        messages={"a": "0.2 and up to 0.9"},
    ),
    Scenario(
        "the expensive zone is not for this pool",
        nodes=on(ZONAL),
        catalog=ZONAL,
        pools=[pool_of(requirements=[(ZONE, "In", Z1)])],
        removes="a",
        launches="cheap",
    ),
    Scenario("a type of unknown price is not cheaper", nodes=on(UNKNOWN), catalog=UNKNOWN),
    Scenario("a type that is sold out is no alternative", nodes=on(SOLD_OUT), catalog=SOLD_OUT),
    Scenario(
        "a node of unknown price is never replaced",
        nodes=[node("a", "huge", pods=1, zone="elsewhere")],
        reasons={"a": "PriceUnknown"},
    ),
    Scenario(
        "a node of unknown price may be deleted",
        nodes=[node("a", "tiny", pods=1, zone="elsewhere"), node("b", "medium", pods=6)],
        removes="a",
        launches=NOTHING,
    ),
    Scenario(
        "the price of an offering that is sold out still counts for the node",
        nodes=[
            node(
                "a",
                "old",
                pods=[{"cpu": 1}],
                catalog=Catalog(
                    (
                        instance_type("old", 4, price=0.5, zones=[Z1], unavailable=[(ON_DEMAND, Z1)]),
                        instance_type("new", 2, price=0.1),
                    )
                ),
            )
        ],
        catalog=Catalog(
            (
                instance_type("old", 4, price=0.5, zones=[Z1], unavailable=[(ON_DEMAND, Z1)]),
                instance_type("new", 2, price=0.1),
            )
        ),
        removes="a",
        launches="new",
    ),
    Scenario(
        "pods that would need two nodes",
        nodes=[node("a", "large", pods=[{"cpu": 3}, {"cpu": 3}])],
        pools=[pool_of(), pool_of("m", weight=9, requirements=[(INSTANCE_TYPE, "In", "medium")])],
        reasons={"a": "NeedsSeveralNodes"},
    ),
    Scenario(
        "limits: the share of the node that goes is given back",
        nodes=[node("a", "large", pods=1)],
        pools=[pool_of(limits={"cpu": 8})],
        removes="a",
        launches="tiny",
    ),
    Scenario(
        "limits: of two nodes only one share comes back",
        nodes=[node("a", "large", pods=[{"cpu": 3}]), node("b", "large", pods=[{"cpu": 5}])],
        pools=[pool_of(limits={"cpu": 12})],
        removes="a",
        launches="medium",
    ),
    Scenario(
        "limits: no room for a replacement",
        nodes=[node("a", "large", pods=[{"cpu": 3}]), node("b", "large", pods=[{"cpu": 5}])],
        pools=[pool_of(limits={"cpu": 11})],
        reasons={"a": "PodsWouldNotFit"},
    ),
    Scenario(
        "limit of nodes",
        nodes=[node("a", "large", pods=[{"cpu": 3}])],
        pools=[pool_of(limits={"nodes": 1})],
        removes="a",
        launches="medium",
    ),
    Scenario(
        "daemons take room on the new node, too",
        nodes=[node("a", "huge", pods=[{"cpu": "700m"}])],
        daemons=[daemon_set(cpu="500m")],
        removes="a",
        launches="small",
    ),
    Scenario(
        "daemons that do not fit a type rule it out",
        nodes=[node("a", "huge", pods=1)],
        daemons=[daemon_set(cpu="2500m")],
        removes="a",
        launches="medium",
    ),
    Scenario(
        "number of pods",
        nodes=[node("a", "huge", pods=[{"cpu": "1m", "memory": "1Mi"}] * 12)],
        catalog=Catalog(
            tuple(
                instance_type(n, c, price=c, pods=c * 4, zones=[Z1])
                for n, c in (("small", 2), ("medium", 4), ("huge", 64))
            )
        ),
        removes="a",
        launches="medium",
    ),
    Scenario(
        "a reserved node costs nothing, so nothing is cheaper",
        nodes=[node("a", "huge", pods=1, capacity_type=RESERVED)],
        pools=[pool_of("default", RESERVED, ON_DEMAND)],
        reasons={"a": "NotCheaper"},
    ),
    Scenario(
        "with a fee a smaller reserved node is no gain either",
        nodes=[node("a", "huge", pods=1, capacity_type=RESERVED)],
        pools=[pool_of("default", RESERVED, ON_DEMAND)],
        catalog=Catalog(CATALOG.types, node_fee=0.03),
    ),
]

SPOTS = [
    Scenario(
        "gate off",
        nodes=on(ladder(20), capacity_type=SPOT),
        pools=[MIXED],
        catalog=ladder(20),
        reasons={"a": "SpotToSpotDisabled"},
    ),
    Scenario(
        "20 cheaper types",
        nodes=on(ladder(20), capacity_type=SPOT),
        pools=[MIXED],
        catalog=ladder(20),
        settings=GATE,
        removes="a",
        launches="t00",
        check=lambda p: len(listed(p)) == 15,
    ),
    Scenario(
        "15 cheaper types",
        nodes=on(ladder(15), capacity_type=SPOT),
        pools=[MIXED],
        catalog=ladder(15),
        settings=GATE,
        removes="a",
        check=lambda p: len(listed(p)) == 15,
    ),
    Scenario(
        "14 cheaper types",
        nodes=on(ladder(14), capacity_type=SPOT),
        pools=[MIXED],
        catalog=ladder(14),
        settings=GATE,
        reasons={"a": "SpotToSpotTooFewTypes"},
        messages={"a": "only 14 spot types"},
    ),
    Scenario(
        "already among the 15 cheapest",
        nodes=on(ladder(20), capacity_type=SPOT, type_name="t07"),
        pools=[MIXED],
        catalog=ladder(20),
        settings=GATE,
        messages={"a": "only 7 spot types"},
    ),
    Scenario(
        "the very cheapest",
        nodes=on(ladder(20), capacity_type=SPOT, type_name="t00"),
        pools=[MIXED],
        catalog=ladder(20),
        settings=GATE,
        reasons={"a": "NotCheaper"},
    ),
    Scenario(
        "another floor",
        nodes=on(ladder(20), capacity_type=SPOT, type_name="t07"),
        pools=[MIXED],
        catalog=ladder(20),
        settings=replace(REFERENCE, spot_to_spot=True, spot_floor=5),
        removes="a",
        check=lambda p: len(listed(p)) == 5,
    ),
    Scenario(
        "minValues 16: 16 types",
        nodes=on(ladder(20), capacity_type=SPOT),
        pools=[pool_of("default", SPOT, requirements=[at_least(16)])],
        catalog=ladder(20),
        settings=GATE,
        removes="a",
        check=lambda p: len(listed(p)) == 16,
    ),
    Scenario(
        "minValues 10: 15 types",
        nodes=on(ladder(20), capacity_type=SPOT),
        pools=[pool_of("default", SPOT, requirements=[at_least(10)])],
        catalog=ladder(20),
        settings=GATE,
        removes="a",
        check=lambda p: len(listed(p)) == 15,
    ),
    Scenario(
        "minValues 21: too few are cheaper",
        nodes=on(ladder(20), capacity_type=SPOT),
        pools=[pool_of("default", SPOT, requirements=[at_least(21)])],
        catalog=ladder(20),
        settings=GATE,
        reasons={"a": "MinValuesBroken"},
    ),
    Scenario(
        "spot can always be deleted",
        nodes=[node("a", "tiny", pods=1, capacity_type=SPOT), node("b", pods=6, annotations=KEEP)],
        pools=[MIXED],
        removes="a",
        launches=NOTHING,
    ),
    Scenario(
        "spot node, on-demand pool: on-demand must be cheaper",
        nodes=on(ladder(3), capacity_type=SPOT, zone=Z1),
        catalog=ladder(3),
        pools=(pool_of("default", SPOT, limits={"cpu": 0}), pool_of("od")),
        removes="a",
        method="Single",
    ),
    Scenario(
        "spot node, more expensive on-demand",
        nodes=on(types(("old", 0.9, 0.1)), capacity_type=SPOT),
        catalog=types(("old", 0.9, 0.1)),
        pools=(pool_of("default", SPOT, limits={"cpu": 0}), pool_of("od")),
        reasons={"a": "NotCheaper"},
    ),
    Scenario(
        "spot node without the gate, but the new node must be on-demand",
        nodes=[node("a", "huge", pods=1, capacity_type=SPOT)],
        pools=(pool_of("default", SPOT, limits={"cpu": 0}), pool_of("od")),
        removes="a",
        launches="tiny",
    ),
    Scenario(
        "on-demand to spot needs no gate",
        nodes=on(ladder(3)),
        catalog=ladder(3),
        pools=[MIXED],
        removes="a",
        launches="t00",
        check=lambda p: p.steps[0].command.replacements[0].capacity_type == SPOT,
    ),
    Scenario(
        "on-demand to spot lists only types sold as spot",
        free_choice=True,
        nodes=on(
            Catalog(
                (
                    instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]),
                    instance_type("y", 4, price=0.3, spot_price=0.2),
                    instance_type("old", 4, price=0.9),
                )
            )
        ),
        pools=[MIXED],
        catalog=Catalog(
            (
                instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]),
                instance_type("y", 4, price=0.3, spot_price=0.2),
                instance_type("old", 4, price=0.9),
            )
        ),
        removes="a",
        check=lambda p: set(listed(p)) == {"y"},
    ),
    Scenario(
        "no spot for sale: on-demand it is",
        nodes=on(
            Catalog((instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]), instance_type("old", 4, price=0.9)))
        ),
        pools=[MIXED],
        catalog=Catalog(
            (instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]), instance_type("old", 4, price=0.9))
        ),
        removes="a",
        check=lambda p: p.steps[0].command.replacements[0].capacity_type in (ON_DEMAND, SPOT),
    ),
    Scenario(
        "minValues that spot types alone would not keep",
        nodes=on(
            Catalog(
                (
                    instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]),
                    instance_type("y", 4, price=0.3, spot_price=0.2),
                    instance_type("old", 4, price=0.9, capacity_types=[ON_DEMAND]),
                )
            )
        ),
        pools=[pool_of("default", SPOT, ON_DEMAND, requirements=[at_least(2)])],
        catalog=Catalog(
            (
                instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]),
                instance_type("y", 4, price=0.3, spot_price=0.2),
                instance_type("old", 4, price=0.9, capacity_types=[ON_DEMAND]),
            )
        ),
        removes="a",
        launches="x",
        check=lambda p: p.steps[0].command.replacements[0].capacity_type == ON_DEMAND,
    ),
]

MINIMUMS = [
    Scenario(
        "enough cheaper types",
        nodes=on(ladder(5)),
        pools=[pool_of(requirements=[at_least(5)])],
        catalog=ladder(5),
        removes="a",
    ),
    Scenario(
        "too few cheaper types",
        nodes=on(ladder(5)),
        pools=[pool_of(requirements=[at_least(6)])],
        catalog=ladder(5),
        reasons={"a": "MinValuesBroken"},
    ),
    Scenario(
        "too few, and best effort: still refused",
        nodes=on(ladder(5)),
        pools=[pool_of(requirements=[at_least(6)])],
        catalog=ladder(5),
        options=Options(min_values=MinValues.BEST_EFFORT),
        reasons={"a": "MinValuesBroken"},
    ),
    Scenario(
        "a minimum that no choice could keep is lowered with best effort",
        nodes=on(ladder(5)),
        pools=[pool_of(requirements=[at_least(50)])],
        catalog=ladder(5),
        options=Options(min_values=MinValues.BEST_EFFORT),
        reasons={"a": "MinValuesBroken"},
    ),
    Scenario(
        "two zones",
        nodes=on(ladder(5)),
        pools=[pool_of(requirements=[at_least(2, ZONE)])],
        catalog=ladder(5),
        removes="a",
    ),
    Scenario(
        "strict, and the pool cannot keep it at all",
        nodes=on(ladder(5)),
        pools=[pool_of(requirements=[at_least(50)])],
        catalog=ladder(5),
        reasons={"a": "PodsWouldNotFit"},
    ),
]

APP = {"app": "web"}
SPREAD = {"labels": APP, "spread": [spread(APP)], "cpu": 1}
PLACES = [
    Scenario(
        "spread pods: the replacement stays in its zone",
        nodes=[
            node("a", "small", pods=[{**SPREAD, "cpu": "1600m"}]),
            node("b", "huge", pods=[SPREAD], zone=Z2),
            node("c", "small", pods=[{**SPREAD, "cpu": "1600m"}], zone=Z3),
        ],
        removes="b",
        launches="small",
        check=lambda p: p.steps[0].command.replacements[0].zones == (Z2,),
    ),
    Scenario(
        "a volume keeps the replacement in its zone",
        nodes=[node("a", "huge", pods=[{"claims": ["data"]}], zone=Z3)],
        other_objects={
            "persistent_volumes": (pv("disk", zones=[Z3]),),
            "persistent_volume_claims": (pvc("data", volume="disk"),),
        },
        removes="a",
        check=lambda p: p.steps[0].command.replacements[0].zones == (Z3,),
    ),
    Scenario(
        "a node selector keeps the type",
        nodes=[node("a", "huge", pods=[{"selector": {INSTANCE_TYPE: "huge"}}])],
        reasons={"a": "NotCheaper"},
    ),
    Scenario(
        "a preference for the most expensive type is respected",
        nodes=[node("a", "huge", pods=[{"prefer": [(1, node_term((INSTANCE_TYPE, "In", "huge")))]}])],
        reasons={"a": "NotCheaper"},
    ),
    Scenario(
        "a preference for the most expensive type is ignored on request",
        nodes=[node("a", "huge", pods=[{"prefer": [(1, node_term((INSTANCE_TYPE, "In", "huge")))]}])],
        options=Options(preferences=Preferences.IGNORE),
        removes="a",
        launches="tiny",
    ),
    Scenario(
        "a huge pending pod needs the huge node",
        nodes=[node("a", "huge", pods=1)],
        pods=[pod("x-0", cpu=62, pending=True)],
        reasons={"a": "NotCheaper"},
    ),
    Scenario(
        "a huge pending pod, and huge nodes are sold out: the node it fits on stays",
        nodes=[node("a", "old", pods=[{"cpu": 1}], catalog=SOLD_OUT)],
        catalog=Catalog((*SOLD_OUT.types[1:], instance_type("mini", 2, price=0.1))),
        pods=[pod("x-0", cpu=2, pending=True)],
        reasons={"a": "NotCheaper"},
    ),
    Scenario(
        "a deleting node's pod that fits here keeps its room",
        nodes=[node("a", "large", pods=[{"cpu": 4}]), node("b", pods=[{"cpu": 3}], claim={"deleted": ago(minutes=1)})],
        reasons={"a": "NotCheaper"},
    ),
]


@either_search(PRICES)
def test_a_node_is_replaced_by_a_cheaper_one_only(scenario: Scenario) -> None:
    scenario.verify()


@either_search(SPOTS)
def test_spot_nodes_are_replaced_when_there_is_enough_choice(scenario: Scenario) -> None:
    scenario.verify()


@either_search(MINIMUMS)
def test_a_pool_keeps_its_minimum_choice(scenario: Scenario) -> None:
    scenario.verify()


@either_search(PLACES)
def test_a_replacement_is_where_and_what_its_pods_need(scenario: Scenario) -> None:
    scenario.verify()


def reserved(units: int) -> Catalog:
    """A type that can be had on demand, and of which some machines are paid for."""
    from karpool.catalog.instance_types import InstanceType, Offering
    from karpool.model.requirements import Requirements, one_of

    made = instance_type("paid", 4, price=0.4, zones=[Z1], capacity_types=[ON_DEMAND])
    held = Requirements.of_labels({CAPACITY_TYPE: RESERVED, ZONE: Z1, RESERVATION_ID: "r1"})
    offering = Offering(held, 0.0, reservation_id="r1", reservation_capacity=units)
    wanted = Requirements((
        *made.requirements.without(CAPACITY_TYPE).items(), (CAPACITY_TYPE, one_of(ON_DEMAND, RESERVED))
    ))  # fmt: skip
    return Catalog((
        InstanceType("paid", wanted, made.capacity, made.overhead, (*made.offerings, offering)),
        instance_type("old", 4, price=0.3, spot_price=0.1, zones=[Z1]),
    ))  # fmt: skip


@pytest.mark.parametrize("kind", [SPOT, ON_DEMAND])
def test_any_node_is_replaced_by_one_that_is_paid_for(kind: str) -> None:
    pool = pool_of("default", SPOT, ON_DEMAND, RESERVED)
    scenario = Scenario(
        "reserved",
        nodes=on(reserved(1), capacity_type=kind),
        pools=[pool],
        catalog=reserved(1),
        removes="a",
        launches="paid",
    )
    scenario.verify()
    new = scenario.plan().steps[0].command.replacements[0]
    assert (new.capacity_type, new.price) == (RESERVED, 0.0)


def test_a_later_step_does_not_count_on_a_reservation_that_an_earlier_one_used() -> None:
    pool = pool_of("default", ON_DEMAND, RESERVED)
    nodes = [node(name, "old", pods=[{"cpu": 3}], catalog=reserved(1)) for name in "ab"]
    made = Scenario("one unit", nodes=nodes, pools=[pool], catalog=reserved(1)).plan(None)
    assert [step.command.nodes for step in made.steps] == [("a",)]
    assert made.after.price == pytest.approx(0.3)


def test_a_reservation_that_is_used_up_helps_nobody() -> None:
    pool = pool_of("default", ON_DEMAND, RESERVED)
    Scenario("used up", nodes=on(reserved(0)), pools=[pool], catalog=reserved(0), reasons={"a": "NotCheaper"}).verify()


def test_the_price_of_a_replacement_is_that_of_its_first_type_in_its_zones() -> None:
    new = Scenario("price", nodes=[node("a", "huge", pods=1)], removes="a").plan().steps[0].command.replacements[0]
    assert new.price == pytest.approx(0.05)
    assert new.zones == (Z1, Z2, Z3)
    assert new.capacity_type == ON_DEMAND
    assert new.pool == "default"
