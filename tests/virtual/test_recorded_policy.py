"""How what consolidated a recorded cluster was set: written, read back, and taken by replays."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from tests.virtual.worlds import CATALOG, POOL

from karpool.controller.ports import Intervals
from karpool.disruption.brakes.readiness import Pacing
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.settings import DisruptionSettings, Scoring, Weights
from karpool.recording.settings import read, settings_of, written
from karpool.report.simulations.fidelity import fidelities
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.compare import ScenarioSource, compare
from karpool.virtual.replays.demand import read_demand
from karpool.virtual.replays.recorded_cluster import RecordedCluster
from karpool.virtual.replays.recorded_policy import beneath, recorded_policy, recorded_timings, settings_of_policy
from karpool.virtual.scenario import Decisions, DrainPaceLimits, Policy, Scenario, Timings, read_scenario
from karpool.wire.duration import parse_duration

POLICY = Policy(
    decisions=Decisions(search="prefix", eviction_price=0.02, spot_floor=7), pace=DrainPaceLimits(workload_percent=10.0)
)


def test_settings_of_a_simulation_come_back_as_its_policy() -> None:
    settings = msgspec.json.decode(msgspec.json.encode(settings_of_policy(POLICY, Scenario())))
    again = beneath(Policy(), {}, recorded_policy(settings))
    assert again == msgspec.structs.replace(POLICY, scheduler="LeastAllocated")
    assert recorded_timings(settings) == Timings()


def test_settings_of_a_controller_come_back_as_a_policy() -> None:
    pacing = Pacing(workload_percent=50.0, pods_percent=0.0, ready_within=timedelta(minutes=2))
    decisions = DisruptionSettings(
        search="prefix",
        effort=1,
        weights=Weights.STRICT,
        scheduler=Scoring.MOST_ALLOCATED,
        brakes=BrakeSettings(pacing=pacing),
    )
    settings = read(written(settings_of(decisions, Intervals(poll=30.0), ignore_dra_requests=False)))
    policy = beneath(Policy(), {}, recorded_policy(settings))
    assert policy.decisions == Decisions(
        search="prefix", effort=1, weights="strict", ignore_dra_requests=False, foresees_scheduler=True
    )
    assert policy.pace == DrainPaceLimits(workload_percent=50.0, pods_percent=0.0, ready_within=parse_duration("2m"))
    assert policy.scheduler == "MostAllocated"
    assert recorded_timings(settings).poll == parse_duration("30s")


def test_what_a_scenario_says_comes_before_what_was_recorded() -> None:
    recorded = recorded_policy(settings_of_policy(POLICY, Scenario()))
    own = {"decisions": {"spotFloor": 3}, "pools": {"*": {"spec": {"weight": 5}}}}
    policy = beneath(msgspec.convert(own, Policy), own, recorded)
    assert (policy.decisions.search, policy.decisions.spot_floor) == ("prefix", 3)
    assert policy.pools == own["pools"]


@pytest.mark.parametrize(
    "settings",
    [
        None,
        {},
        {"policy": 5},
        {"policy": {"decisions": {"effort": 99, "search": 7}, "pace": [], "later": True}},
        {"policy": {"decisions": {"invented": 1}}, "timings": {"poll": "soon", "launch": "1h"}},
    ],
)
def test_what_this_version_does_not_know_is_left_out(settings: dict[str, object] | None) -> None:
    policy = beneath(Policy(), {}, recorded_policy(settings))
    assert policy == Policy()
    assert recorded_timings(settings) == Timings()


@pytest.mark.parametrize("annotation", ["", "no json", "[1]", "[" * 5000, '"' + "x" * 20_000 + '"'])
def test_an_annotation_that_says_nothing_is_none(annotation: str) -> None:
    assert read(annotation) is None


STORY = """
workloads: [{name: web, cpu: 900m, memory: 1Gi, replicas: {steps: [{after: 0s, value: 12}, {after: 30m, value: 3}]}}]
length: 1h
"""


def test_a_replay_is_set_as_the_recorded_run_was(tmp_path: Path) -> None:
    path = tmp_path / "evening.recording"
    scenario = read_scenario(POOL + STORY + "timings: {poll: 20s}\n")
    cluster = VirtualCluster(scenario, CATALOG, policy=POLICY, seed=3)
    with RecordedCluster(cluster, path):
        cluster.run(3600)
    demand = read_demand(path)
    assert demand.consolidator == settings_of_policy(POLICY, scenario)
    source = ScenarioSource(f"recording: {path}\n".encode(), lambda: CATALOG, recording=str(path))
    replayed = source.scenario()
    assert replayed.policies["as-recorded"].decisions == POLICY.decisions
    assert replayed.timings.poll == parse_duration("20s")
    comparison = compare(source, ["as-recorded"], [1], lambda *_: None)
    assert list(fidelities(comparison)) == ["as-recorded"]
    other = ScenarioSource(
        f"recording: {path}\npolicies: {{same: {{}}, eager: {{decisions: {{evictionPrice: 0}}}}}}\n".encode(),
        lambda: CATALOG,
        recording=str(path),
    )
    comparison = compare(other, ["same", "eager"], [1], lambda *_: None)
    assert list(fidelities(comparison)) == ["same"]
