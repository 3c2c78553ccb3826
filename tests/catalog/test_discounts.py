"""What a user pays less than the price list says."""

import pytest
from tests.tables import row, table

from karpool.catalog.discounts import parse_discount
from karpool.catalog.notices import idle_discounts
from karpool.catalog.places import CloudRegion
from karpool.catalog.pricing import node_price
from karpool.catalog.sources import open_catalog
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpool.report.price_words import prices_parts, prices_words
from karpool.wire.problems import InputError


@table(
    row("on demand", discounts=["m5*=50%"], on_demand=0.048, spot=0.0384),
    row("spot is not committed to", discounts=["*=31%"], on_demand=0.06624, spot=0.0384),
    row("spot if it says so", discounts=["m5*:spot=50%"], on_demand=0.096, spot=0.0192),
    row("both", discounts=["*=50%", "*:spot=50%"], on_demand=0.048, spot=0.0192),
    row("half a per cent", discounts=["m5.large=0.5%"], on_demand=0.09552, spot=0.0384),
    row("the last that matches counts", discounts=["*=10%", "m5*=50%"], on_demand=0.048, spot=0.0384),
    row("the last, also if it is wider", discounts=["m5*=50%", "*=10%"], on_demand=0.0864, spot=0.0384),
    row("none after all", discounts=["*=50%", "m5.*=0%"], on_demand=0.096, spot=0.0384),
    row("other types", discounts=["c5*=50%"], on_demand=0.096, spot=0.0384),
    row("in a region", discounts=["us-east-1/m5*=50%"], on_demand=0.048, spot=0.0384),
    row("in regions", discounts=["us-*/m5*=50%"], on_demand=0.048, spot=0.0384),
    row("on a cloud", discounts=["aws/*:on-demand=50%"], on_demand=0.048, spot=0.0384),
    row("elsewhere", discounts=["eu-*/m5*=50%", "gcp/*:spot=50%"], on_demand=0.096, spot=0.0384),
)
def test_a_discount_is_for_what_it_names(discounts: list[str], on_demand: float, spot: float) -> None:
    catalog = open_catalog("sample", discounts=discounts)
    of = {INSTANCE_TYPE: "m5.large", ZONE: "us-east-1a"}
    prices = [node_price(catalog, {**of, CAPACITY_TYPE: kind}) for kind in (ON_DEMAND, SPOT)]
    assert prices == [on_demand, spot]


@table(
    row("after the factor", changes={"factor": 0.5}, on_demand=0.024, spot=0.0192),
    row("not of one's own price", changes={"overrides": {("m5.large", ""): 0.08}}, on_demand=0.08, spot=0.032),
    row("spot is a share of the full price", changes={"spot_fraction": 0.5}, on_demand=0.048, spot=0.048),
    row("the fee is paid in full", changes={"node_fee": 0.01}, on_demand=0.058, spot=0.0484),
)
def test_a_discount_has_its_place_among_other_changes(changes: dict, on_demand: float, spot: float) -> None:
    catalog = open_catalog("sample", discounts=["m5*=50%"], **changes)
    of = {INSTANCE_TYPE: "m5.large", ZONE: "us-east-1a"}
    prices = [node_price(catalog, {**of, CAPACITY_TYPE: kind}) for kind in (ON_DEMAND, SPOT)]
    assert prices == [on_demand, spot]


def test_a_discount_for_a_region_is_for_the_machines_of_that_region_alone() -> None:
    places = (CloudRegion("aws", "eu-west-1"), CloudRegion("aws", "us-east-1"), CloudRegion("azure", "eastus"))
    given = ["eu-west-1/m5*=50%", "azure/*_D*=10%", "sa-east-1/*=5%"]
    catalog = open_catalog(places=places, discounts=given)
    plain = open_catalog(places=places)
    for name, zone, share in (
        ("m5.large", "eu-west-1a", 0.5),
        ("m5.large", "us-east-1a", 1.0),
        ("Standard_D4s_v5", "eastus-1", 0.9),
    ):
        of = {INSTANCE_TYPE: name, ZONE: zone}
        full = node_price(plain, of)
        assert full is not None
        assert node_price(catalog, of) == pytest.approx(full * share)
    assert [origin.discounts for origin in catalog.origins] == [("eu-west-1/m5*=50%",), (), ("azure/*_D*=10%",)]
    assert list(idle_discounts(given, catalog.origins)) == [
        "--discount sa-east-1/*=5% changes nothing: none of the prices are of sa-east-1"
    ]


def test_a_discount_is_named_with_the_prices_that_it_is_taken_off() -> None:
    catalog = open_catalog("aws:us-east-1", discounts=["m7*=31%", "m7*:spot=5%"])
    assert prices_words(prices_parts(catalog.origins)) == (
        "Prices: aws us-east-1, public price list of 2026-08-22. Discounts: m7*=31%, m7*:spot=5%."
    )


def test_an_unknown_price_stays_unknown() -> None:
    catalog = open_catalog("aws:sa-east-1", discounts=["*=50%"])
    assert node_price(catalog, {INSTANCE_TYPE: "m5.large", ZONE: "sa-east-1a"}) is None
    assert [origin.discounts for origin in catalog.origins] == [()]


@pytest.mark.parametrize(
    "text",
    ["", "m7*", "m7*=", "=31%", "m7*=31", "m7*=0.31", "m7*=x%", "m7*:reserved=5%", "m7*:=5%", "a/b/c=5%", "m7*=1e1%"],
)
def test_what_is_no_discount_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--discount: .* is no discount; write TYPES=PERCENT%"):
        parse_discount(text)


@pytest.mark.parametrize("text", ["m7*=101%", "m7*=-1%"])
def test_a_percentage_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"is out of range; a discount is from 0 to 100 %"):
        parse_discount(text)


def test_a_pattern_that_names_no_type_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"--discount: 'm77\*=31%': the catalogue has no type 'm77\*'; did you mean m7i\?"
    ):
        open_catalog("sample", discounts=["m77*=31%"])
