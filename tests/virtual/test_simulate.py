"""Bundled scenarios: each runs without breaking a rule, and shows what it is there to show."""

from importlib import resources

import msgspec
import pytest
from tests.virtual.invariants import Invariants

from karpool.catalog.instance_types import Catalog
from karpool.catalog.overrides import parse_prices
from karpool.catalog.sources import open_catalog
from karpool.cli.simulate import BUNDLED
from karpool.virtual.compare import run
from karpool.virtual.recorder import RunSummary
from karpool.virtual.scenario import Scenario, read_scenario
from karpool.virtual.scenario_checks import flaws
from karpool.wire.duration import parse_duration

FOLDER = resources.files("karpool.virtual") / "scenarios"


def scenario(name: str, length: str | None = None, warm_up: str | None = None) -> Scenario:
    made = read_scenario((FOLDER / f"{name}.yaml").read_bytes())
    return msgspec.structs.replace(
        made,
        length=made.length if length is None else parse_duration(length),
        warm_up=made.warm_up if warm_up is None else parse_duration(warm_up),
    )


def catalog(made: Scenario) -> Catalog:
    prices = parse_prices(tuple(f"{kind}={price}" for kind, price in made.prices.items()))
    return open_catalog(made.catalog, node_fee=made.node_fee, overrides=prices)


def summaries(made: Scenario, observe: type[Invariants] | None = None) -> dict[str, RunSummary]:
    machines = catalog(made)
    return {name: run(made, machines, name, made.seed, observe=observe).summary for name in made.policies}


def test_every_file_is_listed_and_sound() -> None:
    assert {entry.name for entry in FOLDER.iterdir() if entry.name.endswith(".yaml")} == {
        f"{name}.yaml" for name in BUNDLED
    }
    for name in BUNDLED:
        assert list(flaws((FOLDER / f"{name}.yaml").read_bytes())) == []


@pytest.mark.parametrize(
    ("name", "length", "warm_up"),
    [
        ("off-hours", "110m", "10m"),
        ("churn", "20m", "0s"),
        ("tenants", "40m", "0s"),
        ("weights", "30m", "5m"),
        ("weights-architecture", "20m", "5m"),
        ("weights-capacity", "30m", "0s"),
        ("weights-gpu", "110m", "0s"),
        ("weights-taints", "20m", "0s"),
        ("spot", "20m", "100m"),
    ],
)
def test_no_rule_is_broken(name: str, length: str, warm_up: str) -> None:
    for summary in summaries(scenario(name, length, warm_up), Invariants).values():
        assert summary.cost > 0
        assert summary.pods_at_end > 0


def test_after_the_peak_a_threshold_of_half_keeps_every_node() -> None:
    runs = summaries(scenario("off-hours", "170m"))
    assert runs["autoscaler"].nodes_at_end == 40
    assert runs["autoscaler"].evictions == 0
    assert runs["compactor"].nodes_at_end == 24
    assert runs["karpool"].nodes_at_end == 24
    assert runs["karpool"].pods_at_end == runs["autoscaler"].pods_at_end == 120


def test_a_grace_period_means_fewer_evictions_and_longer_lives_and_has_its_price() -> None:
    made = scenario("churn", "90m", "30m")
    runs = summaries(made)
    quick, calm = runs["after-30s"], runs["grace-30m"]
    assert calm.evictions < quick.evictions / 2
    assert calm.nodes_launched < quick.nodes_launched / 2
    assert calm.cost > quick.cost


def test_tenants_are_combined_by_groups_and_hardly_in_one_list() -> None:
    runs = summaries(scenario("tenants", "75m"))
    assert runs["partitioned"].nodes_at_end <= 0.6 * runs["one-list"].nodes_at_end
    assert runs["partitioned"].cost < runs["one-list"].cost


def test_equal_pools_are_combined_only_when_they_are_merged() -> None:
    runs = summaries(scenario("fallback", "2h"), Invariants)
    assert runs["by-pool"].nodes_at_end == 5
    assert runs["equal-pools-merged"].nodes_at_end == 1


def test_weights_fill_what_is_reserved_and_make_expensive_pools_expensive() -> None:
    runs = summaries(scenario("weights", "90m"))
    assert runs["reserved-first"].cost < 0.7 * runs["reserved-last"].cost
    assert runs["large-first"].cost > 5 * runs["reserved-last"].cost


def test_without_a_floor_spot_pods_move_more_and_cost_less() -> None:
    runs = summaries(scenario("spot", "3h"))
    off, wide, narrow = (runs[name] for name in ("no-spot-to-spot", "floor-15", "floor-1"))
    assert off.evictions <= wide.evictions < narrow.evictions
    assert narrow.cost < wide.cost <= off.cost
