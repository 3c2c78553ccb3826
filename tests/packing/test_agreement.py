"""The compiled engine and its plain twin give the same answer on every cluster."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karpool.cluster.constraints import Preferences
from karpool.cluster.nodes import join
from karpool.model.pod import Pod
from karpool.packing import ask, twin
from karpool.packing.question import Answer, Options
from tests.strategies import Cluster, clusters


def comparable(answer: Answer) -> object:
    nodes = [(n.pool, n.requirements, n.instance_types, frozenset(n.pods), n.reservations) for n in answer.new_nodes]
    return dict(answer.placed), nodes, sorted(answer.unplaced)


def movers(cluster: Cluster, gone: set[str]) -> list[Pod]:
    pods = cluster.objects.pods
    return [pod for pod in pods if pod.reschedulable and (not pod.bound or pod.spec.node_name in gone)]


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data(), cluster=clusters())
def test_engine_and_twin_agree(data: st.DataObject, cluster: Cluster) -> None:
    names = sorted(state.name for state in join(cluster.objects.nodes, cluster.objects.node_claims))
    gone = set(data.draw(st.lists(st.sampled_from(names), max_size=3, unique=True), label="gone"))
    closed = data.draw(st.lists(st.sampled_from(names), max_size=3, unique=True), label="closed")
    options = Options(preferences=data.draw(st.sampled_from(list(Preferences))), seed=data.draw(st.integers(0, 2)))
    pods = movers(cluster, gone)
    asked = {"pods": pods, "gone": gone, "closed": closed, "options": options}
    assert comparable(ask.place(cluster.objects, cluster.catalog, **asked)) == comparable(
        twin.place(cluster.objects, cluster.catalog, **asked)
    )
