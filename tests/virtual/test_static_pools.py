"""Static pools in a virtual cluster: nodes without pods, scaled up and down, and replaced when they drift."""

from collections.abc import Sequence

from msgspec.structs import replace
from tests.factories import pod
from tests.virtual.doubt import DoubtfulClock
from tests.virtual.worlds import CATALOG, scenario, virtual_cluster

from karpool.controller.ports import FactsRead
from karpool.disruption.brakes.ledger import ledger_of
from karpool.execution.fresh_facts import FreshNode
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.nodepool import NodePool
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.facts import VirtualFacts

POOLS = """
pools:
- metadata: {name: fixed}
  spec:
    replicas: 3
    limits: {nodes: 4}
    template:
      spec:
        requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
    disruption: {consolidateAfter: 30s, budgets: [{nodes: "2"}]}
"""


def change(cluster: VirtualCluster, **spec: object) -> None:
    pool = cluster.store.pools.get("fixed")
    assert pool is not None
    cluster.store.pools.put(replace(pool, spec=replace(pool.spec, **spec)))


def sizes_until(cluster: VirtualCluster, until: float) -> list[int]:
    """How many claims there are while time passes."""
    sizes = []
    while cluster.world.queue.time < until:
        cluster.run(cluster.world.queue.time + 5.0)
        sizes.append(len(cluster.store.claims))
    return sizes


def with_label(pool: NodePool) -> object:
    template = pool.spec.template
    return replace(template, metadata=replace(template.metadata, labels={"generation": "2"}))


def test_a_static_pool_keeps_its_nodes_without_pods_and_follows_its_replicas() -> None:
    cluster = virtual_cluster("workloads: []", pools=POOLS)
    sizes = sizes_until(cluster, 600.0)
    assert max(sizes) == 3
    assert len(cluster.store.nodes) == 3
    change(cluster, replicas=1)
    sizes_until(cluster, 1200.0)
    assert len(cluster.store.nodes) == len(cluster.store.claims) == 1
    change(cluster, replicas=9)
    assert max(sizes_until(cluster, 1800.0)) == 4
    assert len(cluster.store.nodes) == 4


def test_drifted_static_nodes_are_replaced_one_by_one_within_the_limit() -> None:
    cluster = virtual_cluster("workloads: []", pools=POOLS)
    sizes_until(cluster, 600.0)
    before = {node.name for node in cluster.store.nodes}
    pool = cluster.store.pools.get("fixed")
    assert pool is not None
    change(cluster, template=with_label(pool))
    sizes = sizes_until(cluster, 3600.0)
    assert (min(sizes), max(sizes)) == (3, 4)
    assert not before & {node.name for node in cluster.store.nodes}
    assert {node.metadata.labels["generation"] for node in cluster.store.nodes} == {"2"}
    assert len(cluster.store.nodes) == 3


class NewsOf(VirtualFacts):
    """Facts that nobody's cache has: a node that cannot be read, and one with a pod that must not be disrupted."""

    def __init__(self, cluster: VirtualCluster, *, lost: str = "", guarded: str = "") -> None:
        super().__init__(cluster.store)
        self.lost = lost
        self.guarded = guarded

    def read(self, nodes: Sequence[str], done: FactsRead) -> None:
        facts = dict(self.facts_of(nodes))
        if self.lost in facts:
            facts[self.lost] = FreshNode(problem="the API server does not answer")
        if self.guarded in facts:
            kept = pod("kept", node=self.guarded, annotations={DO_NOT_DISRUPT: "true"})
            facts[self.guarded] = FreshNode(facts[self.guarded].node, (kept,))
        done(facts)


def test_surplus_nodes_stay_while_the_time_is_in_doubt() -> None:
    cluster = VirtualCluster(scenario("workloads: []", pools=POOLS), CATALOG, seed=0)
    cluster.controller.clock = DoubtfulClock(cluster.queue, begins=600.0, ends=1200.0)
    cluster.run(601.0)
    change(cluster, replicas=1)
    cluster.run(1199.0)
    assert [claim.terminating for claim in cluster.store.claims] == [False] * 3
    cluster.run(1500.0)
    assert len(cluster.store.claims) == 1


def test_a_surplus_node_that_cannot_be_read_stays_and_one_that_got_a_guarded_pod_goes_last() -> None:
    cluster = virtual_cluster("workloads: []", pools=POOLS)
    cluster.run(600.0)
    lost, guarded, other = sorted(node.name for node in cluster.store.nodes)
    session = cluster.controller.session
    assert session is not None
    session.facts = NewsOf(cluster, lost=lost, guarded=guarded)
    change(cluster, replicas=2)
    cluster.run(900.0)
    assert {node.name for node in cluster.store.nodes} == {lost, guarded}
    (entry,) = ledger_of(cluster.store.pools.listed()[0])
    assert (entry.names, entry.committed) == (other, True)
    change(cluster, replicas=0)
    cluster.run(1200.0)
    assert [claim.status.node_name for claim in cluster.store.claims if not claim.terminating] == [lost]
