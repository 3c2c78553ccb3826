"""Pods get nodes, controllers keep their pods, fewer pods lead to fewer nodes."""

import pytest
from tests.virtual.worlds import HOUR, POOL, cluster, pods_of, watched

from karpool.model.labels import HOSTNAME


def test_pending_pods_get_nodes_and_run() -> None:
    made, _ = watched("workloads: [{name: web, cpu: 900m, memory: 1Gi, replicas: 6}]")
    made.run(600.0)
    pods = list(made.store.pods)
    assert len(pods) == 6
    assert all(pod.status.phase == "Running" and pod.spec.node_name in made.store.nodes for pod in pods)
    assert all(node.metadata.labels[HOSTNAME] == node.name for node in made.store.nodes)


def test_fewer_pods_lead_to_fewer_or_smaller_nodes() -> None:
    made, rules = watched(
        "workloads: [{name: web, cpu: 900m, memory: 1Gi,"
        " replicas: {steps: [{after: 0s, value: 12}, {after: 20m, value: 2}]}}]"
    )
    made.run(1200.0)
    before = made.recorder.samples[-1].price_per_hour
    made.run(1.5 * HOUR)
    assert made.recorder.summary().evictions > 0
    assert made.recorder.samples[-1].price_per_hour < before / 2
    rules.expect_nothing_left_over()


def test_without_disruption_nodes_stay() -> None:
    never = POOL.replace("30s", "Never")
    made = cluster(
        "workloads: [{name: web, cpu: 900m, replicas: {steps: [{after: 0s, value: 12}, {after: 20m, value: 2}]}}]",
        pools=never,
    )
    made.run(1.5 * HOUR)
    assert made.recorder.summary().evictions == 0
    assert made.recorder.summary().nodes_ended == 0


def test_a_stateful_pod_comes_back_under_its_name() -> None:
    made = cluster("workloads: [{name: db, kind: StatefulSet, cpu: 500m, replicas: 3}]")
    made.run(600.0)
    assert sorted(pods_of(made, "db")) == ["db-0", "db-1", "db-2"]
    before = made.store.pods.get("default/db-1")
    made.api.evict("default/db-1")
    made.run(700.0)
    after = made.store.pods.get("default/db-1")
    assert before is not None
    assert after is not None
    assert after.metadata.uid != before.metadata.uid
    assert after.bound


def test_jobs_run_to_their_end_and_are_cleared_away() -> None:
    made = cluster("workloads: [{name: batch, kind: Job, cpu: 500m, replicas: 60, runs: 1m}]")
    made.run(HOUR)
    assert made.recorder.summary().pods_created > 30
    assert len(pods_of(made, "batch")) < 10


def test_an_evicted_job_begins_again() -> None:
    made = cluster("workloads: [{name: batch, kind: Job, cpu: 500m, replicas: 60, runs: 10m}]")
    made.run(900.0)
    wanted = made.controller_manager.controllers[0].replicas
    made.api.evict(f"default/{pods_of(made, 'batch')[0]}")
    made.run(910.0)
    assert len([pod for pod in made.store.pods if pod.active]) >= wanted


def test_a_daemon_runs_on_every_node() -> None:
    made = cluster(
        "workloads: [{name: web, cpu: '3', replicas: 5}, {name: agent, kind: DaemonSet, cpu: 50m, memory: 50Mi}]"
    )
    made.run(900.0)
    homes = sorted(pod.spec.node_name for pod in made.store.pods if pod.is_daemon)
    assert len(homes) > 1
    assert homes == sorted(node.name for node in made.store.nodes)


def test_a_deploy_replaces_all_pods_and_keeps_three_quarters_serving() -> None:
    made = cluster("workloads: [{name: web, cpu: 250m, replicas: 8, deploys: [20m]}]")
    made.run(1199.0)
    before = set(pods_of(made, "web"))
    least = 8
    for second in range(1200, 2400, 2):
        made.run(float(second))
        least = min(least, sum(pod.active and pod.status.phase == "Running" for pod in made.store.pods))
    assert len(pods_of(made, "web")) == 8
    assert not before & set(pods_of(made, "web"))
    assert least >= 6


@pytest.mark.parametrize(("scoring", "spread"), [("LeastAllocated", True), ("MostAllocated", False)])
def test_the_scheduler_spreads_or_packs(scoring: str, *, spread: bool) -> None:
    made = cluster(
        f"scheduler: {scoring}\n"
        "workloads: [{name: big, cpu: '7', replicas: 2},"
        " {name: small, cpu: 50m, memory: 50Mi, replicas: {steps: [{after: 0s, value: 0}, {after: 10m, value: 4}]}}]",
        pools=POOL.replace("30s", "Never"),
    )
    made.run(900.0)
    homes = {pod.spec.node_name for pod in made.store.pods if pod.name.startswith("small")}
    assert (len(homes) > 1) is spread
