"""Weights of pools: the same order for pending pods and in every dry run of consolidation."""

from typing import Any

import pytest
from tests.disruption.scenarios import NOTHING, Scenario, node
from tests.factories import anti_affinity, node_pool, pod
from tests.packing.placing import place

from karpool.catalog.instance_types import Catalog
from karpool.catalog.sample import sample_types
from karpool.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.packing.options import Options

AWS = Catalog(sample_types())
EAST = "us-east-1a"
FAMILY = "karpenter.k8s.aws/instance-family"
ON_DEMAND_ONLY = (CAPACITY_TYPE, "In", ON_DEMAND)


def supplied(pools: list[NodePool], *pods: Pod, options: Options | None = None) -> list[str]:
    """The pools from which pending pods get their nodes."""
    objects = Objects(pods=pods, node_pools=tuple(pools))
    answer = place(objects, AWS, pods=pods, options=options or Options())
    assert not answer.unplaced
    return [new.pool for new in answer.new_nodes]


def replaced(pools: list[NodePool], asked: dict[str, Any], *, pool: str, type_: str = "m5.24xlarge") -> str:
    """The pool that supplies the node in the place of one that is much too large for its pod."""
    made = Scenario(
        "dry run", nodes=[node("a", type_, pods=[asked], catalog=AWS, zone=EAST, pool=pool)], pools=pools, catalog=AWS
    ).plan()
    return made.steps[0].command.replacements[0].pool


ARCHES = [
    node_pool("default", weight=100, requirements=[(ARCH, "In", "amd64"), ON_DEMAND_ONLY]),
    node_pool("arm64", weight=50, requirements=[(ARCH, "Exists"), ON_DEMAND_ONLY]),
]
CAPACITY = [
    node_pool("on-demand", weight=50, requirements=[ON_DEMAND_ONLY]),
    node_pool("spot", requirements=[(CAPACITY_TYPE, "Exists")]),
]
GPUS = [
    node_pool("p3", weight=50, requirements=[(FAMILY, "In", "p3"), ("gpu-intensive", "Exists"), ON_DEMAND_ONLY]),
    node_pool("fallback", requirements=[(FAMILY, "In", "g4dn", "g5"), ("gpu-intensive", "Exists"), ON_DEMAND_ONLY]),
]
TAINTED = [
    node_pool("custom", weight=100, taints=["custom-workloads=true"],
              requirements=[(INSTANCE_TYPE, "In", "p3.8xlarge", "p3.16xlarge"), ON_DEMAND_ONLY]),
    node_pool("fallback", weight=50, requirements=[(ARCH, "In", "amd64"), ON_DEMAND_ONLY]),
]  # fmt: skip
FAVOURITE = [
    node_pool("favourite", weight=50, requirements=[(FAMILY, "In", "c6i"), ON_DEMAND_ONLY]),
    node_pool("others", requirements=[(FAMILY, "In", "m6i", "t3"), ON_DEMAND_ONLY]),
]
USE_CASES = [
    pytest.param(ARCHES, {}, "default", id="default architecture"),
    pytest.param(ARCHES, {"selector": {ARCH: "arm64"}}, "arm64", id="a pod that asks for arm64"),
    pytest.param(CAPACITY, {}, "on-demand", id="on-demand by default"),
    pytest.param(CAPACITY, {"selector": {CAPACITY_TYPE: SPOT}}, "spot", id="a pod that can use spot"),
    pytest.param(FAVOURITE, {}, "favourite", id="favourite family"),
    pytest.param(FAVOURITE, {"require": [(FAMILY, "NotIn", "c6i")]}, "others", id="a pod that shuns the favourite"),
    pytest.param(TAINTED, {"tolerations": ["custom-workloads=true"]}, "custom", id="taint tolerated"),
    pytest.param(TAINTED, {}, "fallback", id="taint not tolerated"),
]


@pytest.mark.parametrize(("pools", "asked", "wanted"), USE_CASES)
def test_pending_pods_and_consolidation_use_the_same_pool(
    pools: list[NodePool], asked: dict[str, Any], wanted: str
) -> None:
    assert supplied(pools, pod("w-0", pending=True, **asked)) == [wanted]
    dear = "m6g.16xlarge" if asked.get("selector") == {ARCH: "arm64"} else "p3.16xlarge"
    assert replaced(pools, {"name": "w-0", **asked}, pool=wanted, type_=dear) == wanted


