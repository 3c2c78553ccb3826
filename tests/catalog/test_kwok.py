"""The types that the KWOK provider generates by itself."""

import pytest
from tests.factories import amounts

from karpool.catalog.instance_types import Catalog
from karpool.catalog.kwok import kwok_types
from karpool.model.labels import ON_DEMAND, SPOT
from karpool.model.requirements import one_of

KWOK = Catalog(kwok_types())


def test_there_are_144_types_with_eight_offerings_each() -> None:
    assert len(KWOK.by_name) == 144
    assert {len(entry.offerings) for entry in KWOK.types} == {8}


@pytest.mark.parametrize(
    ("name", "on_demand", "spot"),
    [
        ("c-1x-amd64-linux", 0.027147483648, 0.0190032385536),
        ("m-256x-arm64-windows", 8.599023255552, 6.0193162788864),
    ],
)
def test_prices_are_those_of_the_provider_to_the_last_digit(name: str, on_demand: float, spot: float) -> None:
    prices = {offering.capacity_type: offering.price for offering in KWOK.by_name[name].offerings}
    assert prices == {ON_DEMAND: on_demand, SPOT: spot}


@pytest.mark.parametrize(
    ("name", "cpu", "memory", "pods"),
    [("c-1x-amd64-linux", "900m", "2038Mi", 16), ("s-64x-arm64-linux", "63900m", "262134Mi", 1024)],
)
def test_allocatable_is_a_little_less_than_capacity(name: str, cpu: str, memory: str, pods: int) -> None:
    expected = amounts({"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "20Gi"})
    assert KWOK.by_name[name].allocatable == expected


def test_labels_are_those_of_the_provider() -> None:
    known = KWOK.by_name["s-4x-arm64-windows"].requirements
    expected = {
        "node.kubernetes.io/instance-type": ["s-4x-arm64-windows"],
        "kubernetes.io/arch": ["arm64"],
        "kubernetes.io/os": ["windows"],
        "karpenter.kwok.sh/instance-size": ["4"],
        "karpenter.kwok.sh/instance-family": ["s"],
        "karpenter.kwok.sh/instance-cpu": ["4"],
        "karpenter.kwok.sh/instance-memory": ["16Gi"],
        "karpenter.sh/capacity-type": ["on-demand", "spot"],
        "topology.kubernetes.io/zone": ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"],
    }
    assert dict(known) == {key: one_of(*values) for key, values in expected.items()}
