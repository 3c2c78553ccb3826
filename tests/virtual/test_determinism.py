"""A seed decides everything: the same one gives the same bytes, and policies meet the same workload."""

import msgspec
import pytest
from tests.virtual.worlds import BY_PREFIXES, CATALOG, HOUR, scenario

from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.recorder import RunRecorder
from karpool.virtual.scenario import Policy

BUSY = """
faults: [{kind: interruptions, every: 1h}]
workloads:
- {name: web, cpu: 900m, memory: 1Gi, protection: {maxUnavailable: 1}, deploysPerDay: 20,
   replicas: {base: 6, noise: {share: 0.4}, bursts: {every: 20m, length: 5m, height: 4}}}
- {name: batch, kind: Job, cpu: 500m, runs: 4m, replicas: 20}
- {name: agent, kind: DaemonSet, cpu: 50m}
"""


def run(seed: int, policy: Policy = BY_PREFIXES) -> VirtualCluster:
    cluster = VirtualCluster(scenario(BUSY), CATALOG, policy=policy, seed=seed)
    cluster.run(HOUR)
    return cluster


def encoded(recorder: RunRecorder) -> bytes:
    return msgspec.json.encode([recorder.summary(), recorder.samples])


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert encoded(run(3).recorder) == encoded(run(3).recorder)


@pytest.mark.slow
def test_another_seed_gives_another_run() -> None:
    assert encoded(run(3).recorder) != encoded(run(4).recorder)


@pytest.mark.slow
def test_policies_meet_the_same_workload() -> None:
    wanted = []
    for policy in (BY_PREFIXES, Policy(disruption=False)):
        cluster = VirtualCluster(scenario(BUSY), CATALOG, policy=policy, seed=5)
        seen = []
        for minute in range(1, 120):
            cluster.run(minute * 60.0)
            seen.append(cluster.controller_manager.controllers[0].replicas)
        wanted.append(seen)
    assert wanted[0] == wanted[1]
    assert len(set(wanted[0])) > 3
