"""What is suggested in the place of node groups: never dearer than other ways to fill nodes, and nothing mixed up."""

from collections.abc import Iterator, Sequence
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.factories import LONG_AGO, Z1, anti_affinity, instance_type, node, pod
from tests.tables import row, table

from karpool.catalog.instance_types import Catalog
from karpool.cluster.node_groups import with_groups
from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import context_of
from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.suggestions import Suggestions, suggestions
from karpool.model.labels import ON_DEMAND, SPOT
from karpool.model.node import Node
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.options import Options

GROUP = "eks.amazonaws.com/nodegroup"
SIZES = {"xs": 1, "s": 2, "m": 4, "l": 8, "xl": 16}
Prices = dict[str, float]


def catalog_of(prices: Prices, spot: float = 0.3) -> Catalog:
    """Types of `SIZES` at these prices, for a part of them on spot; what one has, pods may use."""
    return Catalog(
        tuple(
            instance_type(
                name, SIZES[name], "64Gi", price=price, spot_price=spot * price, zones=[Z1], overhead={"cpu": 0}
            )
            for name, price in prices.items()
        )
    )


def member(name: str, group: str, kind: str, capacity_type: str = ON_DEMAND) -> Node:
    labels = {GROUP: group, "karpenter.sh/capacity-type": capacity_type}
    return node(name, type=kind, pool=None, zone=Z1, cpu=SIZES[kind], memory="64Gi", labels=labels)


def suggested(nodes: Sequence[Node], pods: Sequence[Pod], catalog: Catalog, today: Prices) -> Suggestions:
    """What is suggested for a cluster; `today`: prices of nodes by type."""

    def context(objects: Objects) -> DecisionContext:
        return context_of(objects, catalog, now=LONG_AGO, settings=DisruptionSettings(), options=Options())

    objects = with_groups(Objects(nodes=tuple(nodes), pods=tuple(pods)))
    prices = {entry.name: today[entry.metadata.labels["node.kubernetes.io/instance-type"]] for entry in nodes}
    return suggestions(objects, catalog, prices, context)


def of_one_group(cores: Sequence[int], prices: Prices, kind: str) -> Suggestions:
    """Pods that ask for so many cores, each on a node of its own."""
    nodes = [member(f"n{at}", "web", kind) for at in range(len(cores))]
    pods = [pod(f"web-{at}", cpu=each, memory="1Mi", node=f"n{at}") for at, each in enumerate(cores)]
    return suggested(nodes, pods, catalog_of(prices), prices)


def least(cores: Sequence[int], prices: Prices) -> float:
    """The price of the cheapest fleet, by trying all."""
    return min(sum(_cheapest(load, prices) for load in loads) for loads in _loads(sorted(cores)))


def _cheapest(load: int, prices: Prices) -> float:
    return min((price for name, price in prices.items() if SIZES[name] >= load), default=float("inf"))


