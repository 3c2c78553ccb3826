"""What is kept up to date by changes equals what is built anew: columns, decision contexts, placements."""

import numpy as np
import pytest
from tests.inflight import with_claims_launched
from tests.virtual.worlds import BY_PREFIXES, CATALOG, HOUR, scenario, virtual_cluster

from karpool.cluster.snapshot import Snapshot
from karpool.disruption.decide import decide
from karpool.execution.tickets import nodes_in_commands
from karpool.packing.engine import Engine
from karpool.packing.kernels.columns import UNPLACED
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.control_plane.feasible_nodes import feasible_nodes

BUSY = """
workloads:
- {name: web, cpu: 900m, memory: 1Gi, protection: {maxUnavailable: 1}, deploysPerDay: 20,
   replicas: {base: 8, noise: {share: 0.4}, bursts: {every: 20m, length: 5m, height: 6}}}
- {name: guarded, cpu: 300m, replicas: 3, annotations: {karpenter.sh/do-not-disrupt: 10m}}
- {name: batch, kind: Job, cpu: 500m, runs: 4m, replicas: 40}
- {name: agent, kind: DaemonSet, cpu: 50m}
"""


def rows_by_name(snapshot: Snapshot) -> dict[str, tuple[list[int], list[int], int]]:
    nodes, width = snapshot.nodes, len(snapshot.resources)
    return {
        name: (nodes.free[row, :width].tolist(), nodes.taken[row, :width].tolist(), int(nodes.live[row]))
        for name, row in nodes.rows.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_cluster_state_shows_what_a_new_snapshot_shows(seed: int) -> None:
    cluster = virtual_cluster(BUSY, seed=seed)
    for minute in range(7, 120, 7):
        cluster.run(minute * 60.0)
        fresh = Snapshot(with_claims_launched(cluster.store.objects(), cluster.cloud.catalog))
        assert rows_by_name(cluster.cluster_state.snapshot) == rows_by_name(fresh)


class Compared(VirtualCluster):
    """Builds a decision context anew at every pass, too."""

    compared = 0

    def compare(self) -> None:
        controller = self.controller
        assert controller.session is not None
        disruption, session = controller._disruption, controller.session
        now, objects = self.now, with_claims_launched(self.store.objects(), self.cloud.catalog)
        policies = disruption.policies(now)
        expected = decide(Engine(Snapshot(objects), CATALOG, session.options), policies, now).commands
        commands = decide(session.engine(), policies, now, disruption._memo).commands
        if not nodes_in_commands(objects):
            # A living context also counts nodes that wait in a command as busy and their pods as moving.
            assert [command.nodes for command in commands] == [command.nodes for command in expected]
            self.compared += 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_a_living_context_decides_as_a_new_one(seed: int) -> None:
    cluster = Compared(scenario(BUSY), CATALOG, policy=BY_PREFIXES, seed=seed)
    assert isinstance(cluster, Compared)
    for step in range(12, 240):
        cluster.run(step * 30.0 + 3.0)
        cluster.compare()
    assert cluster.compared > 30


RULES = """
workloads:
- {name: free, cpu: 700m, replicas: 4}
- name: spread
  cpu: 200m
  replicas: 5
  spec:
    topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: topology.kubernetes.io/zone
      labelSelector: {matchLabels: {app.kubernetes.io/name: spread}}
- name: alone
  cpu: 200m
  replicas: 3
  spec:
    affinity:
      podAntiAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app.kubernetes.io/name: alone}}}
- name: near
  cpu: 100m
  replicas: 2
  spec:
    affinity:
      podAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app.kubernetes.io/name: alone}}}
"""


def test_the_scheduler_knows_every_place_that_the_engine_knows() -> None:
    """The engine also minds zones without nodes, so it may refuse more; what it allows, the scheduler must find."""
    cluster = virtual_cluster(RULES)
    cluster.run(HOUR)
    assert all(pod.bound for pod in cluster.store.pods)
    snapshot = cluster.cluster_state.snapshot
    engine = Engine(snapshot, CATALOG)
    asked = 0
    for row, pod in enumerate(list(snapshot.pods.objects)):
        if pod is None or pod.is_daemon:
            continue
        with engine.what_if() as trial:
            trial.uncount([row])
            (target,) = trial.place([row], exempt=[True], existing_only=True).targets
        home = pod.spec.node_name
        snapshot.remove_pod(pod.key)
        unbound = cluster.cluster_state.store.pods.get(pod.key)
        assert unbound is not None
        snapshot.put_pod(unbound)
        at = snapshot.pods.rows[pod.key]
        snapshot.bindings.unbind(at)
        mask = feasible_nodes(snapshot, at, np.asarray(cluster.cluster_state.open))
        snapshot.bindings.bind(at, home)
        assert mask[snapshot.nodes.rows[home]], f"{pod.key} no longer fits where it is"
        if target != UNPLACED and cluster.cluster_state.open[target]:
            assert mask[target]
            asked += 1
    assert asked > 5
