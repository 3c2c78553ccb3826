"""The cloud: what it launches, what it lacks, what it takes away."""

from tests.virtual.worlds import CATALOG, HOUR, POOL, checked_cluster, virtual_cluster

from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE
from karpool.virtual.scenario import Interruptions

SPOT = POOL.replace("[on-demand]", "[spot]")


def test_the_cheapest_type_that_fits_is_launched_at_its_price() -> None:
    cluster = virtual_cluster("workloads: [{name: web, cpu: 1500m, memory: 1Gi, replicas: 1}]")
    cluster.run(300.0)
    (node,) = cluster.store.nodes
    (machine,) = cluster.cloud.instances.values()
    assert node.metadata.labels[INSTANCE_TYPE] == "c-2x-amd64-linux"
    assert node.metadata.labels[CAPACITY_TYPE] == "on-demand"
    assert node.status.allocatable == CATALOG.by_name["c-2x-amd64-linux"].allocatable
    assert machine.price == 0.054294967296
    assert cluster.recorder.summary().cost == round(machine.price * (300.0 - machine.since) / HOUR, 9)


def test_a_type_that_is_short_is_passed_over() -> None:
    cluster = virtual_cluster(
        "faults: [{kind: shortage, start: 0s, length: 1h, instanceTypes: [c-2x-amd64-linux]}]\n"
        "workloads: [{name: web, cpu: 1500m, memory: 1Gi, replicas: 1}]"
    )
    cluster.run(300.0)
    (node,) = cluster.store.nodes
    assert node.metadata.labels[INSTANCE_TYPE] != "c-2x-amd64-linux"


def test_a_claim_that_finds_nothing_is_deleted_and_tried_again_later() -> None:
    cluster = virtual_cluster(
        "faults: [{kind: shortage, start: 0s, length: 30m}]\nworkloads: [{name: web, cpu: 1500m, replicas: 1}]"
    )
    cluster.run(1700.0)
    assert cluster.recorder.summary().failed_launches > 1
    assert not list(cluster.store.nodes)
    cluster.run(HOUR)
    assert len(list(cluster.store.nodes)) == 1
    assert all(pod.bound for pod in cluster.store.pods)


def test_an_interrupted_spot_node_is_replaced() -> None:
    cluster, _ = checked_cluster(
        "faults: [{kind: interruptions, every: 15m}]\nworkloads: [{name: web, cpu: 900m, replicas: 4}]", pools=SPOT
    )
    cluster.run(3 * HOUR)
    summary = cluster.recorder.summary()
    assert summary.interruptions > 1
    assert summary.nodes_launched >= summary.interruptions
    assert summary.pods_at_end + summary.pending_pods_at_end == 4


def test_nobody_interrupts_nodes_on_demand() -> None:
    cluster = virtual_cluster(
        "faults: [{kind: interruptions, every: 30m}]\nworkloads: [{name: web, cpu: 900m, replicas: 4}]"
    )
    cluster.run(3 * HOUR)
    assert isinstance(cluster.scenario.faults[0], Interruptions)
    assert cluster.recorder.summary().interruptions == 0
