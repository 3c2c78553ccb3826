"""The sample catalogue: the machines of `families`, in four zones of a region, on demand and as spot.

It is small, its prices are round and it never changes: what examples, scenarios and figures in documents are made with,
so that they stay the same when the price lists of the clouds are renewed.
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Final

from karpool.catalog.families import MachineSpec, machines
from karpool.catalog.instance_types import InstanceType, offerings_in
from karpool.catalog.machines import GPU
from karpool.catalog.overhead import GIB, MIB, reserved_cpu
from karpool.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS, REGION, SPOT, ZONE
from karpool.model.requirements import DOES_NOT_EXIST, Requirement, Requirements, one_of
from karpool.wire.quantity import NANO, Quantity

DEFAULT_REGION: Final = "us-east-1"
ZONE_LETTERS: Final = "abcd"
SPOT_FRACTION: Final = 0.4
LABEL: Final = "karpenter.k8s.aws/instance-"

HYPERVISOR_PERMILLE: Final = 75
MEMORY_BASE: Final = 255 * MIB
MEMORY_PER_POD: Final = 11 * MIB
MEMORY_EVICTION: Final = 100 * MIB
DISK: Final = 20 * GIB
LOST_DISK: Final = Quantity((1 * GIB + DISK // 10) * NANO)
"""Disk that pods cannot have: 1Gi, and a tenth before eviction."""
PODS: Final = ((1, 8), (2, 29), (8, 58), (16, 110), (48, 234))
PODS_LARGEST: Final = 250
PODS_BURSTABLE: Final = {"micro": 4, "small": 11, "medium": 17, "large": 35}


@lru_cache(maxsize=8)
def sample_types(region: str = DEFAULT_REGION) -> tuple[InstanceType, ...]:
    """All types of the sample in the zones of a region."""
    return tuple(_instance_type(machine, region) for machine in machines())


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


def max_pods(vcpus: int, burstable_size: str = "") -> int:
    """How many pods a machine may run: its network addresses, at most 110 below 30 vCPUs and 250 above."""
    if burstable_size in PODS_BURSTABLE:
        return PODS_BURSTABLE[burstable_size]
    return next((pods for most, pods in PODS if vcpus <= most), PODS_LARGEST)


def lost_memory(gib: int, pods: int) -> Quantity:
    """Memory that pods cannot have: the hypervisor's 7.5%, 255Mi and 11Mi for each pod, 100Mi before eviction."""
    hypervisor = -(-gib * 1024 * HYPERVISOR_PERMILLE // 1000) * MIB
    return Quantity((hypervisor + MEMORY_BASE + MEMORY_PER_POD * pods + MEMORY_EVICTION) * NANO)
