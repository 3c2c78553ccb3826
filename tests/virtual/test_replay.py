"""A recorded cluster again: under the same policy it is much as it was, under another one it is not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from tests.factories import node_pool, pod
from tests.virtual.worlds import CATALOG, HOUR, POOL

from karpool.model.objects import Objects
from karpool.recording.observer import Observer
from karpool.recording.writer import RecordingWriter
from karpool.report.simulations.fidelity import fidelities
from karpool.report.simulations.simulation_document import simulation_document
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.compare import Comparison, ScenarioSource, compare
from karpool.virtual.replays.recorded_cluster import RecordedCluster
from karpool.virtual.scenario import RECORDED, Policy, read_scenario

pytestmark = pytest.mark.slow

EVENING = """
workloads:
- {name: web, cpu: 900m, memory: 1Gi, protection: {maxUnavailable: 25%}, deploys: [50m],
   replicas: {steps: [{after: 0s, value: 12}, {after: 30m, value: 20}, {after: 70m, value: 6}]}}
- {name: db, kind: StatefulSet, cpu: 1, memory: 2Gi, replicas: 3}
- {name: batch, kind: Job, cpu: 500m, runs: 4m, replicas: 12}
- {name: agent, kind: DaemonSet, cpu: 50m}
"""
LENGTH = 1.5 * HOUR
SEARCH = (("search", "prefix"),)


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / "evening.recording"
    scenario = read_scenario(POOL + EVENING + "warmUp: 10m\n")
    policy = Policy(decisions=msgspec.convert({"search": "prefix"}, type(Policy().decisions)))
    cluster = VirtualCluster(scenario, CATALOG, policy=policy, seed=3)
    with RecordedCluster(cluster, path):
        cluster.run(600.0 + LENGTH)
    return path


def replayed(path: Path, policies: str = "as-recorded: {}") -> Comparison:
    text = f"recording: {path}\npolicies:\n  {policies}\n".encode()
    source = ScenarioSource(text, lambda: CATALOG, recording=str(path), decisions=SEARCH)
    names = list(source.scenario().policies)
    return compare(source, names, [1], lambda *_: None)


def test_the_recorded_policy_gives_back_what_was_recorded(evening: Path) -> None:
    comparison = replayed(evening)
    recorded, again = (comparison.runs[name][0].summary for name in (RECORDED, "as-recorded"))
    assert recorded.seconds == again.seconds == LENGTH
    assert again.cost == pytest.approx(recorded.cost, rel=0.12)
    assert again.node_hours == pytest.approx(recorded.node_hours, rel=0.15)
    assert again.pods_at_end == pytest.approx(recorded.pods_at_end, abs=2)
    assert again.pods_created == pytest.approx(recorded.pods_created, rel=0.2)
    assert again.pending_pods_at_end == recorded.pending_pods_at_end == 0
    assert abs(again.evictions - recorded.evictions) <= 10
    mean = fidelities(comparison)["as-recorded"].nodes_mean
    assert mean is not None
    assert mean <= 1.5


def test_another_policy_is_compared_and_not_called_fidelity(evening: Path) -> None:
    policies = 'quiet: {pools: {"*": {spec: {disruption: {consolidateAfter: Never}}}}}'
    comparison = replayed(evening, policies)
    assert comparison.runs["quiet"][0].summary.nodes_ended <= 1  # one was going already
    assert comparison.runs["quiet"][0].summary.cost > comparison.runs[RECORDED][0].summary.cost
    document = simulation_document(comparison)
    assert list(document.policies) == [RECORDED, "quiet"]
    assert document.fidelity == {}


def test_the_recorded_run_is_that_of_the_recorder(evening: Path) -> None:
    scenario = read_scenario(POOL + EVENING + "warmUp: 10m\n")
    policy = Policy(decisions=msgspec.convert({"search": "prefix"}, type(Policy().decisions)))
    cluster = VirtualCluster(scenario, CATALOG, policy=policy, seed=3)
    cluster.run(600.0 + LENGTH)
    really = cluster.recorder.summary()
    recorded = replayed(evening).runs[RECORDED][0].summary
    assert recorded.evictions == really.evictions
    assert recorded.nodes_at_end == really.nodes_at_end
    assert recorded.pods_at_end == really.pods_at_end
    assert recorded.node_hours == pytest.approx(really.node_hours, rel=0.02)
    assert recorded.cost == pytest.approx(really.cost, rel=0.02)
    assert recorded.cpu_utilization == pytest.approx(really.cpu_utilization, abs=0.02)


def test_a_replay_is_the_same_every_time(evening: Path) -> None:
    assert replayed(evening).runs == replayed(evening).runs


def test_a_recording_that_began_between_two_ticks_comes_to_its_end(tmp_path: Path) -> None:
    """In tenths of a second from 0.1 on, differences are not tenths: 12.8 - 0.1 is more than 12.7."""
    path, start = tmp_path / "tenths.recording", datetime(2026, 11, 16, 8, tzinfo=UTC)
    with RecordingWriter(path, start) as writer:
        observer = Observer(writer.history, writer.write)
        observer.listed(Objects(node_pools=(node_pool(),)), start + timedelta(seconds=0.1))
        for number in range(200):
            alone = pod(f"alone-{number}", cpu="1m")
            observer.saw("Pod", alone, start + timedelta(seconds=0.1 * (number + 2)))
        observer.alive(start + timedelta(seconds=30))
    summary = replayed(path).runs["as-recorded"][0].summary
    assert summary.pods_created == 200
