"""What the system keeps of a machine, as the kubelets of EKS, GKE and AKS reserve it; see docs/catalog.md.

A machine reports less memory than its price list says, because hypervisor and kernel keep some. Of what is reported,
the kubelet reserves a part for itself and for evicting pods in time. What is left is for pods.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from karpool.catalog.instance_types import Amounts
from karpool.catalog.machines import ARM64, Machine
from karpool.wire.quantity import NANO, Quantity

MIB: Final = 1024**2
GIB: Final = 1024**3
EVICTION_MIB: Final = 100

# Cores and what each of them gives up, in millionths of a core.
CPU_STEPS: Final = ((1, 60_000), (1, 10_000), (2, 5_000))
CPU_BEYOND: Final = 2_500
AKS_CPU_STEPS: Final = ((1, 60_000), (1, 40_000), (2, 20_000))
AKS_CPU_BEYOND: Final = 10_000

EKS_HYPERVISOR_PERMILLE: Final = 75
EKS_ARM_MIB: Final = 64
EKS_BASE_MIB: Final = 255
EKS_MIB_PER_POD: Final = 11
EKS_MANY_VCPUS: Final = 30
EKS_ADDRESSES_PER_PREFIX: Final = 16

GKE_PODS: Final = 110
GKE_SHARED_CORE: Final = Quantity(NANO * 1060 // 1000)
"""What is reserved of a shared core, of which two CPUs are shown and at most one is there."""
GKE_KERNEL_MIB: Final = 216
GKE_KERNEL_PERMILLE: Final = 18
GKE_SMALL_MIB: Final = 1024
GKE_SMALL_RESERVED_MIB: Final = 255
GKE_MEMORY_STEPS: Final = ((4, 250), (4, 200), (8, 100), (112, 60))
"""GiB, and the thousandths of them that are reserved."""
GKE_MEMORY_BEYOND: Final = 20

AKS_PODS: Final = 250
AKS_KERNEL_MIB: Final = 100
AKS_KERNEL_PERMILLE: Final = 18
AKS_BASE_MIB: Final = 50
AKS_MIB_PER_POD: Final = 20
AKS_MOST_RESERVED: Final = 4
"""Never more than this part of the memory is reserved: a quarter."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a node has and what of it pods cannot have."""

    capacity: Amounts
    overhead: Amounts


Kubelet = Callable[[Machine, int], Room]


def eks_pods(machine: Machine, *, prefixes: bool) -> int:
    """How many pods an EKS node may run: as its network interfaces have addresses, or prefixes of 16 addresses."""
    interfaces, addresses = machine.network_interfaces, machine.addresses_per_interface
    if not interfaces or not addresses:
        return GKE_PODS
    if not prefixes:
        return interfaces * (addresses - 1) + 2
    most = GKE_PODS if machine.vcpus < EKS_MANY_VCPUS else 250
    return min(most, interfaces * (addresses - 1) * EKS_ADDRESSES_PER_PREFIX + 2)


def eks_room(machine: Machine, pods: int) -> Room:
    """What an EKS node has and keeps, as Karpenter reckons with it before it knows the node."""
    listed = machine.memory_mib - (EKS_ARM_MIB if machine.arch == ARM64 else 0)
    capacity = listed - _rounded_up(listed * EKS_HYPERVISOR_PERMILLE, 1000)
    kept = EKS_BASE_MIB + EKS_MIB_PER_POD * pods + EVICTION_MIB
    disk = 20 * GIB
    overhead = _amounts(reserved_cpu(machine.vcpus), kept, 1 * GIB + disk // 10)
    return Room(_capacity(machine, pods, capacity, disk), overhead)


def gke_room(machine: Machine, pods: int) -> Room:
    """What a GKE node has and keeps."""
    capacity = machine.memory_mib - GKE_KERNEL_MIB - machine.memory_mib * GKE_KERNEL_PERMILLE // 1000
    capacity = max(capacity, machine.memory_mib // 2)
    disk = 94 * GIB
    # Of a boot disk of 100 GiB GKE keeps 6 GiB and 35 %, and a tenth against eviction.
    lost = 41 * GIB + disk // 10
    cpu = GKE_SHARED_CORE if machine.shared_core else reserved_cpu(machine.vcpus)
    overhead = _amounts(cpu, gke_reserved_mib(capacity), lost)
    return Room(_capacity(machine, pods, capacity, disk), overhead)


def gke_reserved_mib(capacity: int) -> int:
    """The memory that GKE reserves of so many MiB, the eviction threshold included."""
    if capacity < GKE_SMALL_MIB:
        return GKE_SMALL_RESERVED_MIB + EVICTION_MIB
    left, permille = capacity, 0
    for gib, share in GKE_MEMORY_STEPS:
        taken = min(left, gib * 1024)
        permille += taken * share
        left -= taken
    return _rounded_up(permille + left * GKE_MEMORY_BEYOND, 1000) + EVICTION_MIB


def aks_room(machine: Machine, pods: int) -> Room:
    """What an AKS node has and keeps, as from Kubernetes 1.29 on."""
    capacity = machine.memory_mib - AKS_KERNEL_MIB - machine.memory_mib * AKS_KERNEL_PERMILLE // 1000
    disk = 124 * GIB
    cpu = reserved_cpu(machine.vcpus, AKS_CPU_STEPS, AKS_CPU_BEYOND)
    overhead = _amounts(cpu, aks_reserved_mib(capacity, pods), disk // 10)
    return Room(_capacity(machine, pods, capacity, disk), overhead)


def aks_reserved_mib(capacity: int, pods: int) -> int:
    """The memory that AKS reserves of so many MiB for so many pods, the eviction threshold included."""
    return min(AKS_MIB_PER_POD * pods + AKS_BASE_MIB, capacity // AKS_MOST_RESERVED) + EVICTION_MIB


def reserved_cpu(vcpus: int, steps: tuple[tuple[int, int], ...] = CPU_STEPS, beyond: int = CPU_BEYOND) -> Quantity:
    """CPU kept for the system: 6% of the first core, 1% of the second, 0.5% of the next two, 0.25% of the others."""
    left, micros = vcpus, 0
    for cores, each in steps:
        taken = min(left, cores)
        micros += taken * each
        left -= taken
    return Quantity((micros + left * beyond) * 1000)


def _rounded_up(number: int, by: int) -> int:
    return -(-number // by)


def _capacity(machine: Machine, pods: int, mib: int, disk: int) -> Amounts:
    devices = {name: Quantity(count * NANO) for name, count in machine.devices.items()}
    return {**_amounts(Quantity(machine.vcpus * NANO), mib, disk), "pods": Quantity(pods * NANO), **devices}


def _amounts(cpu: Quantity, mib: int, disk: int) -> dict[str, Quantity]:
    return {"cpu": cpu, "memory": Quantity(mib * MIB * NANO), "ephemeral-storage": Quantity(disk * NANO)}
