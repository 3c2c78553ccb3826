"""Pods get nodes, controllers keep their pods, fewer pods lead to fewer nodes."""

import pytest
from tests.virtual.worlds import HOUR, POOL, checked_cluster, pods_of, virtual_cluster

from karpool.model.labels import HOSTNAME


def test_pending_pods_get_nodes_and_run() -> None:
    cluster, _ = checked_cluster("workloads: [{name: web, cpu: 900m, memory: 1Gi, replicas: 6}]")
    cluster.run(600.0)
    pods = list(cluster.store.pods)
    assert len(pods) == 6
    assert all(pod.status.phase == "Running" and pod.spec.node_name in cluster.store.nodes for pod in pods)
    assert all(node.metadata.labels[HOSTNAME] == node.name for node in cluster.store.nodes)


def test_fewer_pods_lead_to_fewer_or_smaller_nodes() -> None:
    cluster, invariants = checked_cluster(
        "workloads: [{name: web, cpu: 900m, memory: 1Gi,"
        " replicas: {steps: [{after: 0s, value: 12}, {after: 20m, value: 2}]}}]"
    )
    cluster.run(1200.0)
    before = cluster.recorder.samples[-1].price_per_hour
    cluster.run(1.5 * HOUR)
    assert cluster.recorder.summary().evictions > 0
    assert cluster.recorder.samples[-1].price_per_hour < before / 2
    invariants.expect_nothing_left_over()


def test_without_disruption_nodes_stay() -> None:
    never = POOL.replace("30s", "Never")
    cluster = virtual_cluster(
        "workloads: [{name: web, cpu: 900m, replicas: {steps: [{after: 0s, value: 12}, {after: 20m, value: 2}]}}]",
        pools=never,
    )
    cluster.run(1.5 * HOUR)
    assert cluster.recorder.summary().evictions == 0
    assert cluster.recorder.summary().nodes_ended == 0


def test_a_stateful_pod_comes_back_under_its_name() -> None:
    cluster = virtual_cluster("workloads: [{name: db, kind: StatefulSet, cpu: 500m, replicas: 3}]")
    cluster.run(600.0)
    assert sorted(pods_of(cluster, "db")) == ["db-0", "db-1", "db-2"]
    before = cluster.store.pods.get("default/db-1")
    cluster.api.evict("default/db-1")
    cluster.run(700.0)
    after = cluster.store.pods.get("default/db-1")
    assert before is not None
    assert after is not None
    assert after.metadata.uid != before.metadata.uid
    assert after.bound


def test_jobs_run_to_their_end_and_are_cleared_away() -> None:
    cluster = virtual_cluster("workloads: [{name: batch, kind: Job, cpu: 500m, replicas: 60, runs: 1m}]")
    cluster.run(HOUR)
    assert cluster.recorder.summary().pods_created > 30
    assert len(pods_of(cluster, "batch")) < 10


def test_an_evicted_job_begins_again() -> None:
    cluster = virtual_cluster("workloads: [{name: batch, kind: Job, cpu: 500m, replicas: 60, runs: 10m}]")
    cluster.run(900.0)
    wanted = cluster.controller_manager.controllers[0].replicas
    cluster.api.evict(f"default/{pods_of(cluster, 'batch')[0]}")
    cluster.run(910.0)
    assert len([pod for pod in cluster.store.pods if pod.active]) >= wanted


def test_a_daemon_runs_on_every_node() -> None:
    cluster = virtual_cluster(
        "workloads: [{name: web, cpu: '3', replicas: 5}, {name: agent, kind: DaemonSet, cpu: 50m, memory: 50Mi}]"
    )
    cluster.run(900.0)
    homes = sorted(pod.spec.node_name for pod in cluster.store.pods if pod.is_daemon)
    assert len(homes) > 1
    assert homes == sorted(node.name for node in cluster.store.nodes)


def test_a_deploy_replaces_all_pods_and_keeps_three_quarters_serving() -> None:
    cluster = virtual_cluster("workloads: [{name: web, cpu: 250m, replicas: 8, deploys: [20m]}]")
    cluster.run(1199.0)
    before = set(pods_of(cluster, "web"))
    least = 8
    for second in range(1200, 2400, 2):
        cluster.run(float(second))
        least = min(least, sum(pod.active and pod.status.phase == "Running" for pod in cluster.store.pods))
    assert len(pods_of(cluster, "web")) == 8
    assert not before & set(pods_of(cluster, "web"))
    assert least >= 6


@pytest.mark.parametrize(("scoring", "spread"), [("LeastAllocated", True), ("MostAllocated", False)])
def test_the_scheduler_spreads_or_packs(scoring: str, *, spread: bool) -> None:
    """Pods of several workloads: those of one are spread by every scheduler."""

    def small(number: int) -> str:
        return (
            f"{{name: small-{number}, cpu: 100m, memory: 1Gi,"
            " replicas: {steps: [{after: 0s, value: 0}, {after: 10m, value: 1}]}}"
        )

    cluster = virtual_cluster(
        f"scheduler: {scoring}\nworkloads: [{{name: big, cpu: '7', replicas: 2}}, {', '.join(map(small, range(4)))}]",
        pools=POOL.replace("30s", "Never"),
    )
    cluster.run(900.0)
    homes = {pod.spec.node_name for pod in cluster.store.pods if pod.name.startswith("small")}
    assert (len(homes) > 1) is spread
