"""CapacityBuffers in a cluster that lives: room is there before pods need it, and goes when nobody keeps it."""

import pytest
from tests.virtual.worlds import HOUR, checked_cluster

from karpool.virtual.cluster import VirtualCluster

BUFFER = """
buffers:
- metadata: {{name: spare}}
  spec: {{scalableRef: {{kind: Deployment, name: web}}, {size}}}
"""


def cluster(replicas: str, size: str) -> VirtualCluster:
    """Pods of 900m, and a buffer for more of them."""
    workload = f"workloads: [{{name: web, cpu: 900m, memory: 1Gi, replicas: {replicas}}}]"
    return checked_cluster(workload + BUFFER.format(size=size))[0]


def spare(made: VirtualCluster) -> int:
    """How many more pods of 900m all nodes would take now."""
    nodes = made.cluster_state.current().nodes
    return sum(int(nodes.free[row, 0]) // 900 for row in nodes.rows.values())


def test_there_is_room_for_pods_that_are_not_there_yet() -> None:
    without, with_buffer = cluster("2", "replicas: 0"), cluster("2", "replicas: 6")
    without.run(HOUR)
    with_buffer.run(HOUR)
    assert len(without.store.pods) == len(with_buffer.store.pods) == 2
    assert spare(without) < 6 <= spare(with_buffer)
    assert with_buffer.recorder.samples[-1].price_per_hour > without.recorder.samples[-1].price_per_hour


def test_a_node_with_nothing_but_headroom_stays_and_is_evicted_from_by_nobody() -> None:
    made = cluster("1", "replicas: 8")
    made.run(1200.0)
    before = len(made.store.nodes)
    made.run(2 * HOUR)
    assert made.recorder.summary().evictions <= 1
    assert spare(made) >= 8
    assert len(made.store.nodes) <= before


def test_pods_take_the_room_at_once_and_it_is_there_again_soon() -> None:
    made = cluster("{steps: [{after: 0s, value: 1}, {after: 30m, value: 7}]}", "replicas: 6")
    made.run(1799.0)
    nodes = {node.name for node in made.store.nodes}
    made.run(1830.0)
    running = [pod for pod in made.store.pods if pod.status.phase == "Running"]
    assert len(running) == 7
    assert {pod.spec.node_name for pod in running} <= nodes
    made.run(2 * HOUR)
    assert spare(made) >= 6


@pytest.mark.parametrize("share", [50, 100])
def test_a_share_follows_its_workload(share: int) -> None:
    steps = "{steps: [{after: 0s, value: 4}, {after: 1h, value: 16}, {after: 2h, value: 2}]}"
    made = cluster(steps, f"percentage: {share}")
    for hours, replicas in ((1, 4), (2, 16), (3, 2)):
        made.run(hours * HOUR - 1)
        headroom = made.cluster_state.headroom
        assert headroom is not None
        assert len(headroom.pods) == replicas * share // 100
        assert spare(made) >= len(headroom.pods)
    assert len(made.store.nodes) <= 2
