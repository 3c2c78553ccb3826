"""The stand-in for Cluster Autoscaler: what the compactor's story rests on."""

import pytest
from tests.virtual.worlds import CATALOG, HOUR, scenario, virtual_cluster

from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.scenario import Policy, ScenarioError

GROUP = """nodeGroups:
- {name: pool, instanceType: c-4x-amd64-linux, size: 4, least: 1, most: 6,
   labels: {eks.amazonaws.com/nodegroup: pool}}
"""
SIXTY_PERCENT = """workloads:
- {name: web, cpu: 1150m, memory: 256Mi, replicas: {steps: [{after: 0s, value: 0}, {after: 5m, value: 8}]}}
"""
COMPACTED = """policies:
  compacted:
    compactor:
      nodePools:
        pool: {enabled: true, scaleDownCPURequestRatioLimit: 0.75, scaleDownRequiredUnderutilizedNodeCount: 2}
"""


def nodes(text: str, hours: float = 1.0) -> int:
    cluster = virtual_cluster(GROUP + text, pools="")
    cluster.run(hours * HOUR)
    assert all(pod.bound for pod in cluster.store.pods)
    return len(list(cluster.store.nodes))


def test_nodes_under_half_used_go_until_the_rest_is_full() -> None:
    assert nodes("workloads: [{name: web, cpu: 700m, memory: 256Mi, replicas: 5}]", 3.0) == 1


def test_nodes_at_sixty_percent_all_stay() -> None:
    assert nodes(SIXTY_PERCENT, 3.0) == 4


def test_nothing_goes_within_ten_minutes() -> None:
    cluster = virtual_cluster(GROUP, pools="")
    cluster.run(590.0)
    assert len(list(cluster.store.nodes)) == 4
    cluster.run(1200.0)
    assert len(list(cluster.store.nodes)) == 1


def test_a_policy_may_leave_the_groups_out() -> None:
    cluster = VirtualCluster(scenario(GROUP, pools=""), CATALOG, policy=Policy(node_groups=False))
    cluster.run(HOUR)
    assert not list(cluster.store.nodes)


def test_a_policy_may_bring_a_compactor() -> None:
    compacted = scenario(GROUP + SIXTY_PERCENT + COMPACTED, pools="")
    cluster = VirtualCluster(compacted, CATALOG, policy=compacted.policies["compacted"])
    cluster.run(3 * HOUR)
    assert len(list(cluster.store.nodes)) < 4


def test_pending_pods_bring_nodes_up_to_the_most() -> None:
    assert nodes("workloads: [{name: web, cpu: '3', memory: 256Mi, replicas: 6}]") == 6


def test_a_type_that_is_not_offered_is_refused() -> None:
    with pytest.raises(ScenarioError, match="offers no on-demand x-1"):
        virtual_cluster("nodeGroups: [{name: pool, instanceType: x-1}]", pools="")
    assert CATALOG.by_name
