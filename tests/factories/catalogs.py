"""Instance types and small catalogues."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from karpool.catalog.instance_types import Catalog, InstanceType, Offering
from karpool.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    SPOT,
    ZONE,
)
from karpool.model.requirements import DOES_NOT_EXIST, Requirement, Requirements, one_of
from tests.factories.values import Z1, Z2, Z3, Amount, amounts

DEFAULT_OFFERS: Final = ((SPOT, Z1), (SPOT, Z2), (ON_DEMAND, Z1), (ON_DEMAND, Z2), (ON_DEMAND, Z3))


def instance_type(
    name: str,
    cpu: Amount = 4,
    memory: Amount = "16Gi",
    *,
    pods: int = 110,
    price: float | None = None,
    zones: Sequence[str] | None = None,
    capacity_types: Sequence[str] = (SPOT, ON_DEMAND),
    spot_price: float | None = None,
    offers: Iterable[tuple[str, str, float] | tuple[str, str]] | None = None,
    unavailable: Sequence[tuple[str, str]] = (),
    arch: str = "amd64",
    os: Sequence[str] = ("linux",),
    resources: Mapping[str, Amount] | None = None,
    overhead: Mapping[str, Amount] | None = None,
    labels: Mapping[str, str | None] | None = None,
) -> InstanceType:
    """A type sold in every zone as every capacity type, or as `offers` (capacity type, zone[, price]) say.

    Without a price it costs 0.1 $/h a CPU and 0.1 $/h a gigabyte; a label of None is one its nodes never have.
    """
    size = amounts({"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})})
    normal = price if price is not None else size["cpu"].milli / 10_000 + size["memory"].units / 1e10
    if offers is None:
        pairs = DEFAULT_OFFERS if zones is None else [(kind, zone) for kind in capacity_types for zone in zones]
        offers = [pair for pair in pairs if pair[0] in capacity_types]
    sold = [
        _offering(kind, zone, rest[0] if rest else (spot_price or normal) if kind == SPOT else normal, unavailable)
        for kind, zone, *rest in offers
    ]
    known: dict[str, Requirement] = {
        INSTANCE_TYPE: one_of(name),
        ARCH: one_of(arch),
        OS: one_of(*os),
        ZONE: one_of(*(offering.zone for offering in sold)),
        CAPACITY_TYPE: one_of(*(offering.capacity_type for offering in sold)),
    }
    known |= {key: DOES_NOT_EXIST if value is None else one_of(value) for key, value in (labels or {}).items()}
    taken = amounts({"cpu": "100m", "memory": "10Mi"} if overhead is None else overhead)
    return InstanceType(
        name=name, requirements=Requirements(known.items()), capacity=size, overhead=taken, offerings=tuple(sold)
    )


def _offering(kind: str, zone: str, price: float, unavailable: Sequence[tuple[str, str]]) -> Offering:
    requirements = Requirements.of_labels({CAPACITY_TYPE: kind, ZONE: zone})
    return Offering(requirements=requirements, price=price, available=(kind, zone) not in unavailable)


def sized_type(name: str, cpu: int, gibibytes: int, pods: int, **rest: Any) -> InstanceType:
    """A type with the labels size, special (on large ones only) and integer."""
    large = cpu > 4 and gibibytes > 8
    labels = {"size": "large" if large else "small", "special": "optional" if large else None, "integer": str(cpu)}
    return instance_type(name, cpu, f"{gibibytes}Gi", pods=pods, labels={**labels, **rest.pop("labels", {})}, **rest)


def incremental_types(count: int) -> Catalog:
    """Types `fake-it-0`, `fake-it-1`, … of 1, 2, … CPUs with 2 Gi of memory and 10 pods for each CPU."""
    return Catalog(
        tuple(
            sized_type(f"fake-it-{i}", i + 1, 2 * (i + 1), 10 * (i + 1), os=("linux", "windows", "darwin"))
            for i in range(count)
        )
    )


GPU_A, GPU_B = "example.com/gpu-a", "example.com/gpu-b"


def default_catalog() -> Catalog:
    """Six small types: two plain ones, two with GPUs, an arm64 one, and one that holds a single pod."""
    every = ("linux", "windows", "darwin")
    return Catalog(
        (
            sized_type("default", 4, 4, 5, os=every),
            sized_type("small", 2, 2, 5, os=every),
            sized_type("gpu-a", 4, 4, 5, os=every, resources={GPU_A: 2}, price=0.4 + 4 * 2**30 / 1e10 + 1.0),
            sized_type("gpu-b", 4, 4, 5, os=every, resources={GPU_B: 2}, price=0.4 + 4 * 2**30 / 1e10 + 1.0),
            sized_type("arm", 16, 128, 5, os=every, arch="arm64"),
            sized_type("single-pod", 4, 4, 1, os=every),
        )
    )
