"""What holds for the twin on any cluster, and its few rules that need many types to show."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.examples import examples
from tests.factories import incremental_types, instance_type, node_pool
from tests.packing import twin
from tests.packing.scenarios import Engine, pods
from tests.strategies import Cluster, clusters

from karpool.catalog.instance_types import Catalog
from karpool.model.labels import INSTANCE_TYPE
from karpool.model.nodepool import PoolRequirement
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.result import PlacementResult

MANY = Catalog(tuple(instance_type(f"t{i:03}", price=1 + i) for i in range(601)))


def leaving(cluster: Cluster, gone: list[str]) -> list[Pod]:
    pods = cluster.objects.pods
    return [pod for pod in pods if pod.reschedulable and (not pod.bound or pod.spec.node_name in gone)]


@given(clusters(max_nodes=6, max_pods=20), st.randoms(use_true_random=False))
@examples(25)
def test_the_order_in_which_objects_are_listed_does_not_matter(cluster: Cluster, chance: Random) -> None:
    gone = [node.name for node in cluster.objects.nodes[:2]]
    moving = leaving(cluster, gone)
    expected = twin.place(cluster.objects, cluster.catalog, pods=moving, gone=gone)
    objects = cluster.objects
    shuffled = replace(
        objects,
        pods=tuple(chance.sample(objects.pods, len(objects.pods))),
        nodes=tuple(chance.sample(objects.nodes, len(objects.nodes))),
    )
    again = twin.place(shuffled, cluster.catalog, pods=chance.sample(moving, len(moving)), gone=gone)
    assert (again.placed, again.new_nodes) == (expected.placed, expected.new_nodes)
    assert set(again.unplaced) == set(expected.unplaced)


@given(clusters(max_nodes=6, max_pods=20))
@examples(25)
def test_every_pod_is_either_in_one_place_or_in_none(cluster: Cluster) -> None:
    gone = [node.name for node in cluster.objects.nodes[:2]]
    moving = leaving(cluster, gone)
    answer = twin.place(cluster.objects, cluster.catalog, pods=moving, gone=gone)
    assert sorted([*answer.placed, *answer.unplaced]) == sorted(pod.key for pod in moving)
    on_new = {key: index for index, new in enumerate(answer.new_nodes) for key in new.pods}
    assert on_new == {key: place for key, place in answer.placed.items() if isinstance(place, int)}
    assert all(place not in gone for place in answer.placed.values())


def ask(catalog: Catalog, minimum: int) -> PlacementResult:
    rule = PoolRequirement(key=INSTANCE_TYPE, operator="Exists", min_values=minimum)
    return twin.place(Objects(node_pools=(node_pool(requirements=[rule]),)), catalog, pods=pods(1))


def test_no_more_than_600_types_are_listed_cheapest_first() -> None:
    (new,) = ask(MANY, 50).new_nodes
    assert new.instance_types == tuple(f"t{i:03}" for i in range(600))


def test_a_node_whose_minimum_the_cut_breaks_is_not_made() -> None:
    assert ask(MANY, 601).unplaced == ("default/web-1",)


@pytest.mark.parametrize("cpu", ["100m", "1", "4", "16"])
@pytest.mark.parametrize("memory", ["100Mi", "1Gi", "32Gi"])
@pytest.mark.parametrize("engine", [twin.place])
def test_three_alike_pods_share_a_node_and_fit_every_type_it_may_become(engine: Engine, cpu: str, memory: str) -> None:
    catalog = Catalog(tuple(instance_type(f"{c}x{m}", c, f"{m}Gi") for c in (1, 4, 16, 64) for m in (2, 16, 128)))
    alike = pods(3, cpu=cpu, memory=memory)
    (new,) = engine(Objects(node_pools=(node_pool(),)), catalog, pods=alike).new_nodes
    assert new.pods == tuple(pod.key for pod in alike)
    wanted = alike[0].spec.containers[0].resources.requests
    for entry in (catalog.by_name[name] for name in new.instance_types):
        assert all(3 * amount.nano <= entry.allocatable[name].nano for name, amount in wanted.items())


def test_an_answer_does_not_depend_on_the_question_before() -> None:
    objects, catalog = Objects(node_pools=(node_pool(),)), incremental_types(3)
    first = twin.place(objects, catalog, pods=pods(5))
    twin.place(objects, catalog, pods=pods(3, app="x"))
    assert twin.place(objects, catalog, pods=pods(5)) == first
