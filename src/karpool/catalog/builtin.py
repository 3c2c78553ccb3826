"""The built-in catalogue: the machines of `families`, in the zones of a region, on demand and as spot."""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Final

from karpool.catalog.families import MachineSpec, machines
from karpool.catalog.instance_types import InstanceType, offerings_in
from karpool.catalog.overhead import DISK, GIB, LOST_DISK, lost_memory, max_pods, reserved_cpu
from karpool.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS, REGION, SPOT, ZONE
from karpool.model.requirements import DOES_NOT_EXIST, Requirement, Requirements, one_of
from karpool.wire.quantity import NANO, Quantity

DEFAULT_REGION: Final = "us-east-1"
ZONE_LETTERS: Final = "abcd"
SPOT_FRACTION: Final = 0.4
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]{1,2}")
GPU: Final = "nvidia.com/gpu"
LABEL: Final = "karpenter.k8s.aws/instance-"


@lru_cache(maxsize=8)
def aws_types(region: str = DEFAULT_REGION) -> tuple[InstanceType, ...]:
    """All built-in types as they are sold in a region; prices are those of us-east-1 everywhere."""
    return tuple(_instance_type(machine, region) for machine in machines())


def is_region(name: str) -> bool:
    return _REGION.fullmatch(name) is not None


def zones_of(region: str) -> tuple[str, ...]:
    return tuple(region + letter for letter in ZONE_LETTERS)


def _instance_type(machine: MachineSpec, region: str) -> InstanceType:
    family, _, size = machine.name.partition(".")
    pods = max_pods(machine.vcpus, size if family.startswith("t") else "")
    prices = {ON_DEMAND: float(machine.price), SPOT: float(machine.price * Decimal(str(SPOT_FRACTION)))}
    capacity = {
        "cpu": Quantity(machine.vcpus * NANO),
        "memory": Quantity(machine.gib * GIB * NANO),
        "pods": Quantity(pods * NANO),
        "ephemeral-storage": Quantity(DISK * NANO),
    }
    if machine.gpus:
        capacity[GPU] = Quantity(machine.gpus * NANO)
    return InstanceType(
        name=machine.name,
        requirements=Requirements(_labels(machine, region)),
        capacity=capacity,
        overhead={
            "cpu": reserved_cpu(machine.vcpus),
            "memory": lost_memory(machine.gib, pods),
            "ephemeral-storage": LOST_DISK,
        },
        offerings=offerings_in(zones_of(region), prices),
    )


def _labels(machine: MachineSpec, region: str) -> Iterator[tuple[str, Requirement]]:
    family, _, size = machine.name.partition(".")
    yield INSTANCE_TYPE, one_of(machine.name)
    yield ARCH, one_of(machine.arch)
    yield OS, one_of("linux")
    yield REGION, one_of(region)
    yield ZONE, one_of(*zones_of(region))
    yield CAPACITY_TYPE, one_of(ON_DEMAND, SPOT)
    yield f"{LABEL}category", one_of(family[0])
    yield f"{LABEL}family", one_of(family)
    yield f"{LABEL}generation", one_of(family[1])
    yield f"{LABEL}size", one_of(size)
    yield f"{LABEL}cpu", one_of(str(machine.vcpus))
    yield f"{LABEL}memory", one_of(str(machine.gib * 1024))
    yield f"{LABEL}gpu-count", one_of(str(machine.gpus)) if machine.gpus else DOES_NOT_EXIST
