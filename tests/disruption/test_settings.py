"""Settings of decisions: the price of an eviction follows the search unless it is chosen."""

import math

import pytest

from karpool.disruption.settings import GLOBAL, DisruptionSettings, is_eviction_price


@pytest.mark.parametrize(
    ("search", "chosen", "effective"),
    [("prefix", None, 0.0), (GLOBAL, None, 0.004), ("prefix", 0.01, 0.01), (GLOBAL, 0.0, 0.0)],
)
def test_an_eviction_has_its_chosen_price_or_that_of_the_search(
    search: str, chosen: float | None, effective: float
) -> None:
    settings = DisruptionSettings(search=search, eviction_price=chosen)
    assert settings.effective_eviction_price == effective


@pytest.mark.parametrize("price", [-0.001, math.nan, math.inf, -math.inf, 1e6 + 1])
def test_no_number_that_makes_no_sense_is_a_price(price: float) -> None:
    assert not is_eviction_price(price)


@pytest.mark.parametrize("price", [0.0, 0.004, 1e6])
def test_prices_from_nothing_to_a_million_are_allowed(price: float) -> None:
    assert is_eviction_price(price)
