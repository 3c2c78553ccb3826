"""What NodeOverlays make of a catalogue."""

from typing import Any

import pytest
from tests.factories import Z1, Z2, instance_type, node_pool
from tests.factories.values import amounts

from karpool.catalog.instance_types import Catalog
from karpool.catalog.overlays import with_overlays
from karpool.catalog.pricing import node_price
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from karpool.model.node_overlay import NodeOverlay, NodeOverlaySpec
from karpool.model.nodepool import PoolRequirement
from karpool.wire.objects import Metadata

CATALOG = Catalog(
    tuple(instance_type(name, 4, "16Gi", price=1.0, spot_price=0.4, zones=(Z1, Z2)) for name in ("big", "small"))
)
Rule = tuple[str, ...]
BIG: Rule = (INSTANCE_TYPE, "In", "big")


def overlay(name: str = "o", *rules: Rule, capacity: dict[str, Any] | None = None, **spec: Any) -> NodeOverlay:
    requirements = tuple(PoolRequirement(key=key, operator=how, values=tuple(values)) for key, how, *values in rules)
    return NodeOverlay(
        metadata=Metadata(name=name),
        spec=NodeOverlaySpec(requirements=requirements, capacity=amounts(capacity or {}), **spec),
    )


def price(catalog: Catalog, kind: str = "big", zone: str = Z1, capacity_type: str = "on-demand") -> float | None:
    return node_price(catalog, {INSTANCE_TYPE: kind, ZONE: zone, CAPACITY_TYPE: capacity_type})


@pytest.mark.parametrize(
    ("spec", "costs"),
    [
        ({"price": "0.25"}, 0.25),
        ({"price_adjustment": "+0.2"}, 1.2),
        ({"price_adjustment": "-0.3"}, 0.7),
        ({"price_adjustment": "-7"}, 0.0),
        ({"price_adjustment": "+10%"}, 1.1),
        ({"price_adjustment": "-31%"}, 0.69),
        ({"price_adjustment": "-100%"}, 0.0),
    ],
)
def test_prices_are_set_added_to_or_scaled(spec: dict[str, str], costs: float) -> None:
    made = with_overlays(CATALOG, [overlay("o", BIG, **spec)])
    assert price(made.catalog) == costs
    assert price(made.catalog, "small") == 1.0
    assert not made.left_out


def test_an_overlay_may_be_for_one_zone_and_capacity_type() -> None:
    only = overlay("o", BIG, (ZONE, "In", Z2), (CAPACITY_TYPE, "In", "spot"), price="0.1")
    catalog = with_overlays(CATALOG, [only]).catalog
    found = {(zone, kind): price(catalog, "big", zone, kind) for zone in (Z1, Z2) for kind in ("spot", "on-demand")}
    assert found == {(Z1, "spot"): 0.4, (Z2, "spot"): 0.1, (Z1, "on-demand"): 1.0, (Z2, "on-demand"): 1.0}


def test_the_heavier_overlay_counts_and_fills_in_only_what_it_says() -> None:
    heavy = overlay("a", BIG, price="0.5", weight=10)
    light = overlay("b", price="0.7", weight=1, capacity={"example.com/card": 2})
    made = with_overlays(CATALOG, [light, heavy])
    assert (price(made.catalog), price(made.catalog, "small")) == (0.5, 0.7)
    assert made.catalog.by_name["big"].allocatable["example.com/card"].units == 2
    assert not made.left_out


def test_of_equals_that_contradict_each_other_the_last_by_name_counts_and_the_other_is_named() -> None:
    made = with_overlays(CATALOG, [overlay("a", price="0.5"), overlay("b", BIG, price="0.7")])
    assert price(made.catalog) == 0.7
    assert price(made.catalog, "small") == 1.0  # an overlay that is left out is left out whole
    assert list(made.left_out) == ["a"]
    assert "NodeOverlay b" in made.left_out["a"]


def test_equals_that_agree_or_do_not_meet_both_count() -> None:
    alike = [overlay(name, BIG, price="0.5") for name in ("a", "b")]
    made = with_overlays(CATALOG, [*alike, overlay("c", (INSTANCE_TYPE, "In", "small"), price="0.6")])
    assert (price(made.catalog), price(made.catalog, "small"), dict(made.left_out)) == (0.5, 0.6, {})


