"""Instance types as Karpenter's KWOK provider makes them, and the 144 that it has without a file."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import product, starmap
from typing import Final

from karpool.catalog.instance_types import InstanceType, Offering, offerings_in, places_of
from karpool.model.labels import ARCH, INSTANCE_TYPE, ON_DEMAND, OS, SPOT
from karpool.model.requirements import Requirement, Requirements, one_of
from karpool.wire.quantity import NANO, Quantity, parse_quantity

OVERHEAD: Final = {"cpu": parse_quantity("100m"), "memory": parse_quantity("10Mi")}
DEFAULT_PODS: Final = parse_quantity(110)
LABEL: Final = "karpenter.kwok.sh/instance-"
SPOT_FRACTION: Final = 0.7

CPUS: Final = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
GIB_PER_CPU: Final = {"c": 2, "s": 4, "m": 8}
SYSTEMS: Final = ("linux", "windows")
ARCHES: Final = ("amd64", "arm64")
ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
DISK: Final = parse_quantity("20Gi")
MOST_PODS: Final = 1024


def kwok_type(
    name: str, arch: str, systems: tuple[str, ...], resources: Mapping[str, Quantity], offerings: tuple[Offering, ...]
) -> InstanceType:
    """A type with the labels, the default number of pods and the overhead that the KWOK provider gives it."""
    return InstanceType(
        name=name,
        requirements=Requirements(_labels(name, arch, systems, resources, offerings)),
        capacity={"pods": DEFAULT_PODS, **resources},
        overhead=OVERHEAD,
        offerings=offerings,
    )


def _labels(
    name: str, arch: str, systems: tuple[str, ...], resources: Mapping[str, Quantity], offerings: tuple[Offering, ...]
) -> Iterator[tuple[str, Requirement]]:
    cpu = _whole(resources["cpu"])
    yield INSTANCE_TYPE, one_of(name)
    yield ARCH, one_of(arch)
    yield OS, one_of(*systems)
    yield f"{LABEL}size", one_of(name.partition(".")[2] or cpu)
    yield f"{LABEL}family", one_of(_family(name))
    yield f"{LABEL}cpu", one_of(cpu)
    yield f"{LABEL}memory", one_of(str(resources["memory"]))
    yield from places_of(offerings)


def _family(name: str) -> str:
    ends = [end for mark in ".-" if (end := name.find(mark)) > 0]
    return name[: min(ends)] if ends else name[0]


def _whole(amount: Quantity) -> str:
    return f"{amount.milli}m" if amount.milli % 1000 else str(amount.units)


@lru_cache(maxsize=1)
def kwok_types() -> tuple[InstanceType, ...]:
    return tuple(starmap(_generated, product(CPUS, GIB_PER_CPU, SYSTEMS, ARCHES)))


def _generated(cpu: int, family: str, system: str, arch: str) -> InstanceType:
    memory = cpu * GIB_PER_CPU[family] * 1024**3
    price = Decimal("0.025") * cpu + Decimal("0.001") * memory / 10**9
    prices = {SPOT: float(price * Decimal(str(SPOT_FRACTION))), ON_DEMAND: float(price)}
    resources = {
        "cpu": Quantity(cpu * NANO),
        "memory": Quantity(memory * NANO),
        "pods": Quantity(min(16 * cpu, MOST_PODS) * NANO),
        "ephemeral-storage": DISK,
    }
    name = f"{family}-{cpu}x-{arch}-{system}"
    return kwok_type(name, arch, (system,), resources, offerings_in(ZONES, prices))