def test_reserved_machines_are_used_up_first_and_no_further() -> None:
    pools = [
        node_pool("reserved", weight=50, requirements=[(INSTANCE_TYPE, "In", "c5.large")], limits={"cpu": 4}),
        node_pool("fallback", requirements=[(INSTANCE_TYPE, "In", "m5.large", "m5.2xlarge")]),
    ]
    apart = {"cpu": 1, "labels": {"app": "w"}, "anti": [anti_affinity({"app": "w"})]}
    pods = [pod(f"w-{number}", pending=True, **apart) for number in range(4)]
    assert sorted(supplied(pools, *pods)) == ["fallback", "fallback", "reserved", "reserved"]


def test_the_gpu_family_that_is_preferred_comes_first() -> None:
    wants = {"cpu": 1, "requests": {"nvidia.com/gpu": 1}, "require": [("gpu-intensive", "Exists")]}
    known = {entry.name.partition(".")[0] for entry in AWS.types}
    if "p3" in known:
        assert supplied(GPUS, pod("w-0", pending=True, **wants)) == ["p3"]
    shuns = {**wants, "require": [("gpu-intensive", "Exists"), (FAMILY, "NotIn", "p3")]}
    assert supplied(GPUS, pod("w-0", pending=True, **shuns)) == ["fallback"]


EXPENSIVE = [
    node_pool("expensive", weight=100, requirements=[(INSTANCE_TYPE, "In", "p3.16xlarge"), ON_DEMAND_ONLY]),
    node_pool("inexpensive", requirements=[(INSTANCE_TYPE, "In", "t3.small"), ON_DEMAND_ONLY]),
]
APART = {"cpu": "100m", "memory": "64Mi", "labels": {"app": "w"}, "anti": [anti_affinity({"app": "w"})]}


def test_the_expensive_favourite_gets_every_pod_that_must_be_alone() -> None:
    pods = [pod(f"w-{number}", pending=True, **APART) for number in range(20)]
    assert supplied(EXPENSIVE, *pods) == ["expensive"] * 20


def test_consolidation_does_not_undo_what_the_weights_asked_for() -> None:
    """A node of the favourite pool is not replaced by a cheaper one of another pool, only for the next to come back."""
    nodes = [node(f"n{i}", "p3.16xlarge", pods=[APART], catalog=AWS, zone=EAST, pool="expensive") for i in range(3)]
    made = Scenario("pitfall", nodes=nodes, pools=EXPENSIVE, catalog=AWS).plan(None)
    assert not made.steps
    assert {reason.code for fate in made.fates for reason in fate.reasons} >= {"NotCheaper"}


def test_existing_room_in_the_light_pool_comes_before_a_node_of_the_heavy_one() -> None:
    nodes = [
        node("a", "p3.16xlarge", pods=[{"cpu": "100m", "memory": "64Mi"}], catalog=AWS, zone=EAST, pool="expensive"),
        node("b", "t3.small", pods=[{"cpu": "100m", "memory": "64Mi"}], catalog=AWS, zone=EAST, pool="inexpensive"),
    ]
    Scenario("room", nodes=nodes, pools=EXPENSIVE, catalog=AWS, removes="a", launches=NOTHING).verify()


def test_equal_weights_have_an_order_that_a_seed_decides_once_and_for_all() -> None:
    pools = [node_pool(f"p{number}", requirements=[ON_DEMAND_ONLY]) for number in range(6)]
    chosen = []
    for seed in range(8):
        options = Options(seed=seed)
        (pending,) = supplied(pools, pod("w-0", pending=True), options=options)
        nodes = [node("a", "m5.24xlarge", pods=1, catalog=AWS, zone=EAST, pool="p0")]
        dry = Scenario("seed", nodes=nodes, pools=pools, catalog=AWS, options=options).plan()
        assert dry.steps[0].command.replacements[0].pool == pending
        assert supplied(pools[::-1], pod("w-0", pending=True), options=options) == [pending]
        chosen.append(pending)
    assert len(set(chosen)) > 1
