"""Runs a scenario under several policies, each on the same seeds, one after the other or on all cores."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog, PriceOrigin
from karpool.catalog.price_sources import used_origins
from karpool.catalog.spot_history import read_spot_history
from karpool.cluster.node_groups import GroupOptions, with_group_prices
from karpool.model.group_sizes import Sizes
from karpool.model.objects import Objects
from karpool.model.reading.loading import load
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.curves import seconds
from karpool.virtual.initial_cluster import on_machines, with_cluster
from karpool.virtual.market import SpotPrices, spot_prices
from karpool.virtual.recorder import Run
from karpool.virtual.replays.demand import Demand, read_demand, with_demand, without
from karpool.virtual.replays.recorded_policy import beneath, recorded_policy
from karpool.virtual.replays.recorded_run import recorded_run
from karpool.virtual.scenario import (
    RECORDED,
    Policy,
    Scenario,
    SpotHistorySettings,
    read_scenario,
    written_policies,
)
from karpool.wire.duration import parse_duration
from karpool.workers.processes import Progress, run_in_processes

DEFAULT_POLICY: Final = "default"
AS_RECORDED: Final = "as-recorded"
"""The policy of a recording alone: its pools as they were."""
CHUNKS: Final = 500
"""The parts of a run of which progress hears."""
ReportProgress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class ScenarioSource:
    """A scenario that another process can read: its text, and a function that opens its catalogue."""

    text: bytes
    open_catalog: Callable[[], Catalog]
    length: str | None = None
    """How long to measure, if not as the scenario says."""
    files: tuple[str, ...] = ()
    """The files of the initial cluster."""
    recording: str = ""
    """The file of the recording to replay."""
    spot_history: str = ""
    """The file with the history of spot prices."""
    decisions: tuple[tuple[str, Any], ...] = ()
    """Options of decisions that replace those of every policy, by name."""
    pool_label: str = ""
    """The label that names pools and groups of the initial cluster, if not as the scenario says."""
    group_sizes: tuple[tuple[str, Sizes], ...] = ()
    """How small and large its node groups may be, by name."""

    @property
    def groups(self) -> GroupOptions:
        """What is said of the node groups of the initial cluster."""
        return GroupOptions(self.pool_label or None, dict(self.group_sizes))

    def objects(self) -> Objects:
        return self.initial()[0]

    def initial(self) -> tuple[Objects, str]:
        """The initial cluster, and in a sentence what of it cannot be simulated."""
        demand = self.demand()
        if demand is not None:
            return on_machines(with_group_prices(demand.objects, self.groups))
        if not self.files:
            return Objects(), ""
        return on_machines(with_group_prices(load(self.files, stdin=sys.stdin.buffer).objects, self.groups))

    def demand(self) -> Demand | None:
        """What the recorded cluster asked for, if there is a recording."""
        if not self.recording:
            return None
        return without(read_demand(Path(self.recording)), read_scenario(self.text).workloads)

    def scenario(self, initial: Objects | None = None) -> Scenario:
        """The scenario, with at least one policy."""
        scenario = read_scenario(self.text)
        demand = self.demand()
        if demand is not None:
            scenario = with_demand(scenario, demand)
        if self.files or demand is not None:
            scenario = replace(scenario, pool_label=self.pool_label or scenario.pool_label)
            scenario = with_cluster(scenario, self.objects() if initial is None else initial, self.groups)
        if self.spot_history:
            spot = scenario.spot_history or SpotHistorySettings(file=self.spot_history)
            scenario = replace(scenario, spot_history=replace(spot, file=self.spot_history))
        length = scenario.length if self.length is None else parse_duration(self.length)
        recorded = {} if demand is None else recorded_policy(demand.consolidator)
        usual = DEFAULT_POLICY if demand is None else AS_RECORDED
        own = written_policies(self.text)
        policies = {
            name: beneath(policy, own.get(name), recorded)
            for name, policy in (scenario.policies or {usual: Policy()}).items()
        }
        return replace(scenario, length=length, policies={name: self._decided(own) for name, own in policies.items()})

    def inputs(self) -> "RunInputs":
        """All that runs need."""
        objects = self.objects()
        scenario, catalog = self.scenario(objects), self.open_catalog()
        return RunInputs(scenario, catalog, objects, self.demand(), self.spot(scenario, catalog))

    def spot(self, scenario: Scenario, catalog: Catalog) -> SpotPrices | None:
        """The prices of spot markets that runs meet, if there is a history of them."""
        return spot_prices(read_spot_history(Path(self.spot_history)), scenario, catalog) if self.spot_history else None

    def _decided(self, policy: Policy) -> Policy:
        return replace(policy, decisions=replace(policy.decisions, **dict(self.decisions)))


@dataclass(frozen=True)
class Comparison:
    """All runs: for each policy one per seed, in the order of the seeds."""

    scenario: Scenario
    seeds: tuple[int, ...]
    runs: dict[str, tuple[Run, ...]]
    origins: tuple[PriceOrigin, ...] = ()
    """The price lists of the catalogue."""
    used: tuple[PriceOrigin, ...] = ()
    """Where prices of nodes come from."""
    left_out: str = ""
    """What of the initial cluster is not simulated, in a sentence."""
    as_recorded: Policy | None = None
    """The policy of a recording, if it is known."""
    gaps: tuple[tuple[float, float], ...] = ()
    """Of a recording: from when to when nothing was seen, in seconds."""

    def seen(self, time: float) -> bool:
        """Whether somebody looked at the recorded cluster at a time; also where nothing was recorded at all."""
        return not any(since < time < until for since, until in self.gaps)


def run(
    scenario: Scenario,
    catalog: Catalog,
    policy: str,
    seed: int,
    *,
    initial: Objects | None = None,
    demand: Demand | None = None,
    spot: SpotPrices | None = None,
    progress: Progress | None = None,
    observe: Callable[[VirtualCluster], object] | None = None,
) -> Run:
    """One run; `progress` hears how many of 500 parts are done, `observe` gets the cluster before it runs."""
    cluster = VirtualCluster(
        scenario, catalog, policy=scenario.policies[policy], seed=seed, initial=initial, demand=demand, spot=spot
    )
    if observe is not None:
        observe(cluster)
    end = seconds(scenario.warm_up) + seconds(scenario.length)
    for chunk in range(1, CHUNKS + 1):
        cluster.run(end * chunk / CHUNKS)
        if progress is not None:
            progress(chunk)
    recorder = cluster.recorder
    recorder.take_sample()
    return Run(recorder.summary(), tuple(recorder.samples), recorder.pools())


def compare(
    source: ScenarioSource,
    policies: Sequence[str],
    seeds: Sequence[int],
    report: ReportProgress,
    workers: int = 1,
    *,
    observe: Callable[[VirtualCluster], object] | None = None,
) -> Comparison:
    """Every policy on every seed; the result does not depend on the number of workers.

    `observe` gets each cluster before it runs, which then is in this process.
    """
    objects, left_out = source.initial()
    scenario = source.scenario(objects)
    jobs = [(name, seed) for name in policies for seed in seeds]
    catalog = source.open_catalog()
    if workers > 1 and len(jobs) > 1 and observe is None:
        results = _run_in_parallel(source, jobs, report, workers)
    else:
        inputs = RunInputs(scenario, catalog, objects, source.demand(), source.spot(scenario, catalog))
        results = _run_in_turn(inputs, jobs, report, observe)
    runs = {name: tuple(results[name, seed] for seed in seeds) for name in policies}
    demand = source.demand()
    if demand is not None:
        every = seconds(scenario.timings.sample)
        length, spot = seconds(scenario.length), source.spot(scenario, catalog)
        really = recorded_run(Path(source.recording), catalog, length=length, every=every, spot=spot)
        runs = {RECORDED: (really,) * len(seeds), **runs}
    known = demand is not None and demand.consolidator is not None
    return Comparison(
        scenario,
        tuple(seeds),
        runs,
        catalog.origins,
        _used(catalog, scenario, objects, runs),
        left_out,
        beneath(Policy(), {}, recorded_policy(demand.consolidator)) if demand is not None and known else None,
        () if demand is None else demand.gaps,
    )


def _used(
    catalog: Catalog, scenario: Scenario, initial: Objects, runs: Mapping[str, Sequence[Run]]
) -> tuple[PriceOrigin, ...]:
    """Where prices come from: those of the initial nodes, and of the catalogue where pools had more launched."""
    launched = scenario.pools and any(run.summary.nodes_launched for several in runs.values() for run in several)
    if launched or not initial.nodes:
        return catalog.origins
    return used_origins(catalog, (node.metadata.labels for node in initial.nodes))


RunKey = tuple[str, int]
"""A policy and a seed."""


class RunInputs(NamedTuple):
    scenario: Scenario
    catalog: Catalog
    initial: Objects
    demand: Demand | None = None
    spot: SpotPrices | None = None

    def run(self, job: RunKey, progress: Progress, observe: Callable[[VirtualCluster], object] | None = None) -> Run:
        policy, seed = job
        return run(
            self.scenario,
            self.catalog,
            policy,
            seed,
            initial=self.initial,
            demand=self.demand,
            spot=self.spot,
            progress=progress,
            observe=observe,
        )


def _run_in_turn(
    inputs: RunInputs,
    jobs: Sequence[RunKey],
    report: ReportProgress,
    observe: Callable[[VirtualCluster], object] | None,
) -> dict[RunKey, Run]:
    results = {}
    for number, job in enumerate(jobs):

        def progress(chunk: int, number: int = number, name: str = job[0]) -> None:
            report(f"Simulating {name}", number * CHUNKS + chunk, len(jobs) * CHUNKS)

        results[job] = inputs.run(job, progress, observe)
    return results


def _run_in_parallel(
    source: ScenarioSource, jobs: Sequence[RunKey], report: ReportProgress, workers: int
) -> dict[RunKey, Run]:
    from karpool.optimization.warmup import warm_up

    done = dict.fromkeys(jobs, 0)

    def progress(job: RunKey, chunk: int) -> None:
        done[job] = chunk
        report(f"Simulating {len(jobs)} runs", sum(done.values()), len(jobs) * CHUNKS)

    progress(jobs[0], 0)
    warm_up()  # so that the workers find the kernels compiled
    return run_in_processes(partial(_run_job, source), jobs, workers, progress)


@cache
def _inputs(source: ScenarioSource) -> RunInputs:
    return source.inputs()


def _run_job(source: ScenarioSource, job: RunKey, progress: Progress) -> Run:
    return _inputs(source).run(job, progress)
