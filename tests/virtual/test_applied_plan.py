"""Plans that are carried out while a scheduler places the pods as it likes, not where the plan has them."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from karpool.disruption.settings import GLOBAL, PREFIX, DisruptionSettings

pytestmark = pytest.mark.slow

SCHEDULERS = ["LeastAllocated", "MostAllocated"]


@cache
def planned(bench: Any, search: str, seed: int) -> tuple[Any, Any, Any]:
    """A cluster, its instance types, and the plan for it, made once for all schedulers."""
    world, machines = bench.generate(40, seed), bench.catalog()
    return world, machines, bench.planned(world, machines, DisruptionSettings(search=search, effort=0))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark that carries plans out."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import applied

    return applied


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("search", [PREFIX, GLOBAL])
@pytest.mark.parametrize("seed", range(2))
def test_every_pod_runs_wherever_the_scheduler_puts_it(bench: Any, search: str, seed: int, scheduler: str) -> None:
    world, machines, made = planned(bench, search, seed)
    run = bench.AppliedPlan(world, machines, scheduler)
    pods = workload(run)
    run.apply(made)
    assert made.steps
    assert run.waiting == []
    assert workload(run) == pods
    assert run.price < made.before.price


def workload(run: Any) -> int:
    """How many pods there are besides those of DaemonSets."""
    return sum(not pod.is_daemon for pod in run.cluster.store.pods)
