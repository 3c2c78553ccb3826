"""Types that only nodes and claims show."""

import pytest
from tests.factories import amounts, instance_type, node, node_claim

from karpool.catalog.instance_types import Catalog
from karpool.catalog.observed import observed, with_observed
from karpool.catalog.pricing import node_price
from karpool.catalog.sources import open_catalog
from karpool.model.labels import ARCH, INSTANCE_TYPE, RESERVED, SPOT, ZONE
from karpool.model.requirements import one_of

NOBODY_KNOWS = Catalog(())


def test_a_type_is_built_from_what_its_node_shows() -> None:
    (entry,) = observed([node(type="rack-7", cpu="3800m", memory="14Gi", capacity={"cpu": "4", "memory": "16Gi"})])
    assert entry.observed
    assert entry.capacity == amounts({"cpu": 4, "memory": "16Gi", "pods": 110})
    assert entry.allocatable == amounts({"cpu": "3800m", "memory": "14Gi", "pods": 110})
    assert entry.requirements[INSTANCE_TYPE] == one_of("rack-7")
    assert entry.requirements[ARCH] == one_of("amd64")
    assert "karpenter.sh/nodepool" not in entry.requirements


def test_each_place_it_was_seen_is_an_offering_that_cannot_be_launched() -> None:
    nodes = [node("b", zone="z2"), node("a", zone="z1", capacity_type=SPOT), node("c", zone="z2")]
    (entry,) = observed(nodes)
    places = [(o.zone, o.capacity_type, o.price, o.available) for o in entry.offerings]
    assert places == [("z1", "spot", None, False), ("z2", "on-demand", None, False)]
    assert entry.requirements[ZONE] == one_of("z1", "z2")


def test_a_claim_counts_until_its_node_is_there() -> None:
    waiting = node_claim("w", labels={INSTANCE_TYPE: "rack-8", ZONE: "z1"}, capacity={"cpu": 8})
    arrived = node_claim("a", labels={INSTANCE_TYPE: "rack-9"}, capacity={"cpu": 8}, node_name="n1")
    assert [entry.name for entry in observed([node("n1", type="rack-7")], [waiting, arrived])] == ["rack-7", "rack-8"]


def test_a_node_that_gives_more_than_its_capacity_is_believed() -> None:
    (entry,) = observed([node(cpu=4, capacity={"cpu": "1500m"})])
    assert entry.allocatable["cpu"] == amounts({"cpu": 4})["cpu"]


def test_a_node_without_a_type_shows_no_type() -> None:
    assert observed([node(type="")]) == ()


def test_what_the_catalogue_knows_is_left_alone() -> None:
    known = Catalog((instance_type("m6i.xlarge"),))
    assert with_observed(known, [node()]) is known
    assert [entry.name for entry in with_observed(known, [node(type="rack-7")]).types] == ["m6i.xlarge", "rack-7"]


PRICE = "eks-node-viewer/instance-price"


@pytest.mark.parametrize(
    ("labels", "kind", "price"),
    [
        ({}, "on-demand", None),
        ({PRICE: "0.25"}, "on-demand", 0.25),
        ({PRICE: "-1"}, "on-demand", None),
        ({PRICE: "nan"}, "on-demand", None),
        ({PRICE: "cheap"}, "on-demand", None),
        ({PRICE: "0.25"}, RESERVED, 0.0),
    ],
)
def test_the_price_of_an_unknown_type_is_on_its_label_or_unknown(
    labels: dict[str, str], kind: str, price: float | None
) -> None:
    seen = node(type="rack-7", capacity_type=kind, labels=labels)
    catalog = with_observed(NOBODY_KNOWS, [seen])
    assert node_price(catalog, seen.metadata.labels) == price
    assert node_price(NOBODY_KNOWS, seen.metadata.labels) == price


def test_a_price_that_the_user_gives_holds_for_an_observed_type() -> None:
    seen = node(type="rack-7", labels={PRICE: "0.25"})
    catalog = with_observed(open_catalog("sample", node_fee=0.03, overrides={("rack-7", ""): 0.4}), [seen])
    assert node_price(catalog, seen.metadata.labels) == 0.43
