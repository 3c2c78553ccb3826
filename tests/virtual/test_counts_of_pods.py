"""What owners and kubelets count while pods change is what counting them anew gives."""

from collections import Counter

from tests.virtual.worlds import HOUR, cluster

from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.deployments import REVISION, DeploymentOwner
from karpool.virtual.owners import ready

TEXT = """
workloads:
- {name: web, replicas: {base: 12, noise: {share: 0.3}}, cpu: 500m, memory: 1Gi, deploys: [10m, 11m, 40m]}
- {name: agent, kind: DaemonSet, cpu: 50m, memory: 64Mi}
"""


def check_counts(made: VirtualCluster) -> None:
    for owner in made.workloads.owners:
        if isinstance(owner, DeploymentOwner):
            pods = owner.pods.values()
            assert +owner._of_revision == Counter(pod.metadata.labels[REVISION] for pod in pods)
            assert +owner._serving == Counter(pod.metadata.labels[REVISION] for pod in pods if ready(pod))
    on = {(pod.spec.node_name, pod.key) for pod in made.store.pods if pod.bound}
    assert {(name, key) for name, keys in made.kubelets._on.items() for key in keys} == on
    arrivals = made.kubelets._arrivals
    assert sorted(arrivals, key=arrivals.__getitem__) == [pod.key for pod in made.store.pods]


def test_counts_kept_by_changes_are_those_of_a_fresh_look() -> None:
    made = cluster(TEXT)
    made.queue.run(HOUR, each=lambda: check_counts(made))
    assert made.workloads.owners[0].revision == 4
    assert len(made.store.nodes) > 0
