"""Gangs in a cluster that lives: bound together or not at all, and no node is launched for a part of one."""

import pytest
from tests.virtual.worlds import HOUR, POOL, pods_of, virtual_cluster

from karpool.virtual.cluster import VirtualCluster

LIMITED = POOL.replace("  spec:\n    template:", '  spec:\n    limits: {cpu: "4"}\n    template:', 1)
GANG = """
workloads:
- {name: train, cpu: "3", memory: 1Gi, replicas: %d, labels: {scheduling.x-k8s.io/pod-group: train}}
"""


def bound(cluster: VirtualCluster, app: str = "train") -> int:
    pods = [pod for pod in cluster.store.pods if pod.metadata.labels.get("app.kubernetes.io/name") == app]
    return sum(pod.bound for pod in pods)


def test_a_gang_gets_its_nodes() -> None:
    cluster = virtual_cluster(GANG % 3)
    cluster.run(HOUR)
    assert (len(pods_of(cluster, "train")), bound(cluster)) == (3, 3)


def test_no_node_is_launched_for_a_part_of_a_gang() -> None:
    cluster = virtual_cluster(GANG % 3, pools=LIMITED)
    cluster.run(HOUR)
    assert (bound(cluster), len(cluster.store.nodes)) == (0, 0)
    assert all(pod.provisionable for pod in cluster.store.pods)


def test_pods_that_are_no_gang_take_what_there_is() -> None:
    cluster = virtual_cluster(GANG.replace("scheduling.x-k8s.io/pod-group", "team") % 3, pools=LIMITED)
    cluster.run(HOUR)
    assert (bound(cluster), len(cluster.store.nodes)) == (1, 1)


@pytest.mark.parametrize(("room", "there"), [(2, 2), (1, 0)])
def test_a_scheduler_binds_a_gang_whole(room: int, there: int) -> None:
    """Nodes of a group without a controller: only the scheduler decides."""
    groups = f"""
nodeGroups: [{{name: fixed, instanceType: c-4x-amd64-linux, size: {room}, most: {room}, zones: [test-zone-a]}}]
"""
    cluster = virtual_cluster(GANG % 2 + groups, pools="")
    cluster.run(600.0)
    assert bound(cluster) == there
