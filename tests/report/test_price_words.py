"""Where prices come from, in a sentence; and what has none."""

from dataclasses import replace

from msgspec.structs import replace as changed

from karpool.catalog.instance_types import PriceOrigin
from karpool.catalog.sources import open_catalog
from karpool.report.price_words import prices_parts, prices_words
from karpool.report.simulations.simulation_document import money_words, simulation_document
from karpool.report.simulations.simulation_table import ROWS, difference, written
from karpool.report.simulations.sweep_document import MeasurePart, SettingPart, SweepDocument, TrialPart
from karpool.report.simulations.sweep_table import notes, numbers
from karpool.sweep.trial import TrialResult
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


def swept(*costs: tuple[float, float]) -> SweepDocument:
    """A sweep with settings of these costs and hours without a price."""
    measure = MeasurePart(mean=1.0, low=None, high=None)
    shared = dict.fromkeys(("evictions", "pendingPodSeconds", "nodesLaunched"), measure)
    settings, trials = [], []
    for number, (cost, unpriced) in enumerate(costs, 1):
        result = TrialResult(
            cost=cost,
            evictions=1,
            pending_pod_seconds=1.0,
            nodes_launched=1,
            node_hours=8.0,
            pods_at_end=1,
            pending_pods_at_end=0,
            unpriced_node_hours=unpriced,
            seconds=3600,
        )
        trials.append(TrialPart(number=number, setting={}, input="x", seed=1, result=result))
        settings.append(
            SettingPart(
                number=number,
                setting={},
                seeds=1,
                on_front=False,
                stopped=False,
                pods_wait=False,
                waiting_share=0.0,
                measures={"cost": changed(measure, mean=cost), **shared},
            )
        )
    return SweepDocument(
        inputs=(),
        method="grid",
        seed=1,
        seeds=1,
        complete=True,
        prices=(),
        front=(),
        settings=tuple(settings),
        trials=tuple(trials),
    )


def test_a_sweep_tells_no_cost_that_nobody_knows() -> None:
    document = swept((2.5, 0.0), (1.25, 3.0), (0.0, 8.0))
    assert [cost for cost, *_ in numbers(document.settings, document)] == ["2.50 $", "1.25 $ + ?", "?"]
    assert any(line.startswith("Costs are incomplete: up to 8.0 node-hours") for line in notes(document, 3))
    assert not any("incomplete" in line for line in notes(swept((2.5, 0.0)), 1))