POOLS = (
    node_pool("web", labels={"example.com/team": "shop"}),
    node_pool("batch", labels={"example.com/team": "data"}, requirements=[("example.com/tier", "In", "one", "two")]),
)
OF_WEB: Rule = ("karpenter.sh/nodepool", "In", "web")


def price_in(catalog: Catalog, pool: str, kind: str = "big") -> float | None:
    labels = {INSTANCE_TYPE: kind, ZONE: Z1, CAPACITY_TYPE: "on-demand"}
    return node_price(catalog, {**labels, **({NODEPOOL: pool} if pool else {})})


@pytest.mark.parametrize(
    ("rule", "pools"),
    [
        (OF_WEB, {"web"}),
        (("karpenter.sh/nodepool", "NotIn", "web"), {"batch"}),
        (("example.com/team", "In", "data"), {"batch"}),
        (("example.com/tier", "In", "two"), {"batch"}),
        (("example.com/tier", "DoesNotExist"), {"web"}),
    ],
)
def test_an_overlay_may_be_for_the_pools_that_have_a_label(rule: Rule, pools: set[str]) -> None:
    made = with_overlays(CATALOG, [overlay("o", BIG, rule, price="0.1")], POOLS)
    assert not made.left_out
    prices = {pool: price_in(made.catalog, pool) for pool in ("web", "batch")}
    assert prices == {pool: 0.1 if pool in pools else 1.0 for pool in ("web", "batch")}
    assert price_in(made.catalog, "web", "small") == 1.0


def test_the_heavier_overlay_counts_in_each_pool_and_what_is_for_all_everywhere_else() -> None:
    overlays = [
        overlay("a", OF_WEB, price="0.5", weight=10),
        overlay("b", price="0.7", weight=5),
        overlay("c", ("karpenter.sh/nodepool", "In", "batch"), price="0.9", weight=1),
    ]
    catalog = with_overlays(CATALOG, overlays, POOLS).catalog
    assert [price_in(catalog, pool) for pool in ("web", "batch", "")] == [0.5, 0.7, 0.7]


def test_overlays_of_one_weight_contradict_each_other_only_in_the_same_pool() -> None:
    ours, theirs = overlay("a", OF_WEB, price="0.5"), overlay("b", ("example.com/team", "In", "data"), price="0.7")
    apart = with_overlays(CATALOG, [ours, theirs], POOLS)
    assert ([price_in(apart.catalog, pool) for pool in ("web", "batch")], dict(apart.left_out)) == ([0.5, 0.7], {})
    met = with_overlays(CATALOG, [ours, overlay("b", ("example.com/team", "Exists"), price="0.7")], POOLS)
    assert [price_in(met.catalog, pool) for pool in ("web", "batch")] == [0.7, 0.7]
    assert list(met.left_out) == ["a"]


def test_resources_may_be_there_in_one_pool_only() -> None:
    catalog = with_overlays(CATALOG, [overlay("o", BIG, OF_WEB, capacity={"example.com/card": 2})], POOLS).catalog
    entry = catalog.by_name["big"]
    assert catalog.in_pool(entry, "web").allocatable["example.com/card"].units == 2
    assert catalog.in_pool(entry, "batch") is entry
    assert "example.com/card" not in entry.capacity


@pytest.mark.parametrize("key", ["kubernetes.io/hostname", "example.com/nobody"])
def test_an_overlay_for_a_label_that_nothing_has_is_left_out_and_says_why(key: str) -> None:
    made = with_overlays(CATALOG, [overlay("o", (key, "In", "web"), price="0.1")], POOLS)
    assert price(made.catalog) == 1.0
    assert key in made.left_out["o"]


def test_what_a_machine_has_is_not_replaced() -> None:
    made = with_overlays(CATALOG, [overlay("o", BIG, capacity={"cpu": 64, "example.com/card": 1})])
    entry = made.catalog.by_name["big"]
    assert entry.capacity["cpu"] == CATALOG.by_name["big"].capacity["cpu"]
    assert entry.capacity["example.com/card"].units == 1
    assert "example.com/card" not in made.catalog.by_name["small"].capacity
