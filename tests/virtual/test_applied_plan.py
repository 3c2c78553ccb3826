"""Plans that are carried out while a scheduler places the pods as it likes, not where the plan has them."""

import json
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.disruption.scenarios import REFERENCE, Scenario, ago, node, pool_of
from tests.examples import examples
from tests.factories.values import LONG_AGO
from tests.strategies import Cluster, clusters

from karpool.cli.main import cli
from karpool.disruption.plan import Plan, plan
from karpool.disruption.policies import HAIR
from karpool.disruption.settings import GLOBAL, PREFIX, DisruptionSettings, Scoring
from karpool.virtual.applied_plan import AppliedPlan, SchedulerName, forecast

pytestmark = pytest.mark.slow

SCHEDULERS: list[SchedulerName] = ["LeastAllocated", "MostAllocated"]
WITHIN = 0.06
"""How much dearer a small cluster may end than a plan that foresaw the scheduler."""
MORE_LAUNCHES = 3


@cache
def planned(bench: Any, search: str, seed: int, scheduler: Scoring = Scoring.ANY, nodes: int = 40) -> tuple[Any, ...]:
    """A cluster, its instance types, and the plan for it, made once for all schedulers."""
    world, machines = bench.generate(nodes, seed), bench.catalog()
    settings = DisruptionSettings(search=search, effort=0, scheduler=scheduler, complete_catalog=True)
    return world, machines, bench.planned(world, machines, settings), settings


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark that carries plans out."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import applied

    return applied


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("search", [PREFIX, GLOBAL])
@pytest.mark.parametrize("seed", range(2))
def test_every_pod_runs_wherever_the_scheduler_puts_it(
    bench: Any, search: str, seed: int, scheduler: SchedulerName
) -> None:
    world, machines, made, _ = planned(bench, search, seed)
    run = AppliedPlan(world, machines, scheduler, steers=False)
    pods = workload(run)
    run.apply(made)
    assert made.steps
    assert run.waiting == []
    assert workload(run) == pods
    assert run.price < made.before.price


def workload(run: AppliedPlan) -> int:
    """How many pods there are besides those of DaemonSets."""
    return sum(not pod.is_daemon for pod in run.cluster.store.pods)


def launches(made: Plan) -> int:
    return sum(len(step.command.replacements) for step in made.steps)


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_that_foresees_the_scheduler_ends_near_what_it_says(bench: Any, seed: int) -> None:
    world, machines, made, settings = planned(bench, GLOBAL, seed, Scoring.LEAST_ALLOCATED, nodes=20)
    found = forecast(made, world, machines, settings)
    assert found.unknown == ""
    assert found.price == pytest.approx(made.after.price, rel=WITHIN)
    assert found.launches is not None
    assert found.launches <= launches(made) + MORE_LAUNCHES
    evicted = sum(len(step.command.evicted) for step in made.steps)
    assert found.evictions == pytest.approx(evicted, rel=WITHIN)


@given(clusters(in_motion=True), st.sampled_from(Scoring))
@examples(60)
def test_no_scheduler_makes_a_fleet_cheaper_than_planned(cluster: Cluster, scheduler: Scoring) -> None:
    settings = DisruptionSettings(effort=0, scheduler=scheduler, complete_catalog=True)
    made = plan(cluster.objects, cluster.catalog, now=LONG_AGO + timedelta(hours=12), settings=settings)
    found = forecast(made, cluster.objects, cluster.catalog, settings)
    if found.unknown:
        assert "the catalogue has no type" in found.unknown
    elif found.price is not None:
        assert found.price >= made.after.price - HAIR


@pytest.mark.parametrize("scheduler", [Scoring.ANY, Scoring.LEAST_ALLOCATED])
def test_what_is_printed_is_what_comes_of_the_plan_on_a_virtual_cluster(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheduler: Scoring
) -> None:
    import clusters
    import msgspec

    world, machines, made, _ = planned(bench, GLOBAL, 1, scheduler, nodes=20)
    steers = scheduler is not Scoring.ANY
    run = AppliedPlan(world, machines, "LeastAllocated", steers=steers)
    run.apply(made)
    (tmp_path / "cluster.json").write_bytes(clusters.manifest(world))
    (tmp_path / "catalog.json").write_bytes(msgspec.json.encode(clusters.catalog_entries()))
    monkeypatch.chdir(tmp_path)
    options = ("--at", clusters.NOW.isoformat(), "--effort", "0", "--no-bound", "--scheduler", scheduler.value)
    files = ("-f", "cluster.json", "--catalog", "catalog.json")
    told = CliRunner().invoke(cli, ["plan", *files, *options, "--forecast", "-o", "json"])
    assert told.exit_code == 0, told.stderr
    part = json.loads(told.stdout)["forecast"]
    assert (part["scheduler"], part["foreseen"], part["reason"]) == ("LeastAllocated", steers, "")
    assert part["planned"]["launches"] == launches(made)
    assert part["planned"]["pricePerHour"] == pytest.approx(made.after.price)
    assert part["expected"]["pricePerHour"] == pytest.approx(run.price)
    assert (part["expected"]["evictions"], part["expected"]["launches"]) == (run.evictions, run.launches)


def test_what_a_pool_launches_in_the_place_of_a_node_that_goes_first_is_waited_for() -> None:
    settings = replace(REFERENCE, terminate_first_drift=True, static_capacity=True)
    kept = pool_of(requirements=[("node.kubernetes.io/instance-type", "In", "medium")], replicas=2, limits={"nodes": 2})
    nodes = [node("a", pods=2, claim={"drifted": ago(hours=1)}), node("b")]
    case = Scenario("first", nodes=nodes, pools=[kept], settings=settings)
    made = case.plan(None)
    found = forecast(made, case.objects, case.catalog, settings)
    assert (len(made.steps), found.unknown) == (1, "")
    assert (found.price, found.evictions, found.launches) == (pytest.approx(made.after.price), 2, 1)
