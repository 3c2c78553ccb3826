"""What the system keeps of a built-in machine, by a model that is the same for all of them; see docs/catalog.md.

The steps are those that managed Kubernetes on AWS uses by default: CPU by the number of cores, memory by the number of
pods, an eviction threshold, and a share of the memory that the hypervisor never hands out.
"""

from typing import Final

from karpool.wire.quantity import NANO, Quantity

MIB: Final = 1024**2
GIB: Final = 1024**3

CPU_STEPS: Final = ((1, 60_000), (1, 10_000), (2, 5_000))
CPU_BEYOND: Final = 2_500
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


def max_pods(vcpus: int, burstable_size: str = "") -> int:
    """How many pods a machine may run: its network addresses, at most 110 below 30 vCPUs and 250 above."""
    if burstable_size in PODS_BURSTABLE:
        return PODS_BURSTABLE[burstable_size]
    return next((pods for most, pods in PODS if vcpus <= most), PODS_LARGEST)


def reserved_cpu(vcpus: int) -> Quantity:
    """CPU kept for the system: 6% of the first core, 1% of the second, 0.5% of the next two, 0.25% of the others."""
    left, micros = vcpus, 0
    for cores, each in CPU_STEPS:
        taken = min(left, cores)
        micros += taken * each
        left -= taken
    return Quantity((micros + left * CPU_BEYOND) * 1000)


def lost_memory(gib: int, pods: int) -> Quantity:
    """Memory that pods cannot have: the hypervisor's 7.5%, 255Mi and 11Mi for each pod, 100Mi before eviction."""
    hypervisor = -(-gib * 1024 * HYPERVISOR_PERMILLE // 1000) * MIB
    return Quantity((hypervisor + MEMORY_BASE + MEMORY_PER_POD * pods + MEMORY_EVICTION) * NANO)
