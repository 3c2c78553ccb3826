"""The built-in machines of AWS: a line per family, a line per machine that no rule describes.

Prices are those of Linux, on demand, in us-east-1, in US dollars, August 2026. Inside a family they are linear in
vCPUs, so a family needs one price. They are kept as decimals: twice the size costs exactly twice as much.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final, NamedTuple

SMALL_TO_12: Final = "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge"
TO_16: Final = f"medium {SMALL_TO_12} 16xlarge"
TO_24: Final = f"{SMALL_TO_12} 16xlarge 24xlarge"
TO_32: Final = f"{TO_24} 32xlarge"
TO_48: Final = f"{TO_32} 48xlarge"
WITHOUT_32: Final = f"{TO_24} 48xlarge"
COMPUTE_5: Final = "large xlarge 2xlarge 4xlarge 9xlarge 12xlarge 18xlarge 24xlarge"


class Family(NamedTuple):
    """Machines that differ in size only."""

    name: str
    arch: str
    gib_per_vcpu: int
    price_per_vcpu: str
    sizes: str


class MachineSpec(NamedTuple):
    """One machine: what it has and what an hour of it costs on demand."""

    name: str
    arch: str
    vcpus: int
    gib: int
    price: Decimal
    gpus: int = 0


FAMILIES: Final = (
    Family("m5", "amd64", 4, "0.048", TO_24),
    Family("m5a", "amd64", 4, "0.043", TO_24),
    Family("c5", "amd64", 2, "0.0425", COMPUTE_5),
    Family("c5a", "amd64", 2, "0.0385", TO_24),
    Family("r5", "amd64", 8, "0.063", TO_24),
    Family("r5a", "amd64", 8, "0.0565", TO_24),
    Family("m6g", "arm64", 4, "0.0385", TO_16),
    Family("c6g", "arm64", 2, "0.034", TO_16),
    Family("r6g", "arm64", 8, "0.0504", TO_16),
    Family("m6i", "amd64", 4, "0.048", TO_32),
    Family("c6i", "amd64", 2, "0.0425", TO_32),
    Family("r6i", "amd64", 8, "0.063", TO_32),
    Family("m6a", "amd64", 4, "0.0432", TO_48),
    Family("c6a", "amd64", 2, "0.03825", TO_48),
    Family("r6a", "amd64", 8, "0.0567", TO_48),
    Family("m7g", "arm64", 4, "0.0408", TO_16),
    Family("c7g", "arm64", 2, "0.03625", TO_16),
    Family("r7g", "arm64", 8, "0.05355", TO_16),
    Family("m7i", "amd64", 4, "0.0504", WITHOUT_32),
    Family("c7i", "amd64", 2, "0.044625", WITHOUT_32),
    Family("r7i", "amd64", 8, "0.06615", WITHOUT_32),
    Family("m7a", "amd64", 4, "0.05796", f"medium {TO_48}"),
    Family("c7a", "amd64", 2, "0.05132", f"medium {TO_48}"),
    Family("r7a", "amd64", 8, "0.076075", f"medium {TO_48}"),
    Family("m8g", "arm64", 4, "0.04488", f"medium {WITHOUT_32}"),
    Family("c8g", "arm64", 2, "0.03988", f"medium {WITHOUT_32}"),
    Family("r8g", "arm64", 8, "0.05891", f"medium {WITHOUT_32}"),
    Family("m8i", "amd64", 4, "0.05292", TO_48),
    Family("c8i", "amd64", 2, "0.046855", TO_48),
    Family("r8i", "amd64", 8, "0.06946", TO_48),
)

MACHINES: Final = (
    MachineSpec("t3.small", "amd64", 2, 2, Decimal("0.0208")),
    MachineSpec("t3.medium", "amd64", 2, 4, Decimal("0.0416")),
    MachineSpec("t3.large", "amd64", 2, 8, Decimal("0.0832")),
    MachineSpec("t3.xlarge", "amd64", 4, 16, Decimal("0.1664")),
    MachineSpec("t3.2xlarge", "amd64", 8, 32, Decimal("0.3328")),
    MachineSpec("t3a.micro", "amd64", 2, 1, Decimal("0.0094")),
    MachineSpec("t3a.small", "amd64", 2, 2, Decimal("0.0188")),
    MachineSpec("t3a.medium", "amd64", 2, 4, Decimal("0.0376")),
    MachineSpec("t3a.large", "amd64", 2, 8, Decimal("0.0752")),
    MachineSpec("t3a.xlarge", "amd64", 4, 16, Decimal("0.1504")),
    MachineSpec("t3a.2xlarge", "amd64", 8, 32, Decimal("0.3008")),
    MachineSpec("g5.xlarge", "amd64", 4, 16, Decimal("1.006"), gpus=1),
    MachineSpec("g5.2xlarge", "amd64", 8, 32, Decimal("1.212"), gpus=1),
    MachineSpec("g5.12xlarge", "amd64", 48, 192, Decimal("5.672"), gpus=4),
    MachineSpec("g6.xlarge", "amd64", 4, 16, Decimal("0.8048"), gpus=1),
    MachineSpec("g6.2xlarge", "amd64", 8, 32, Decimal("0.9776"), gpus=1),
    MachineSpec("g6.12xlarge", "amd64", 48, 192, Decimal("4.6016"), gpus=4),
    MachineSpec("p3.8xlarge", "amd64", 32, 244, Decimal("12.24"), gpus=4),
    MachineSpec("p3.16xlarge", "amd64", 64, 488, Decimal("24.48"), gpus=8),
    MachineSpec("p4d.24xlarge", "amd64", 96, 1152, Decimal("21.957642"), gpus=8),
)

VCPUS: Final = {"medium": 1, "large": 2, "xlarge": 4}


def vcpus_of(size: str) -> int:
    """How many vCPUs a size has: medium 1, large 2, xlarge 4, Nxlarge 4N."""
    return VCPUS.get(size) or 4 * int(size.removesuffix("xlarge"))


def machines() -> Iterator[MachineSpec]:
    for family in FAMILIES:
        for size in family.sizes.split():
            vcpus = vcpus_of(size)
            price = Decimal(family.price_per_vcpu) * vcpus
            yield MachineSpec(f"{family.name}.{size}", family.arch, vcpus, vcpus * family.gib_per_vcpu, price)
    yield from MACHINES
