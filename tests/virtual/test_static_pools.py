"""Static pools in a virtual cluster: nodes without pods, scaled up and down, and replaced when they drift."""

from msgspec.structs import replace
from tests.virtual.worlds import virtual_cluster

from karpool.model.nodepool import NodePool
from karpool.virtual.cluster import VirtualCluster

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
