"""What a node costs, and what a launch would cost."""

import math
from dataclasses import replace

import pytest
from tests.factories import instance_type

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.catalog.pricing import by_price, cheapest_launch, cheapest_launch_price, node_price
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from karpool.model.requirements import NO_REQUIREMENTS, Requirements, one_of, requirement
from karpool.packing.type_table import TypeTable

OFFERS = ((ON_DEMAND, "z1", 1.0), (ON_DEMAND, "z2", 1.2), (SPOT, "z1", 0.3), (SPOT, "z2", 0.5))
MACHINE = instance_type("m", offers=OFFERS)


def worst_launch_price(entry: InstanceType, wanted: Requirements, catalog: Catalog) -> float:
    return float(TypeTable(catalog, reserved=True).worst(wanted)[catalog.types.index(entry)])


def labels(zone: str = "z1", kind: str | None = ON_DEMAND, name: str = "m", **rest: str) -> dict[str, str]:
    named = {INSTANCE_TYPE: name, ZONE: zone} | ({} if kind is None else {CAPACITY_TYPE: kind})
    return named | {key.replace("__", "/"): value for key, value in rest.items()}


def wanting(**values: str) -> Requirements:
    keys = {"zone": ZONE, "kind": CAPACITY_TYPE}
    return Requirements((keys[key], one_of(*value.split())) for key, value in values.items())


@pytest.mark.parametrize(
    ("of", "price"),
    [
        (labels(), 1.0),
        (labels("z2"), 1.2),
        (labels("z2", SPOT), 0.5),
        (labels("z9"), None),
        (labels(kind="other"), None),
        (labels(name="unknown"), None),
        ({}, None),
        (labels(kind=RESERVED), 0.0),
        (labels(kind=RESERVED, name="unknown"), 0.0),
        (labels(kind=None), 1.0),
        (labels(kind=None) | {"eks.amazonaws.com/capacityType": "SPOT"}, 0.3),
        (labels(kind=None) | {"cloud.google.com/gke-spot": "true"}, 0.3),
        ({"beta.kubernetes.io/instance-type": "m", "failure-domain.beta.kubernetes.io/zone": "z2"}, 1.2),
        (labels("z9") | {"eks-node-viewer/instance-price": "0.7"}, 0.7),
        (labels() | {"eks-node-viewer/instance-price": "0.7"}, 1.0),
    ],
)
def test_a_node_costs_what_its_type_costs_in_its_place(of: dict[str, str], price: float | None) -> None:
    assert node_price(Catalog((MACHINE,)), of) == price
    with_fee = node_price(Catalog((MACHINE,), node_fee=0.5), of)
    assert with_fee == (None if price is None else price + 0.5)


def test_a_node_is_priced_by_an_offering_that_is_no_longer_available() -> None:
    gone = instance_type("m", offers=OFFERS, unavailable=[(ON_DEMAND, "z1")])
    assert node_price(Catalog((gone,)), labels()) == 1.0


@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        (NO_REQUIREMENTS, (SPOT, "z1")),
        (wanting(zone="z2"), (SPOT, "z2")),
        (wanting(kind=ON_DEMAND), (ON_DEMAND, "z1")),
        (Requirements([(ZONE, requirement("NotIn", ["z1"]))]), (SPOT, "z2")),
        (Requirements([("example.com/team", one_of("a"))]), (SPOT, "z1")),
        (wanting(zone="z9"), None),
    ],
)
def test_the_cheapest_launch_is_within_the_requirements(wanted: Requirements, place: tuple[str, str] | None) -> None:
    offering = cheapest_launch(MACHINE, wanted)
    assert (None if offering is None else (offering.capacity_type, offering.zone)) == place


def test_what_is_not_available_is_not_launched() -> None:
    entry = instance_type("m", offers=OFFERS, unavailable=[(SPOT, "z1"), (SPOT, "z2")])
    assert cheapest_launch_price(entry, catalog=Catalog((entry,))) == 1.0
    assert worst_launch_price(entry, NO_REQUIREMENTS, Catalog((entry,))) == 1.2


@pytest.mark.parametrize(
    ("wanted", "price"),
    [
        (NO_REQUIREMENTS, 0.5),
        (wanting(zone="z1"), 0.3),
        (wanting(kind=ON_DEMAND), 1.2),
        (wanting(kind=f"{ON_DEMAND} {SPOT}", zone="z1"), 0.3),
        (wanting(zone="z9"), math.inf),
    ],
)
def test_the_worst_launch_is_the_dearest_of_the_capacity_type_tried_first(wanted: Requirements, price: float) -> None:
    assert worst_launch_price(MACHINE, wanted, Catalog((MACHINE,))) == price
    assert worst_launch_price(MACHINE, wanted, Catalog((MACHINE,), node_fee=0.25)) == price + 0.25


def reserved(entry: InstanceType) -> InstanceType:
    place = Requirements.of_labels({ZONE: "z1", CAPACITY_TYPE: RESERVED})
    return replace(entry, offerings=(*entry.offerings, Offering(place, 0.0, reservation_capacity=1)))


def test_reserved_capacity_comes_first_and_costs_only_the_fee() -> None:
    entry = reserved(MACHINE)
    assert worst_launch_price(entry, NO_REQUIREMENTS, Catalog((entry,), node_fee=0.03)) == 0.03
    assert cheapest_launch_price(entry, catalog=Catalog((entry,), node_fee=0.03)) == 0.03


def unpriced(entry: InstanceType, kind: str) -> InstanceType:
    changed = (replace(o, price=None) if o.capacity_type == kind else o for o in entry.offerings)
    return replace(entry, offerings=tuple(changed))


def test_an_unknown_price_is_never_the_cheapest_and_always_the_worst() -> None:
    entry = unpriced(MACHINE, SPOT)
    offering = cheapest_launch(entry)
    assert offering is not None
    assert offering.price == 1.0
    assert worst_launch_price(entry, NO_REQUIREMENTS, Catalog((entry,))) == math.inf


def test_types_are_ordered_by_price_then_name_with_the_unknown_last() -> None:
    types = [
        instance_type("none", offers=()),
        unpriced(instance_type("unknown", offers=[(SPOT, "z1", 0.1)]), SPOT),
        instance_type("b", offers=[(SPOT, "z1", 0.2)]),
        instance_type("a", offers=[(SPOT, "z1", 0.2), (SPOT, "z2", 0.9)]),
        instance_type("c", offers=[(SPOT, "z1", 0.3), (SPOT, "z2", 0.1)]),
    ]
    assert [entry.name for entry in by_price(types)] == ["c", "a", "b", "unknown", "none"]
    assert [entry.name for entry in by_price(types[2:], wanting(zone="z2"))] == ["c", "a", "b"]
