"""Where prices come from, in a sentence; and what has none."""

from dataclasses import replace

from karpool.catalog.instance_types import PriceOrigin
from karpool.catalog.sources import open_catalog
from karpool.report.price_words import prices_parts, prices_words
from karpool.report.simulation_document import money_words, simulation_document
from karpool.report.simulation_table import ROWS, difference, written
from karpool.virtual.compare import Comparison, run
from karpool.virtual.scenario import read_scenario

SCENARIO = b"""
name: one
length: 1h
policies: {default: {}}
pools:
- metadata: {name: a}
workloads:
- {name: web, replicas: 1, cpu: 1}
"""


def test_cloud_region_day_and_source_are_named_and_regions_without_prices() -> None:
    origins = [
        PriceOrigin("public price list", "aws", "eu-west-1", "2026-08-22"),
        PriceOrigin("public price list", "aws", "sa-east-1", known=False),
        PriceOrigin("types.json"),
    ]
    assert prices_words(prices_parts(origins)) == (
        "Prices: aws eu-west-1, public price list of 2026-08-22; aws sa-east-1: ? (no price list); types.json."
    )
    assert prices_words(()) == ""


def test_nodes_without_a_price_do_not_make_a_simulation_cheap_without_a_word() -> None:
    scenario = read_scenario(SCENARIO)
    sold = open_catalog("sample")
    small = [entry for entry in sold.types if entry.name == "m5.xlarge"]
    unpriced = [replace(e, offerings=tuple(replace(o, price=None) for o in e.offerings)) for e in small]
    for types, words in ((small, ""), (unpriced, "Costs are incomplete: up to ")):
        catalog = replace(sold, types=tuple(types), origins=())
        made = run(scenario, catalog, "default", 1)
        assert made.summary.nodes_launched == 1
        assert (made.summary.cost > 0) is (types is small)
        assert (made.summary.unpriced_node_hours > 0) is (types is unpriced)
        document = simulation_document(Comparison(scenario, (1,), {"default": (made,)}))
        assert money_words(document).startswith(words)
        assert bool(money_words(document)) is bool(words)
        assert document.prices == ()
        (policy,) = document.policies.values()
        costs = policy["cost"], policy["pools"]["a"]["cost"], policy["series"]["pricePerHour"][-1]
        assert all(costs) if types is small else costs == (None, None, None)
        assert (written(ROWS[0], policy) == "?") is (types is unpriced)


def test_a_cost_that_leaves_something_out_says_so_and_is_not_compared() -> None:
    whole, part = {"cost": 2.0, "unpricedNodeHours": 0.0}, {"cost": 1.0, "unpricedNodeHours": 3.5}
    assert [written(ROWS[0], numbers) for numbers in (whole, part)] == ["2.00 $", "1.00 $ + ?"]
    assert [difference(ROWS[0], numbers, whole) for numbers in (whole, part)] == ["=", "?"]
