"""One cheaper node in the place of another: prices, capacity types, minimum choice, and where pods must be."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.disruption.scenes import CATALOG, MIXED, Scene, ago, box, names, pool_of
from tests.factories import Z1, Z2, Z3, daemon_set, instance_type, node_term, pod, pv, pvc, spread

from karpool.catalog.instance_types import Catalog
from karpool.cluster.constraints import Preferences
from karpool.disruption.plan import Plan
from karpool.disruption.settings import DisruptionSettings
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
from karpool.packing.question import MinValues, Options

GATE = DisruptionSettings(spot_to_spot=True)
KEEP = {DO_NOT_DISRUPT: "true"}


def at_least(count: int, key: str = INSTANCE_TYPE) -> PoolRequirement:
    return PoolRequirement(key=key, operator="Exists", min_values=count)


def types(*made: tuple[str, float, float], **rest: Any) -> Catalog:
    """Types of four CPUs by name, on-demand price and spot price."""
    return Catalog(tuple(instance_type(name, 4, price=p, spot_price=s, zones=[Z1, Z2], **rest) for name, p, s in made))


def ladder(count: int) -> Catalog:
    """Types t00, t01, … of four CPUs, each a cent dearer than the one before; the last is called old."""
    names = [f"t{number:02}" for number in range(count)]
    return types(*((name, 0.1 + 0.01 * at, 0.05 + 0.01 * at) for at, name in enumerate(names)), ("old", 0.9, 0.8))


def on(catalog: Catalog, kind: str = ON_DEMAND, name: str = "old", **rest: Any) -> list[Any]:
    """One node of a type with one pod that fills most of it."""
    return [box("a", name, [{"cpu": 3}], catalog=catalog, kind=kind, **rest)]


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
    Scene("small pod on a dear node", [box("a", "huge", 1)], "a", by="Single", to="tiny",
          check=lambda p: listed(p) == ("tiny", "small", "medium", "large")),
    Scene("nothing is cheaper", [box("a", "tiny", 1)], why={"a": "NotCheaper"},
          said={"a": "tiny in test-zone-1, costs 0.05 $/h, not less than today's 0.05"}),
    Scene("the same price is not cheaper", on(types(("same", 0.9, 0.9), ("old", 0.9, 0.9))),
          catalog=types(("same", 0.9, 0.9), ("old", 0.9, 0.9)),
          why={"a": "NotCheaper"}),
    Scene("almost full: replaced by its like is no gain", [box("a", "medium", 7)], why={"a": "NotCheaper"}),
    Scene("on-demand only, and only spot would be cheaper", on(TWO), catalog=TWO, why={"a": "NotCheaper"}),
    Scene("spot allowed, and spot is cheaper", on(TWO), "a", catalog=TWO, pools=[MIXED], to="cheap",
          check=lambda p: p.steps[0].command.replacements[0].capacity_type == SPOT),
    Scene("one dear zone disqualifies a type", on(ZONAL), catalog=ZONAL, said={"a": "0.2 and up to 0.9"}),
    Scene("the dear zone is not for this pool", on(ZONAL), "a", catalog=ZONAL, to="cheap",
          pools=[pool_of(requirements=[(ZONE, "In", Z1)])]),
    Scene("a type of unknown price is not cheaper", on(UNKNOWN), catalog=UNKNOWN),
    Scene("a type that is sold out is no alternative", on(SOLD_OUT), catalog=SOLD_OUT),
    Scene("a node of unknown price is never replaced", [box("a", "huge", 1, zone="elsewhere")],
          why={"a": "PriceUnknown"}),
    Scene("a node of unknown price may be deleted", [box("a", "tiny", 1, zone="elsewhere"), box("b", "medium", 6)],
          "a", to=""),
    Scene("the price of an offering that is sold out still counts for the node",
          [box("a", "old", [{"cpu": 1}], catalog=Catalog((
          instance_type("old", 4, price=0.5, zones=[Z1], unavailable=[(ON_DEMAND, Z1)]),
          instance_type("new", 2, price=0.1))))], "a",
          catalog=Catalog((instance_type("old", 4, price=0.5, zones=[Z1], unavailable=[(ON_DEMAND, Z1)]),
                           instance_type("new", 2, price=0.1))), to="new"),
    Scene("pods that would need two nodes", [box("a", "large", [{"cpu": 3}, {"cpu": 3}])],
          why={"a": "NeedsSeveralNodes"},
          pools=[pool_of(), pool_of("m", weight=9, requirements=[(INSTANCE_TYPE, "In", "medium")])]),
    Scene("limits: the share of the node that goes is given back", [box("a", "large", 1)], "a", to="tiny",
          pools=[pool_of(limits={"cpu": 8})]),
    Scene("limits: of two nodes only one share comes back",
          [box("a", "large", [{"cpu": 3}]), box("b", "large", [{"cpu": 5}])], "a",
          to="medium", pools=[pool_of(limits={"cpu": 12})]),
    Scene("limits: no room for a replacement", [box("a", "large", [{"cpu": 3}]), box("b", "large", [{"cpu": 5}])],
          pools=[pool_of(limits={"cpu": 11})], why={"a": "PodsWouldNotFit"}),
    Scene("limit of nodes", [box("a", "large", [{"cpu": 3}])], "a", to="medium", pools=[pool_of(limits={"nodes": 1})]),
    Scene("daemons take room on the new node, too", [box("a", "huge", [{"cpu": "700m"}])], "a", to="small",
          daemons=[daemon_set(cpu="500m")]),
    Scene("daemons that do not fit a type rule it out", [box("a", "huge", 1)], "a", to="medium",
          daemons=[daemon_set(cpu="2500m")]),
    Scene("number of pods", [box("a", "huge", [{"cpu": "1m", "memory": "1Mi"}] * 12)], "a", to="medium",
          catalog=Catalog(tuple(
          instance_type(n, c, price=c, pods=c * 4, zones=[Z1]) for n,
          c in (("small", 2), ("medium", 4), ("huge", 64))))),
    Scene("a reserved node costs nothing, so nothing is cheaper", [box("a", "huge", 1, kind=RESERVED)],
          pools=[pool_of("default", RESERVED, ON_DEMAND)], why={"a": "NotCheaper"}),
    Scene("with a fee a smaller reserved node is no gain either", [box("a", "huge", 1, kind=RESERVED)],
          pools=[pool_of("default", RESERVED, ON_DEMAND)], catalog=Catalog(CATALOG.types, node_fee=0.03)),
]  # fmt: skip

SPOTS = [
    Scene("gate off", on(ladder(20), SPOT), pools=[MIXED], catalog=ladder(20), why={"a": "SpotToSpotDisabled"}),
    Scene("20 cheaper types", on(ladder(20), SPOT), "a", pools=[MIXED], catalog=ladder(20), settings=GATE, to="t00",
          check=lambda p: len(listed(p)) == 15),
    Scene("15 cheaper types", on(ladder(15), SPOT), "a", pools=[MIXED], catalog=ladder(15), settings=GATE,
          check=lambda p: len(listed(p)) == 15),
    Scene("14 cheaper types", on(ladder(14), SPOT), pools=[MIXED], catalog=ladder(14), settings=GATE,
          why={"a": "SpotToSpotTooFewTypes"}, said={"a": "only 14 spot types"}),
    Scene("already among the 15 cheapest", on(ladder(20), SPOT, "t07"), pools=[MIXED], catalog=ladder(20),
          settings=GATE,
          said={"a": "only 7 spot types"}),
    Scene("the very cheapest", on(ladder(20), SPOT, "t00"), pools=[MIXED], catalog=ladder(20), settings=GATE,
          why={"a": "NotCheaper"}),
    Scene("another floor", on(ladder(20), SPOT, "t07"), "a", pools=[MIXED], catalog=ladder(20),
          settings=DisruptionSettings(spot_to_spot=True, spot_floor=5), check=lambda p: len(listed(p)) == 5),
    Scene("minValues 16: 16 types", on(ladder(20), SPOT), "a",
          pools=[pool_of("default", SPOT, requirements=[at_least(16)])],
          catalog=ladder(20), settings=GATE, check=lambda p: len(listed(p)) == 16),
    Scene("minValues 10: 15 types", on(ladder(20), SPOT), "a",
          pools=[pool_of("default", SPOT, requirements=[at_least(10)])],
          catalog=ladder(20), settings=GATE, check=lambda p: len(listed(p)) == 15),
    Scene("minValues 21: too few are cheaper", on(ladder(20), SPOT),
          pools=[pool_of("default", SPOT, requirements=[at_least(21)])],
          catalog=ladder(20), settings=GATE, why={"a": "MinValuesBroken"}),
    Scene("spot can always be deleted", [box("a", "tiny", 1, kind=SPOT), box("b", pods=6, annotations=KEEP)], "a",
          pools=[MIXED],
          to=""),
    Scene("spot node, on-demand pool: on-demand must be cheaper", on(ladder(3), SPOT, zone=Z1), "a", catalog=ladder(3),
          by="Single",
          pools=(pool_of("default", SPOT, limits={"cpu": 0}), pool_of("od"))),
    Scene("spot node, dearer on-demand", on(types(("old", 0.9, 0.1)), SPOT), catalog=types(("old", 0.9, 0.1)),
          pools=(pool_of("default", SPOT, limits={"cpu": 0}), pool_of("od")), why={"a": "NotCheaper"}),
    Scene("spot node without the gate, but the new node must be on-demand",
          [box("a", "huge", 1, kind=SPOT)], "a", to="tiny",
          pools=(pool_of("default", SPOT, limits={"cpu": 0}), pool_of("od"))),
    Scene("on-demand to spot needs no gate", on(ladder(3)), "a", catalog=ladder(3), pools=[MIXED], to="t00",
          check=lambda p: p.steps[0].command.replacements[0].capacity_type == SPOT),
    Scene("on-demand to spot lists only types sold as spot", on(Catalog((
          instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]),
          instance_type("y", 4, price=0.3, spot_price=0.2),
          instance_type("old", 4, price=0.9)))), "a", pools=[MIXED], catalog=Catalog((
          instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]),
          instance_type("y", 4, price=0.3, spot_price=0.2),
          instance_type("old", 4, price=0.9))), check=lambda p: set(listed(p)) == {"y"}),
    Scene("no spot for sale: on-demand it is", on(Catalog((
          instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]), instance_type("old", 4, price=0.9)))), "a",
          pools=[MIXED],
          catalog=Catalog((instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]),
          instance_type("old", 4, price=0.9))),
          check=lambda p: p.steps[0].command.replacements[0].capacity_type in (ON_DEMAND, SPOT)),
    Scene("minValues that spot types alone would not keep", on(Catalog((
          instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]),
          instance_type("y", 4, price=0.3, spot_price=0.2),
          instance_type("old", 4, price=0.9, capacity_types=[ON_DEMAND])))), "a", to="x",
          pools=[pool_of("default", SPOT, ON_DEMAND, requirements=[at_least(2)])], catalog=Catalog((
          instance_type("x", 4, price=0.1, capacity_types=[ON_DEMAND]),
          instance_type("y", 4, price=0.3, spot_price=0.2),
          instance_type("old", 4, price=0.9, capacity_types=[ON_DEMAND]))),
          check=lambda p: p.steps[0].command.replacements[0].capacity_type == ON_DEMAND),
]  # fmt: skip

MINIMUMS = [
    Scene("enough cheaper types", on(ladder(5)), "a", pools=[pool_of(requirements=[at_least(5)])], catalog=ladder(5)),
    Scene("too few cheaper types", on(ladder(5)), pools=[pool_of(requirements=[at_least(6)])], catalog=ladder(5),
          why={"a": "MinValuesBroken"}),
    Scene("too few, and best effort: still refused", on(ladder(5)), pools=[pool_of(requirements=[at_least(6)])],
          catalog=ladder(5),
          options=Options(min_values=MinValues.BEST_EFFORT), why={"a": "MinValuesBroken"}),
    Scene("a minimum that no choice could keep is lowered with best effort", on(ladder(5)),
          pools=[pool_of(requirements=[at_least(50)])],
          catalog=ladder(5), options=Options(min_values=MinValues.BEST_EFFORT), why={"a": "MinValuesBroken"}),
    Scene("two zones", on(ladder(5)), "a", pools=[pool_of(requirements=[at_least(2, ZONE)])], catalog=ladder(5)),
    Scene("strict, and the pool cannot keep it at all", on(ladder(5)), pools=[pool_of(requirements=[at_least(50)])],
          catalog=ladder(5),
          why={"a": "PodsWouldNotFit"}),
]  # fmt: skip

APP = {"app": "web"}
SPREAD = {"labels": APP, "spread": [spread(APP)], "cpu": 1}
PLACES = [
    Scene("spread pods: the replacement stays in its zone", [
          box("a", "small", [{**SPREAD, "cpu": "1600m"}]), box("b", "huge", [SPREAD], zone=Z2),
          box("c", "small", [{**SPREAD, "cpu": "1600m"}], zone=Z3)],
          "b", to="small", check=lambda p: p.steps[0].command.replacements[0].zones == (Z2,)),
    Scene("a volume keeps the replacement in its zone", [box("a", "huge", [{"claims": ["data"]}], zone=Z3)], "a",
          others={"persistent_volumes": (pv("disk", zones=[Z3]),),
          "persistent_volume_claims": (pvc("data", volume="disk"),)},
          check=lambda p: p.steps[0].command.replacements[0].zones == (Z3,)),
    Scene("a node selector keeps the type", [box("a", "huge", [{"selector": {INSTANCE_TYPE: "huge"}}])],
          why={"a": "NotCheaper"}),
    Scene("a wish for the dearest type is respected",
          [box("a", "huge", [{"prefer": [(1, node_term((INSTANCE_TYPE, "In", "huge")))]}])],
          why={"a": "NotCheaper"}),
    Scene("a wish for the dearest type is ignored on request",
          [box("a", "huge", [{"prefer": [(1, node_term((INSTANCE_TYPE, "In", "huge")))]}])], "a", to="tiny",
          options=Options(preferences=Preferences.IGNORE)),
    Scene("a huge pending pod needs the huge node", [box("a", "huge", 1)], pods=[pod("x-0", cpu=62, pending=True)],
          why={"a": "NotCheaper"}),
    Scene("a huge pending pod, and huge nodes are sold out: the node it fits on stays",
          [box("a", "old", [{"cpu": 1}], catalog=SOLD_OUT)],
          catalog=Catalog((*SOLD_OUT.types[1:], instance_type("mini", 2, price=0.1))),
          pods=[pod("x-0", cpu=2, pending=True)],
          why={"a": "NotCheaper"}),
    Scene("a deleting node's pod that fits here keeps its room", [
          box("a", "large", [{"cpu": 4}]), box("b", pods=[{"cpu": 3}], claim={"deleted": ago(minutes=1)})],
          why={"a": "NotCheaper"}),
]  # fmt: skip


@pytest.mark.parametrize("scene", PRICES, ids=names)
def test_a_node_is_replaced_by_a_cheaper_one_only(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", SPOTS, ids=names)
def test_spot_nodes_are_replaced_when_there_is_enough_choice(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", MINIMUMS, ids=names)
def test_a_pool_keeps_its_minimum_choice(scene: Scene) -> None:
    scene.verify()


@pytest.mark.parametrize("scene", PLACES, ids=names)
def test_a_replacement_is_where_and_what_its_pods_need(scene: Scene) -> None:
    scene.verify()


def reserved(units: int) -> Catalog:
    """A type that can be had on demand, and of which some machines are paid for."""
    from karpool.catalog.instance_types import InstanceType, Offering
    from karpool.model.requirements import Requirements, one_of

    made = instance_type("paid", 4, price=0.4, zones=[Z1], capacity_types=[ON_DEMAND])
    held = Requirements.of_labels({CAPACITY_TYPE: RESERVED, ZONE: Z1, RESERVATION_ID: "r1"})
    offering = Offering(held, 0.0, available=units > 0, reservation_id="r1", reservation_capacity=units)
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
    scene = Scene("reserved", on(reserved(1), kind), "a", pools=[pool], catalog=reserved(1), to="paid")
    scene.verify()
    new = scene.plan().steps[0].command.replacements[0]
    assert (new.capacity_type, new.price) == (RESERVED, 0.0)


def test_a_later_step_does_not_count_on_a_reservation_that_an_earlier_one_used() -> None:
    pool = pool_of("default", ON_DEMAND, RESERVED)
    boxes = [box(name, "old", [{"cpu": 3}], catalog=reserved(1)) for name in "ab"]
    made = Scene("one unit", boxes, pools=[pool], catalog=reserved(1)).plan(None)
    assert [step.command.nodes for step in made.steps] == [("a",)]
    assert made.after.price == pytest.approx(0.3)


def test_a_reservation_that_is_used_up_helps_nobody() -> None:
    pool = pool_of("default", ON_DEMAND, RESERVED)
    Scene("used up", on(reserved(0)), pools=[pool], catalog=reserved(0), why={"a": "NotCheaper"}).verify()


def test_the_price_of_a_replacement_is_that_of_its_first_type_in_its_zones() -> None:
    new = Scene("price", [box("a", "huge", 1)], "a").plan().steps[0].command.replacements[0]
    assert new.price == pytest.approx(0.05)
    assert new.zones == (Z1, Z2, Z3)
    assert new.capacity_type == ON_DEMAND
    assert new.pool == "default"
