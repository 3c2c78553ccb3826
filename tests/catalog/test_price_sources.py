"""Where prices that were used come from: a price list is named only if some price is of it."""

import pytest

from karpool.catalog.instance_types import Catalog, PriceOrigin
from karpool.catalog.price_sources import used_origins
from karpool.catalog.pricing import PRICE_LABEL, TOLD_PRICE
from karpool.catalog.sources import open_catalog
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE

LISTED = {INSTANCE_TYPE: "m5.large", ZONE: "us-east-1a", CAPACITY_TYPE: "on-demand"}
AWS = "public price list"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return open_catalog("aws:us-east-1")


@pytest.mark.parametrize(
    ("nodes", "launched", "sources"),
    [
        ([LISTED], [], [AWS]),
        ([{**LISTED, PRICE_LABEL: "0.5", TOLD_PRICE: "0.4"}], [], [AWS]),  # a list goes before labels
        ([{PRICE_LABEL: "0.5"}], [], ["labels of nodes"]),
        ([{TOLD_PRICE: "0.5"}, LISTED], [], [AWS, "--groups"]),
        ([{TOLD_PRICE: "0.5"}], ["m5.large"], [AWS, "--groups"]),
        ([{CAPACITY_TYPE: "reserved", PRICE_LABEL: "0.5"}], [], []),
        ([{INSTANCE_TYPE: "own.large"}], [], []),
        ([], [], []),
    ],
)
def test_only_sources_of_prices_that_were_used_are_named(
    nodes: list[dict[str, str]], launched: list[str], sources: list[str], catalog: Catalog
) -> None:
    assert [origin.source for origin in used_origins(catalog, nodes, launched)] == sources


def test_a_price_that_the_user_gave_a_type_is_of_no_list() -> None:
    overridden = open_catalog("aws:us-east-1", overrides={("m5.large", "on-demand"): 0.01})
    assert [origin.source for origin in used_origins(overridden, [LISTED])] == ["--price"]


def test_a_region_without_prices_is_named_in_any_case() -> None:
    unknown = PriceOrigin(AWS, "aws", "sa-east-1", known=False)
    assert used_origins(Catalog((), origins=(unknown,)), []) == (unknown,)
