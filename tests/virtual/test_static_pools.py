"""Static pools in a virtual cluster: nodes without pods, scaled up and down, and replaced when they drift."""

from collections.abc import Sequence
from dataclasses import replace as with_fields

from msgspec.structs import replace
from tests.factories import pod
from tests.virtual.doubt import DoubtfulClock
from tests.virtual.worlds import CATALOG, scenario, virtual_cluster

from karpool.catalog.instance_types import Catalog, Offering
from karpool.controller.ports import FactsRead
from karpool.disruption.brakes.ledger import ledger_of
from karpool.disruption.settings import PREFIX
from karpool.execution.fresh_facts import FreshNode
from karpool.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, RESERVATION_ID, RESERVED, ZONE
from karpool.model.nodepool import NodePool
from karpool.model.requirements import Requirements
from karpool.virtual.cluster import VirtualCluster
from karpool.virtual.facts import VirtualFacts
from karpool.virtual.scenario import Decisions, Policy

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


def test_a_drifted_node_of_a_pool_at_its_limit_goes_first_and_is_replaced_then() -> None:
    pools = POOLS.replace("replicas: 3", "replicas: 1").replace("limits: {nodes: 4}", "limits: {nodes: 1}")
    policy = Policy(decisions=Decisions(search=PREFIX, terminate_first_drift=True))
    cluster = VirtualCluster(scenario("workloads: []", pools=pools), CATALOG, policy=policy, seed=0)
    sizes_until(cluster, 600.0)
    (before,) = cluster.store.claims.listed()
    pool = cluster.store.pools.get("fixed")
    assert pool is not None
    change(cluster, template=with_label(pool))
    sizes = sizes_until(cluster, 1800.0)
    assert max(sizes) == 1
    (after,) = cluster.store.claims.listed()
    assert after.name != before.name
    (node,) = cluster.store.nodes.listed()
    assert node.metadata.labels["generation"] == "2"


def test_without_the_gate_a_drifted_node_of_a_pool_at_its_limit_stays() -> None:
    pools = POOLS.replace("replicas: 3", "replicas: 1").replace("limits: {nodes: 4}", "limits: {nodes: 1}")
    cluster = virtual_cluster("workloads: []", pools=pools)
    sizes_until(cluster, 600.0)
    (before,) = cluster.store.claims.listed()
    pool = cluster.store.pools.get("fixed")
    assert pool is not None
    change(cluster, template=with_label(pool))
    sizes_until(cluster, 1200.0)
    assert [claim.name for claim in cluster.store.claims] == [before.name]


RESERVING = """
pools:
- metadata: {name: held}
  spec:
    template:
      spec:
        requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [reserved]}]
    disruption: {consolidateAfter: Never, budgets: [{nodes: "100%"}]}
workloads:
- {name: web, replicas: 1, cpu: 1500m, memory: 1Gi}
"""


def reservation_of_one() -> Catalog:
    """Machines of one type, of which there is one, in a reservation."""
    entry = CATALOG.by_name["c-2x-amd64-linux"]
    place = {ZONE: entry.offerings[0].zone, CAPACITY_TYPE: RESERVED, RESERVATION_ID: "r-1"}
    held = Offering(Requirements.of_labels(place), 0.01, reservation_id="r-1", reservation_capacity=1)
    own = entry.requirements.without(CAPACITY_TYPE)
    return Catalog((with_fields(entry, requirements=own, offerings=(held,)),))


def test_a_drifted_node_in_a_full_reservation_goes_first_and_its_pod_gets_the_slot_again() -> None:
    policy = Policy(decisions=Decisions(search=PREFIX, terminate_first_drift=True))
    cluster = VirtualCluster(scenario(RESERVING, pools=""), reservation_of_one(), policy=policy, seed=0)
    sizes_until(cluster, 600.0)
    (before,) = cluster.store.claims.listed()
    assert before.metadata.labels[CAPACITY_TYPE] == RESERVED
    pool = cluster.store.pools.get("held")
    assert pool is not None
    cluster.store.pools.put(replace(pool, spec=replace(pool.spec, template=with_label(pool))))
    sizes_until(cluster, 1800.0)
    (after,) = [claim for claim in cluster.store.claims if not claim.terminating]
    assert after.name != before.name
    (running,) = [pod for pod in cluster.store.pods if pod.active]
    assert running.spec.node_name == after.status.node_name != ""
