"""A preferred pool that is many times as dear as the next is worth a warning; ordinary preferences are not."""

from typing import Any

import pytest
from tests.factories import node_pool

from karpool.catalog.instance_types import Catalog
from karpool.catalog.sample import sample_types
from karpool.catalog.weights import expensive_favourites
from karpool.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT
from karpool.model.nodepool import NodePool

AWS = Catalog(sample_types())
FAMILY = "karpenter.k8s.aws/instance-family"


def of(name: str, *types: str, **rest: Any) -> NodePool:
    return node_pool(name, requirements=[(INSTANCE_TYPE, "In", *types)], **rest)


def warned(*pools: NodePool) -> list[str]:
    return [pool.name for pool, _ in expensive_favourites(pools, AWS)]


CHEAP = of("inexpensive", "t3.small")
DEAR = of("expensive", "p3.16xlarge", weight=100)


def test_the_expensive_favourite_is_named_with_both_prices() -> None:
    ((pool, flaw),) = expensive_favourites([DEAR, CHEAP], AWS)
    assert pool.name == "expensive"
    assert flaw.field == "spec.weight"
    assert "NodePool inexpensive" in flaw.message
    assert "p3.16xlarge, costs 9.792 $/h" in flaw.message


@pytest.mark.parametrize(
    ("pools", "names"),
    [
        ([DEAR, CHEAP], ["expensive"]),
        ([of("expensive", "p3.16xlarge"), CHEAP], []),
        ([of("expensive", "p3.16xlarge"), of("inexpensive", "t3.small", weight=5)], []),
        ([of("expensive", "p3.16xlarge", weight=100, taints=["gpu"]), CHEAP], []),
        ([of("expensive", "p3.16xlarge", weight=100, taints=["gpu:PreferNoSchedule"]), CHEAP], ["expensive"]),
        ([of("expensive", "p3.16xlarge", weight=100, limits={"cpu": 64}), CHEAP], []),
        ([DEAR, of("inexpensive", "t3.small", taints=["batch"])], []),
        ([of("expensive", "p3.16xlarge", "t3.medium", weight=100), CHEAP], []),
        ([DEAR, of("arm", "t4g.small")], []),
        ([DEAR, of("fixed", "t3.small", replicas=3)], []),
        ([DEAR], []),
        ([], []),
    ],
    ids=["the pitfall", "no weights", "cheap one preferred", "tainted", "soft taint", "limited", "cheap one tainted",
         "small types, too", "another architecture", "static", "alone", "none"],
)  # fmt: skip
def test_only_a_clear_case_is_worth_a_warning(pools: list[NodePool], names: list[str]) -> None:
    assert warned(*pools) == names


@pytest.mark.parametrize(
    "pools",
    [
        [
            node_pool("default", weight=100, requirements=[(ARCH, "In", "amd64")]),
            node_pool("arm64", weight=50, requirements=[(ARCH, "Exists")]),
        ],
        [
            node_pool("on-demand", weight=50, requirements=[(CAPACITY_TYPE, "In", ON_DEMAND)]),
            node_pool("spot", requirements=[(CAPACITY_TYPE, "In", SPOT, ON_DEMAND)]),
        ],
        [of("reserved", "c5.large", weight=50, limits={"cpu": 20}), of("fallback", "m5.large", "m5.2xlarge")],
        [
            node_pool("favourite", weight=50, requirements=[(FAMILY, "In", "p3")]),
            node_pool("fallback", requirements=[(FAMILY, "In", "g4dn", "g5")]),
        ],
    ],
    ids=["architecture", "capacity type", "reserved", "family"],
)
def test_good_uses_of_weights_get_no_warning(pools: list[NodePool]) -> None:
    assert warned(*pools) == []
