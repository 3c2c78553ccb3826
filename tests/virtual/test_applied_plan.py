"""Plans that are carried out while a scheduler places the pods as it likes, not where the plan has them."""

from pathlib import Path
from typing import Any

import pytest

from karpool.disruption.settings import GLOBAL, DisruptionSettings

SCHEDULERS = ["LeastAllocated", "MostAllocated"]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark that carries plans out."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import applied

    return applied


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("search", ["prefix", GLOBAL])
@pytest.mark.parametrize("seed", range(2))
def test_every_pod_runs_wherever_the_scheduler_puts_it(bench: Any, search: str, seed: int, scheduler: str) -> None:
    world, machines = bench.generate(40, seed), bench.catalog()
    made = bench.planned(world, machines, DisruptionSettings(search=search, effort=1))
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
