"""What controllers and kubelets count while pods change is what counting them anew gives."""

from collections import Counter

from tests.virtual.worlds import HOUR, virtual_cluster

from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.control_plane.deployment_controller import REVISION, DeploymentController
from karpool.virtual.control_plane.workload_controller import ready

TEXT = """
workloads:
- {name: web, replicas: {base: 12, noise: {share: 0.3}}, cpu: 500m, memory: 1Gi, deploys: [10m, 11m, 40m]}
- {name: agent, kind: DaemonSet, cpu: 50m, memory: 64Mi}
"""


def check_counts(cluster: VirtualCluster) -> None:
    for controller in cluster.controller_manager.controllers:
        if isinstance(controller, DeploymentController):
            pods = controller.pods.values()
            assert +controller._of_revision == Counter(pod.metadata.labels[REVISION] for pod in pods)
            assert +controller._ready == Counter(pod.metadata.labels[REVISION] for pod in pods if ready(pod))


def test_counts_kept_by_changes_are_those_of_a_fresh_look() -> None:
    cluster = virtual_cluster(TEXT)
    cluster.queue.observers.append(lambda: check_counts(cluster))
    cluster.run(HOUR)
    assert cluster.controller_manager.controllers[0].revision == 4
    assert len(cluster.store.nodes) > 0
