"""The sample machines: prices as on the price list, sizes, labels, and what is left for pods."""

import pytest
from tests.factories import amounts
from tests.tables import row, table

from karpool.catalog.families import FAMILIES, Family, machines, vcpus_of
from karpool.catalog.instance_types import Catalog
from karpool.catalog.pricing import node_price
from karpool.catalog.sample import SPOT_FRACTION, sample_types
from karpool.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpool.model.requirements import DOES_NOT_EXIST, one_of
from karpool.wire.quantity import ZERO, parse_quantity

AWS = Catalog(sample_types())


def price(name: str, capacity_type: str = ON_DEMAND, catalog: Catalog = AWS) -> float:
    hourly = node_price(catalog, {INSTANCE_TYPE: name, ZONE: "us-east-1a", CAPACITY_TYPE: capacity_type})
    assert hourly is not None
    return hourly


@pytest.mark.parametrize(
    ("nodes", "per_hour"),
    [
        (["c5a.xlarge"] * 2, 0.3080),
        (["m6a.xlarge"], 0.1728),
        (["m7g.2xlarge"] * 2, 0.6528),
        (["r7g.2xlarge"], 0.4284),
        (["t3a.xlarge", "t3a.micro"], 0.1598),
        (["t3a.medium"] * 2, 0.0752),
        (["c7i.24xlarge"] * 3, 12.852),
        (["r7i.24xlarge"] * 2, 12.7008),
        (["m5.large"], 0.096),
        (["p3.8xlarge"], 12.24),
        (["p3.16xlarge"], 24.48),
        (["t3.small"], 0.0208),
        (["g5.12xlarge"], 5.672),
    ],
)
def test_prices_are_those_of_the_price_list(nodes: list[str], per_hour: float) -> None:
    assert sum(price(name) for name in nodes) == pytest.approx(per_hour, rel=1e-12)


def test_a_size_twice_as_large_costs_exactly_twice_as_much() -> None:
    assert price("c6a.2xlarge") + price("c6a.2xlarge") == price("c6a.4xlarge")
    assert str(price("c6a.xlarge")) == "0.153"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_prices_and_memory_are_linear_in_a_family(family: Family) -> None:
    for size in family.sizes.split():
        name = f"{family.name}.{size}"
        assert price(name) == pytest.approx(float(family.price_per_vcpu) * vcpus_of(size), rel=1e-12)
        memory = AWS.by_name[name].capacity["memory"]
        assert memory == parse_quantity(f"{family.gib_per_vcpu * vcpus_of(size)}Gi")


def test_every_type_leaves_something_for_pods() -> None:
    for entry in AWS.types:
        assert all(ZERO < entry.allocatable[name] <= entry.capacity[name] for name in entry.capacity), entry.name


def test_every_type_is_sold_in_four_zones_on_demand_and_as_cheaper_spot() -> None:
    zones = [f"us-east-1{letter}" for letter in "abcd"]
    for entry in AWS.types:
        prices = {(o.zone, o.capacity_type): o.price for o in entry.offerings}
        assert set(prices) == {(zone, kind) for zone in zones for kind in (ON_DEMAND, SPOT)}
        for zone in zones:
            assert prices[zone, SPOT] == pytest.approx(prices[zone, ON_DEMAND] * SPOT_FRACTION, rel=1e-12), entry.name


def test_names_are_unique() -> None:
    names = [machine.name for machine in machines()]
    assert len(names) == len(set(names)) == 293


@table(
    row(name="t3a.micro", cpu="1930m", memory="548Mi", pods=4),
    row(name="t3.small", cpu="1930m", memory="1418Mi", pods=11),
    row(name="m6g.medium", cpu="940m", memory="3345Mi", pods=8),
    row(name="m5.large", cpu="1930m", memory="6903Mi", pods=29),
    row(name="c5a.xlarge", cpu="3920m", memory="6584Mi", pods=58),
    row(name="m6a.xlarge", cpu="3920m", memory="14162Mi", pods=58),
    row(name="m5.4xlarge", cpu="15890m", memory="59055Mi", pods=110),
    row(name="m7i.48xlarge", cpu="191450m", memory="724344Mi", pods=250),
)
def test_allocatable_follows_the_stated_model(name: str, cpu: str, memory: str, pods: int) -> None:
    expected = amounts({"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "17Gi"})
    assert AWS.by_name[name].allocatable == expected


def test_labels_describe_a_type_as_the_aws_provider_does() -> None:
    known = AWS.by_name["p4d.24xlarge"].requirements
    expected = {
        "node.kubernetes.io/instance-type": "p4d.24xlarge",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": "us-east-1",
        "karpenter.k8s.aws/instance-category": "p",
        "karpenter.k8s.aws/instance-family": "p4d",
        "karpenter.k8s.aws/instance-generation": "4",
        "karpenter.k8s.aws/instance-size": "24xlarge",
        "karpenter.k8s.aws/instance-cpu": "96",
        "karpenter.k8s.aws/instance-memory": str(1152 * 1024),
        "karpenter.k8s.aws/instance-gpu-count": "8",
    }
    assert {key: known[key] for key in expected} == {key: one_of(value) for key, value in expected.items()}
    assert AWS.by_name["p4d.24xlarge"].capacity["nvidia.com/gpu"] == parse_quantity(8)
    assert AWS.by_name["m5.large"].requirements["karpenter.k8s.aws/instance-gpu-count"] == DOES_NOT_EXIST
