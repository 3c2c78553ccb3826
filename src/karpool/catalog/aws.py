"""The machines of AWS, with the labels of Karpenter's AWS provider and of EKS Auto Mode."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from karpool.catalog.machines import AMD64, AMD_GPU, ARM64, GPU, Machine, dashed, described
from karpool.model.labels import EKS_CLASS

LABEL: Final = "karpenter.k8s.aws/instance-"
AUTO_MODE_LABEL: Final = "eks.amazonaws.com/instance-"
NEURON: Final = "aws.amazon.com/neuron"
GAUDI: Final = "habana.ai/gaudi"
EFA: Final = "vpc.amazonaws.com/efa"
_NAME: Final = re.compile(r"(?P<category>[a-z]+)(-[0-9]+tb)?(?P<generation>[0-9]+).*\.")
_DEVICES: Final = {"NVIDIA": GPU, "AMD": AMD_GPU, "Habana": GAUDI, "AWS": NEURON}

# Machines on Nitro whose network cards do not encrypt what they send to one another.
_SENDS_PLAIN: Final = frozenset(
    [
        "a1",
        "c5",
        "c5d",
        "c6g",
        "c6gd",
        "g5g",
        "i3",
        "m5",
        "m5a",
        "m5ad",
        "m5d",
        "m6g",
        "m6gd",
        "r5",
        "r5a",
        "r5ad",
        "r5b",
        "r5d",
        "r6g",
        "r6gd",
        "t3",
        "t3a",
        "t4g",
        "x2gd",
        "z1d",
    ]
)
_TOO_SMALL_FOR_AUTO_MODE: Final = ("nano", "micro", "small")


def machines_in(rows: Iterable[Mapping[str, str]]) -> Iterator[Machine]:
    """The machines that rows describe, as EC2 does."""
    return map(_machine, rows)


def _machine(row: Mapping[str, str]) -> Machine:
    name = row["type"]
    family, _, size = name.partition(".")
    cards = int(row["network_cards"] or 1)
    vcpus = int(row["vcpus"])
    small = size in _TOO_SMALL_FOR_AUTO_MODE or size.startswith("metal") or vcpus == 1
    return Machine(
        name=name,
        arch=ARM64 if row["architectures"] == "arm64" else AMD64,
        vcpus=vcpus,
        memory_mib=int(float(row["memory_mib"])),
        labels=described((LABEL, AUTO_MODE_LABEL), _facts(row, family, size)) | _hypervisor(row),
        devices=_devices(row),
        # The network plugin uses the first card only.
        network_interfaces=int(row["max_enis"] or 0) // cards,
        addresses_per_interface=int(row["ipv4_per_eni"] or 0),
        closed_to=(EKS_CLASS,) if small else (),
    )


def _facts(row: Mapping[str, str], family: str, size: str) -> dict[str, str]:
    """What labels say of a machine; what is empty is not known, or the machine does not have it."""
    parts = _NAME.match(row["type"])
    return {
        "category": parts["category"] if parts else "",
        "family": family,
        "generation": parts["generation"] if parts else "",
        "size": size,
        "cpu": row["vcpus"],
        "cpu-manufacturer": row["cpu_manufacturer"].lower(),
        "cpu-sustained-clock-speed-mhz": _scaled(row["clock_ghz"]),
        "memory": str(int(float(row["memory_mib"]))),
        "ebs-bandwidth": row["ebs_baseline_mbps"],
        "network-bandwidth": _scaled(row["network_baseline_gbps"]),
        "local-nvme": row["nvme_gb"],
        "encryption-in-transit-supported": _encrypts(row, family),
        "capability-flex": str(family.endswith("-flex")).lower(),
        "tenancy": "default",
        "gpu-name": dashed(row["gpu_name"]),
        "gpu-manufacturer": dashed(row["gpu_manufacturer"]),
        "gpu-count": row["gpus"],
        "gpu-memory": row["gpu_memory_mib"],
        "accelerator-name": dashed(row["accelerator_name"]),
        "accelerator-manufacturer": dashed(row["accelerator_manufacturer"]),
        "accelerator-count": row["accelerators"],
    }


def _hypervisor(row: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Bare metal has the label with an empty value; what EC2 does not describe has none."""
    known = row["hypervisor"] or row["bare_metal"]
    return {f"{prefix}hypervisor": (row["hypervisor"],) for prefix in (LABEL, AUTO_MODE_LABEL) if known}


def _scaled(thousands: str) -> str:
    return str(round(float(thousands) * 1000)) if thousands else ""


def _encrypts(row: Mapping[str, str], family: str) -> str:
    if not row["architectures"]:
        return ""
    return str(row["hypervisor"] != "xen" and family not in _SENDS_PLAIN).lower()


def _devices(row: Mapping[str, str]) -> dict[str, int]:
    devices = {}
    for maker, count in (
        (row["gpu_manufacturer"] or _maker(row["gpu_name"]), row["gpus"]),
        (row["accelerator_manufacturer"], row["accelerators"]),
    ):
        if maker in _DEVICES and count:
            devices[_DEVICES[maker]] = int(count)
    if row["efa"] == "1":
        devices[EFA] = 1
    return devices


def _maker(name: str) -> str:
    """Who made a GPU that only the price list names."""
    return "AMD" if name.startswith("Radeon") else "NVIDIA" if name else ""
