"""Runs a scenario under several policies, each on the same seeds, one after the other or on all cores."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog
from karpool.model.loading import load
from karpool.model.objects import Objects
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.curves import seconds
from karpool.virtual.initial_cluster import with_cluster
from karpool.virtual.invariants import Invariants
from karpool.virtual.ledger import ClusterSample, PoolShare, Summary
from karpool.virtual.scenario import Policy, Scenario, read_scenario
from karpool.virtual.worker_processes import Far, share_out
from karpool.wire.duration import parse_duration

DEFAULT_POLICY: Final = "default"
_CHUNKS: Final = 500
Tell = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class ScenarioSource:
    """A scenario as another process can read it: its text, and who opens its catalogue."""

    text: bytes
    open_catalog: Callable[[], Catalog]
    length: str | None = None
    """How long to measure, if not as the scenario says."""
    files: tuple[str, ...] = ()
    """Where the cluster is with which the scenario begins."""

    def objects(self) -> Objects:
        """The cluster with which the scenario begins."""
        return load(self.files, stdin=sys.stdin.buffer).objects if self.files else Objects()

    def scenario(self, begins_with: Objects | None = None) -> Scenario:
        """The scenario, with at least one policy."""
        made = read_scenario(self.text)
        if self.files:
            made = with_cluster(made, self.objects() if begins_with is None else begins_with)
        length = made.length if self.length is None else parse_duration(self.length)
        return replace(made, length=length, policies=made.policies or {DEFAULT_POLICY: Policy()})


class Run(NamedTuple):
    """What became of a policy on a seed."""

    summary: Summary
    samples: tuple[ClusterSample, ...]
    pools: dict[str, PoolShare]


@dataclass(frozen=True)
class Comparison:
    """All runs: for each policy one per seed, in the order of the seeds."""

    scenario: Scenario
    seeds: tuple[int, ...]
    runs: dict[str, tuple[Run, ...]]


def run(
    scenario: Scenario,
    catalog: Catalog,
    policy: str,
    seed: int,
    *,
    begins_with: Objects | None = None,
    far: Far | None = None,
    check: bool = False,
) -> Run:
    """One run; `check` has every event looked at for broken rules, `far` is told how many of 500 parts are done."""
    cluster = VirtualCluster(scenario, catalog, policy=scenario.policies[policy], seed=seed, begins_with=begins_with)
    advance = Invariants(cluster).run if check else cluster.run
    end = seconds(scenario.warm_up) + seconds(scenario.length)
    for chunk in range(1, _CHUNKS + 1):
        advance(end * chunk / _CHUNKS)
        if far is not None:
            far(chunk)
    ledger = cluster.ledger
    ledger.take_sample()
    return Run(ledger.summary(), tuple(ledger.samples), ledger.pools())


def compare(
    source: ScenarioSource, policies: Sequence[str], seeds: Sequence[int], tell: Tell, workers: int = 1
) -> Comparison:
    """Every policy on every seed; the result does not depend on the number of workers."""
    objects = source.objects()
    scenario = source.scenario(objects)
    jobs = [(name, seed) for name in policies for seed in seeds]
    if workers > 1 and len(jobs) > 1:
        found = _together(source, jobs, tell, workers)
    else:
        found = _one_by_one(Stage(scenario, source.open_catalog(), objects), jobs, tell)
    runs = {name: tuple(found[name, seed] for seed in seeds) for name in policies}
    return Comparison(scenario, tuple(seeds), runs)


def cores() -> int:
    """How many processes can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Job = tuple[str, int]


class Stage(NamedTuple):
    """What all runs of a process share."""

    scenario: Scenario
    catalog: Catalog
    begins_with: Objects

    def run(self, job: Job, far: Far) -> Run:
        """One run."""
        policy, seed = job
        return run(self.scenario, self.catalog, policy, seed, begins_with=self.begins_with, far=far)


def _one_by_one(stage: Stage, jobs: Sequence[Job], tell: Tell) -> dict[Job, Run]:
    found = {}
    for number, job in enumerate(jobs):

        def far(chunk: int, number: int = number, name: str = job[0]) -> None:
            tell(f"Simulating {name}", number * _CHUNKS + chunk, len(jobs) * _CHUNKS)

        found[job] = stage.run(job, far)
    return found


def _together(source: ScenarioSource, jobs: Sequence[Job], tell: Tell, workers: int) -> dict[Job, Run]:
    from karpool.packing.warmup import warm_up

    done = dict.fromkeys(jobs, 0)

    def heard(job: Job, chunk: int) -> None:
        done[job] = chunk
        tell(f"Simulating {len(jobs)} runs", sum(done.values()), len(jobs) * _CHUNKS)

    heard(jobs[0], 0)
    warm_up()  # so that the workers find the kernels compiled
    return share_out(partial(_work, source), jobs, workers, heard)


@cache
def _opened(source: ScenarioSource) -> Stage:
    objects = source.objects()
    return Stage(source.scenario(objects), source.open_catalog(), objects)


def _work(source: ScenarioSource, job: Job, far: Far) -> Run:
    return _opened(source).run(job, far)
