"""What metrics say of NodePools."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from tests.factories import claim_for, default_catalog, node, node_of, node_pool, pod
from tests.factories.values import LONG_AGO

from karpool.controller.store import ClusterStore
from karpool.disruption.brakes.harm import Harm
from karpool.disruption.brakes.ledger import LedgerEntry
from karpool.kube.store import Store
from karpool.model.labels import DISRUPTED_TAINT, DISRUPTIONS, HARM
from karpool.model.node import Node
from karpool.model.nodepool import Budget, NodeClaim, NodePool
from karpool.model.pod import Pod
from karpool.observability.metrics import Metrics, PoolSample
from karpool.operator.meters.disruption_meter import measure_disruptions
from karpool.operator.meters.pool_statistics import PoolStatistics
from karpool.operator.pool_nodes import PoolNodes

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
TYPES = default_catalog()


def samples(statistics: PoolStatistics, *, annotated: bool = False) -> list[PoolSample]:
    return statistics.samples(TYPES, NOW, annotated_budgets=annotated)


def stored(*objects: Any) -> ClusterStore:
    store = ClusterStore()
    by_kind: dict[type, Store[Any]] = {
        Node: store.nodes,
        NodeClaim: store.claims,
        NodePool: store.pools,
        Pod: store.pods,
    }
    for item in objects:
        by_kind[type(item)].put(item)
    return store


def test_what_pools_have_written_down_is_shown_and_what_cannot_be_read_is_not() -> None:
    entries = [
        LedgerEntry(command="c1", since=NOW, at=NOW, nodes=2, pods={"a": 3, "b": 1}),
        LedgerEntry(command="c0", since=LONG_AGO, at=LONG_AGO, nodes=9, pods={"a": 9}),
    ]
    harm = Harm(command="c1", at=NOW, pods=4).written()
    metrics = Metrics()
    pools = (
        node_pool("a", annotations={DISRUPTIONS: msgspec.json.encode(entries).decode(), HARM: harm}),
        node_pool("b", annotations={DISRUPTIONS: "?"}),
    )
    measure_disruptions(metrics, pools, NOW)

    def shown(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"karpool_{name}", labels)

    assert shown("disrupted_last_hour", nodepool="a", what="nodes") == 2
    assert shown("disrupted_last_hour", nodepool="a", what="pods") == 4
    assert shown("harmed_pods", nodepool="a") == 4
    assert shown("harmed_pods", nodepool="b") is None


def test_figures_of_a_pool() -> None:
    entry = TYPES.types[3]
    first, second = node_of("one", entry), node_of("two", entry)
    unknown = node("three", type="nobody.knows", pool="default")
    store = stored(
        node_pool(limits={"cpu": "100", "nodes": 5}, budgets=["2"]),
        *(item for made in (first, second, unknown) for item in (made, claim_for(made))),
        pod("a", node="one", cpu="500m"),
        pod("b", node="two", cpu="250m"),
        pod("c", cpu="8"),
        pod("d", node="one", cpu="1", phase="Succeeded"),
        pod("e", node="elsewhere", cpu="1"),
    )
    [sample] = samples(PoolStatistics(store, PoolNodes(store), DISRUPTED_TAINT))
    price = next(offer.price for offer in entry.offerings if offer.capacity_type == "on-demand")
    assert price is not None
    assert (sample.name, sample.nodes, sample.unpriced) == ("default", 3, 1)
    assert sample.cost == pytest.approx(2 * price)
    assert sample.limits == {"cpu": 100.0, "nodes": 5.0}
    assert sample.usage["nodes"] == 3
    assert sample.usage["cpu"] == 2 * entry.capacity["cpu"].milli / 1000 + 4
    assert sample.allocatable["true", "cpu"] == 2 * entry.allocatable["cpu"].milli / 1000 + 4
    assert sample.requested["true", "cpu"] == 0.75
    assert sample.allowed == left(2)


def test_nodes_that_no_pool_has_are_counted_under_no_name() -> None:
    store = stored(node_pool(), node("a", pool=None), node("b", pool="gone"))
    pools = samples(PoolStatistics(store, PoolNodes(store), DISRUPTED_TAINT))
    assert [(sample.name, sample.nodes, dict(sample.allowed)) for sample in pools] == [
        ("default", 0, left(0)),
        ("", 2, {}),
    ]


def test_figures_follow_pods_that_change() -> None:
    store = stored(node_pool(), node("a"), pod("p", node="a", cpu="1"))
    statistics = PoolStatistics(store, PoolNodes(store), DISRUPTED_TAINT)
    before = samples(statistics)[0].requested["false", "cpu"]
    store.pods.put(pod("p", node="a", cpu="2"))
    store.pods.put(pod("q", node="a", cpu="500m"))
    between = samples(statistics)[0].requested["false", "cpu"]
    store.pods.remove(pod("p").key)
    assert (before, between, samples(statistics)[0].requested["false", "cpu"]) == (
        1.0,
        2.5,
        0.5,
    )


def left(nodes: int, *, unhealthy: int | None = None) -> dict[str, int]:
    """As many nodes for every cause, or for repair others."""
    return {
        **dict.fromkeys(("empty", "drifted", "underutilized"), nodes),
        "unhealthy": nodes if unhealthy is None else unhealthy,
    }


@pytest.mark.parametrize(
    ("budgets", "busy", "expected"),
    [
        (["50%"], {}, left(2)),
        (["50%"], {"ready": False}, left(1, unhealthy=2)),
        (
            ["50%"],
            {"taints": ["karpenter.sh/disrupted:NoSchedule"]},
            left(1),
        ),
        (
            ["50%"],
            {"taints": ["karpool.sh/disrupted:NoSchedule"]},
            left(1),
        ),
        (["50%"], {"initialized": False}, left(2)),
        ([Budget(nodes="1", reasons=("Drifted",))], {}, {"empty": 4, "drifted": 1, "underutilized": 4, "unhealthy": 4}),
        (["three"], {}, left(0)),
    ],
)
def test_what_budgets_leave(budgets: list[Any], busy: dict[str, Any], expected: dict[str, float]) -> None:
    nodes = [node("a", **busy), node("b"), node("c"), node("d")]
    store = stored(node_pool(budgets=budgets), *nodes, *map(claim_for, nodes))
    assert samples(PoolStatistics(store, PoolNodes(store), "karpool.sh/disrupted"))[0].allowed == expected


def test_budgets_of_the_annotation_count_where_they_are_asked_for() -> None:
    pool = node_pool(budgets=["0"], annotations={"karpool.sh/budgets": '[{"nodes": "1"}]'})
    store = stored(pool, node("a"), claim_for(node("a")))
    statistics = PoolStatistics(store, PoolNodes(store), DISRUPTED_TAINT)
    assert samples(statistics)[0].allowed["empty"] == 0
    assert samples(statistics, annotated=True)[0].allowed["empty"] == 1


def test_nodes_that_take_part_of_budgets_are_told_by_reason() -> None:
    nodes = [node("a", ready=False), node("b", taints=["karpenter.sh/disrupted:NoSchedule"]), node("c")]
    store = stored(node_pool(), *nodes, *map(claim_for, nodes))
    [sample] = samples(PoolStatistics(store, PoolNodes(store), DISRUPTED_TAINT))
    assert sample.busy == left(2, unhealthy=1)


def test_nodes_without_a_claim_are_told_apart() -> None:
    store = stored(node_pool(), node("a", cpu="4"), node("b", cpu="2"), claim_for(node("b", cpu="2")))
    [sample] = samples(PoolStatistics(store, PoolNodes(store), DISRUPTED_TAINT))
    assert (sample.allocatable["false", "cpu"], sample.allocatable["true", "cpu"]) == (4, 2)
