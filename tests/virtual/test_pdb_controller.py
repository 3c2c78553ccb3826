"""PodDisruptionBudgets: their status follows the pods, and evictions wait for them."""

import pytest
from tests.virtual.worlds import HOUR, checked_cluster, pods_of, virtual_cluster

from karpool.virtual.control_plane.pdb_controller import EvictionStatus


@pytest.mark.parametrize(
    ("written", "desired", "allowed"),
    [
        ("maxUnavailable: 1", 5, 1),
        ("maxUnavailable: 50%", 3, 3),
        ("minAvailable: 4", 4, 2),
        ("minAvailable: 60%", 4, 2),
        ("minAvailable: 100%", 6, 0),
    ],
)
def test_status_says_how_many_may_go(written: str, desired: int, allowed: int) -> None:
    cluster = virtual_cluster(f"workloads: [{{name: web, cpu: 100m, replicas: 6, protection: {{{written}}}}}]")
    cluster.run(600.0)
    pdb = cluster.store.pdbs.get("default/web")
    assert pdb is not None
    status = pdb.status
    assert (status.expected_pods, status.current_healthy) == (6, 6)
    assert (status.desired_healthy, status.disruptions_allowed) == (desired, allowed)


def test_a_second_eviction_waits_until_the_first_pod_is_replaced() -> None:
    cluster = virtual_cluster("workloads: [{name: web, cpu: 100m, replicas: 3, protection: {maxUnavailable: 1}}]")
    cluster.run(600.0)
    first, second, _ = sorted(pods_of(cluster, "web"))
    assert cluster.api.evict(f"default/{first}") is EvictionStatus.CREATED
    assert cluster.api.evict(f"default/{second}") is EvictionStatus.TOO_MANY_REQUESTS
    cluster.run(630.0)
    assert cluster.api.evict(f"default/{second}") is EvictionStatus.CREATED
    summary = cluster.recorder.summary()
    assert (summary.evictions, summary.pdb_refusals, summary.pdb_wait_seconds) == (2, 1, 30.0)


def test_consolidation_moves_protected_pods_one_after_the_other() -> None:
    cluster, invariants = checked_cluster(
        "workloads: [{name: web, cpu: 500m, memory: 256Mi, protection: {maxUnavailable: 1}, startTime: 30s,"
        " replicas: {steps: [{after: 0s, value: 14}, {after: 20m, value: 5}]}}]"
    )
    cluster.run(2 * HOUR)
    summary = cluster.recorder.summary()
    assert summary.evictions > 1
    assert summary.pdb_refusals > 0
    assert summary.pdb_wait_seconds > 0
    invariants.expect_nothing_left_over()


def test_a_budget_that_allows_nothing_keeps_the_node() -> None:
    cluster, _ = checked_cluster(
        "workloads: [{name: web, cpu: 500m, protection: {maxUnavailable: 0},"
        " replicas: {steps: [{after: 0s, value: 14}, {after: 20m, value: 5}]}}]"
    )
    cluster.run(2 * HOUR)
    assert cluster.recorder.summary().evictions == 0
