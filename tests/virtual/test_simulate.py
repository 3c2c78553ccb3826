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


@pytest.mark.slow
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


def test_equal_pools_are_combined_only_when_they_are_merged() -> None:
    runs = summaries(scenario("fallback", "2h"), Invariants)
    assert runs["by-pool"].nodes_at_end == 5
    assert runs["equal-pools-merged"].nodes_at_end == 1
