"""Random clusters start legally, so that whatever is wrong afterwards is the engine's doing."""

from collections.abc import Iterator

from hypothesis import given
from msgspec.structs import replace

from tests.checker import Placement, state_of, violations
from tests.examples import examples
from tests.strategies import Cluster, clusters


@given(clusters())
@examples(50)
def test_every_pod_of_a_random_cluster_runs_where_it_may(cluster: Cluster) -> None:
    objects = cluster.objects
    full, bare = state_of(objects), state_of(replace(objects, pods=()))
    placed = [Placement(bound.pod, bare.machines[bound.machine.name]) for bound in full.bound_pods]
    assert violations(bare, placed) == []
    assert all(pod.bound or pod.provisionable for pod in objects.pods)


def test_random_clusters_show_what_they_should() -> None:
    """Each feature turns up in some cluster; a strategy that never draws one would prove nothing."""
    seen: set[str] = set()

    @given(clusters())
    @examples(150)
    def collect(cluster: Cluster) -> None:
        seen.update(_features(cluster))

    collect()
    assert seen >= {"spread", "near", "anti", "ports", "claims", "daemon pods", "pending", "running", "tainted"}


def _features(cluster: Cluster) -> Iterator[str]:
    for pod in cluster.objects.pods:
        yield "running" if pod.bound else "pending"
        if pod.is_daemon:
            yield "daemon pods"
        if pod.bound and pod.spec.topology_spread_constraints:
            yield "spread"
        if pod.bound and pod.spec.affinity is not None:
            yield from ("near",) if pod.spec.affinity.pod_affinity else ()
            yield from ("anti",) if pod.spec.affinity.pod_anti_affinity else ()
        if pod.bound and pod.spec.volumes:
            yield "claims"
        if pod.bound and not pod.is_daemon and any(container.ports for container in pod.spec.containers):
            yield "ports"
    if any(node.spec.taints for node in cluster.objects.nodes):
        yield "tainted"
