"""Prices that the user knows better."""

import pytest

from karpool.catalog.instance_types import Catalog
from karpool.catalog.overrides import parse_price, scaled, unknown_types
from karpool.catalog.pricing import node_price
from karpool.catalog.sources import open_catalog
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpool.wire.problems import InputError


def prices(catalog: Catalog, name: str = "m5.large", zone: str = "us-east-1a") -> tuple[float | None, float | None]:
    of = {INSTANCE_TYPE: name, ZONE: zone}
    return node_price(catalog, of | {CAPACITY_TYPE: ON_DEMAND}), node_price(catalog, of | {CAPACITY_TYPE: SPOT})


@pytest.mark.parametrize(
    ("changes", "on_demand", "spot"),
    [
        ({}, 0.096, 0.0384),
        ({"factor": 0.9}, 0.0864, 0.03456),
        ({"overrides": {("m5.large", ""): 0.08}}, 0.08, 0.032),
        ({"overrides": {("m5.large", ON_DEMAND): 0.08}}, 0.08, 0.032),
        ({"overrides": {("m5.large", SPOT): 0.02}}, 0.096, 0.02),
        ({"overrides": {("m5.large", ""): 0.08, ("m5.large", SPOT): 0.02}, "factor": 0.5}, 0.08, 0.02),
        ({"spot_fraction": 0.5}, 0.096, 0.048),
        ({"spot_fraction": 0.5, "overrides": {("m5.large", SPOT): 0.02}}, 0.096, 0.02),
        ({"node_fee": 0.03}, 0.126, 0.0684),
        ({"overrides": {("c5.large", ""): 9.0}}, 0.096, 0.0384),
    ],
)
def test_changes_apply_in_their_order(changes: dict, on_demand: float, spot: float) -> None:
    assert prices(open_catalog("sample", **changes)) == (on_demand, spot)


def test_the_generated_types_keep_their_own_spot_fraction() -> None:
    catalog = open_catalog("kwok", overrides={("c-1x-amd64-linux", ""): 1.0})
    assert prices(catalog, "c-1x-amd64-linux", "test-zone-a") == (1.0, 0.7)


@pytest.mark.parametrize(
    ("text", "key", "price"),
    [
        ("m5.large=0.08", ("m5.large", ""), 0.08),
        ("m5.large:spot=0", ("m5.large", "spot"), 0.0),
        ("m5.large:reserved=1e-2", ("m5.large", "reserved"), 0.01),
    ],
)
def test_a_price_is_read(text: str, key: tuple[str, str], price: float) -> None:
    assert parse_price(text) == (key, price)


@pytest.mark.parametrize("text", ["", "m5.large", "=1", "m5.large=", "m5.large=-1", "m5.large=nan", "m5.large:cheap=1"])
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--price: .* is no price; write TYPE=PRICE"):
        parse_price(text)


@pytest.mark.parametrize("changes", [{"node_fee": -1.0}, {"factor": float("inf")}, {"spot_fraction": float("nan")}])
def test_amounts_that_cannot_be_meant_are_refused(changes: dict) -> None:
    with pytest.raises(InputError, match=r"--(node-fee|price-factor|spot-fraction): "):
        open_catalog("sample", **changes)


def test_prices_are_multiplied_as_on_paper() -> None:
    assert scaled(0.096, 0.9) == 0.0864
    assert scaled(None, 0.9) is None


def test_a_price_for_a_type_that_nobody_has_is_found() -> None:
    catalog = open_catalog("sample", overrides={("m5.larg", ""): 1.0, ("m5.large", SPOT): 1.0})
    assert unknown_types(catalog) == ["m5.larg"]


def test_a_region_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"--catalog: 'Mars' is not a region"):
        open_catalog("aws:Mars")
