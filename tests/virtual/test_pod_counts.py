"""The pods that controllers keep while pods change are those that the store holds."""

from tests.virtual.worlds import HOUR, virtual_cluster

from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.deployment_controller import DeploymentController

TEXT = """
workloads:
- {name: web, replicas: {base: 12, noise: {share: 0.3}}, cpu: 500m, memory: 1Gi, deploys: [10m, 11m, 40m]}
- {name: agent, kind: DaemonSet, cpu: 50m, memory: 64Mi}
"""


def check_pods(cluster: VirtualCluster) -> None:
    manager = cluster.controller_manager
    for controller in manager.controllers:
        if isinstance(controller, DeploymentController):
            active = {
                pod.key: pod for pod in cluster.store.pods if manager.controller_of(pod) is controller and pod.active
            }
            assert controller.pods == active


def test_pods_kept_by_changes_are_those_of_a_fresh_look() -> None:
    cluster = virtual_cluster(TEXT)
    cluster.queue.observers.append(lambda: check_pods(cluster))
    cluster.run(HOUR)
    assert cluster.controller_manager.controllers[0].revision == 4
    assert len(cluster.store.nodes) > 0