def _loads(cores: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every way to share pods out, as the loads of nodes."""
    start: set[tuple[int, ...]] = {()}
    yield from reduce(lambda ways, more: {way for old in ways for way in _with(old, more)}, cores, start)


def _with(loads: tuple[int, ...], more: int) -> Iterator[tuple[int, ...]]:
    yield tuple(sorted((*loads, more)))
    for at, load in enumerate(loads):
        yield tuple(sorted((*loads[:at], load + more, *loads[at + 1 :])))


EVEN = {"xs": 0.1, "s": 0.2, "m": 0.4, "l": 0.8, "xl": 1.6}
DEAR_WHEN_LARGE = {"s": 0.2, "l": 1.6, "xl": 3.2}
DEAR_WHEN_SMALL = {"xs": 0.3, "s": 0.5, "xl": 1.6}


@table(
    row(cores=(2, 2), prices=DEAR_WHEN_LARGE, kind="l"),
    row(cores=(2, 2, 2, 2), prices=DEAR_WHEN_SMALL, kind="s"),
    row(cores=(4, 4, 4, 1), prices=EVEN, kind="l"),
    row(cores=(6, 3, 2, 1), prices=EVEN, kind="xl"),
    row(cores=(3,), prices=EVEN, kind="xl"),
)
def test_a_tiny_fleet_is_the_cheapest_that_there_is(cores: tuple[int, ...], prices: Prices, kind: str) -> None:
    (pool,) = of_one_group(cores, prices, kind).pools
    assert pool.fleet.price == pytest.approx(least(cores, prices))
    assert pool.fleet.unplaced == 0


FLEETS = st.dictionaries(
    st.sampled_from(list(SIZES)), st.floats(0.05, 3.0).map(lambda price: round(price, 3)), min_size=1
)


@settings(examples(30), deadline=None)
@given(FLEETS, st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_a_suggestion_is_no_dearer_than_nodes_of_any_one_type(prices: Prices, cores: list[int]) -> None:
    kind = max(prices, key=lambda name: SIZES[name])
    cores = [min(each, SIZES[kind]) for each in cores]
    (pool,) = of_one_group(cores, prices, kind).pools
    assert pool.fleet.price is not None
    assert pool.fleet.price >= least(cores, prices) - 1e-9
    today = _first_fit(cores, SIZES[kind]) * prices[kind]
    assert pool.fleet.price <= min(today, pool.price or today) + 1e-9
    for name, price in prices.items():
        if SIZES[name] >= max(cores):
            assert pool.fleet.price <= _first_fit(cores, SIZES[name]) * price + 1e-9


def _first_fit(cores: Sequence[int], size: int) -> int:
    """How many nodes of a size hold the pods, the largest placed first."""
    free: list[int] = []
    for each in sorted(cores, reverse=True):
        at = next((number for number, left in enumerate(free) if left >= each), None)
        if at is None:
            free.append(size - each)
        else:
            free[at] -= each
    return len(free)


def test_pods_that_keep_apart_get_small_nodes_each() -> None:
    apart = [anti_affinity({"app": "web"})]
    nodes = [member(f"n{at}", "web", "l") for at in range(3)]
    pods = [pod(f"web-{at}", cpu=1, memory="1Mi", node=f"n{at}", labels={"app": "web"}, anti=apart) for at in range(3)]
    found = suggested(nodes, pods, catalog_of(EVEN), EVEN)
    assert [pool.fleet.types for pool in found.pools] == [(("xs", 3),)]
    assert [(group.group, group.fleet.types) for group in found.groups] == [("web", (("xs", 3),))]


def test_groups_on_demand_and_on_spot_get_a_pool_each_of_their_own_kind() -> None:
    nodes = [member("a", "web", "l"), member("b", "cheap", "l", SPOT)]
    pods = [pod(f"web-{name}", cpu=1, node=name) for name in "ab"]
    found = suggested(nodes, pods, catalog_of(EVEN), EVEN)
    assert {pool.groups: pool.fleet.capacity_types for pool in found.pools} == {
        ("cheap",): ((SPOT, 1),),
        ("web",): ((ON_DEMAND, 1),),
    }
    assert {group.group: group.fleet.capacity_types for group in found.groups} == {
        "cheap": ((SPOT, 1),),
        "web": ((ON_DEMAND, 1),),
    }


def test_groups_with_and_without_gpus_get_a_pool_each() -> None:
    one = {"nvidia.com/gpu": 1}
    with_gpu = instance_type("g", price=2.0, zones=[Z1], resources=one, overhead={"cpu": 0})
    catalog = Catalog((*catalog_of(EVEN).types, with_gpu))
    labels = {GROUP: "gpu", "karpenter.sh/capacity-type": ON_DEMAND}
    gpu = node("b", type="g", pool=None, zone=Z1, resources=one, labels=labels)
    pods = [pod("web-1", cpu=1, node="a"), pod("infer-1", cpu=1, node="b", requests=one)]
    found = suggested([member("a", "web", "l"), gpu], pods, catalog, {**EVEN, "g": 2.0})
    assert {pool.groups: pool.fleet.types for pool in found.pools} == {("gpu",): (("g", 1),), ("web",): (("xs", 1),)}


def test_pods_without_a_place_are_told_with_the_reason_of_the_first() -> None:
    pinned = pod("db-1", cpu=1, node="a", selector={"kubernetes.io/hostname": "a"})
    found = suggested([member("a", "web", "l")], [pinned], catalog_of(EVEN), EVEN)
    (pool,) = found.pools
    assert (pool.fleet.unplaced, pool.fleet.price) == (1, None)
    assert pool.fleet.refusal.startswith("Pod default/db-1: pool web: ")
    assert found.groups == ()
