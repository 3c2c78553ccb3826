"""EC2's descriptions of its types as rows of the table of machines."""

from collections.abc import Mapping
from typing import Any

from karpool.catalog.fetch.asking import at, row


def machine_row(entry: Mapping[str, Any]) -> dict[str, str]:
    """A type as a row of the table of machines; empty if it is not described or cannot run Linux."""
    name, memory, vcpus = (
        entry.get("InstanceType"),
        at(entry, "MemoryInfo", "SizeInMiB"),
        at(entry, "VCpuInfo", "DefaultVCpus"),
    )
    if not name or not memory or not vcpus or name.startswith("mac"):
        return {}
    cards = at(entry, "NetworkInfo", "NetworkCards")
    first = at(cards, at(entry, "NetworkInfo", "DefaultNetworkCardIndex") or 0)
    arches = at(entry, "ProcessorInfo", "SupportedArchitectures") or ()
    gpus, other = at(entry, "GpuInfo", "Gpus"), _accelerators(entry)
    return row(
        type=name,
        vcpus=vcpus,
        memory_mib=memory,
        bare_metal=bool(entry.get("BareMetal")),
        hypervisor=entry.get("Hypervisor"),
        architectures="arm64" if "arm64" in arches else " ".join(arches),
        cpu_manufacturer=at(entry, "ProcessorInfo", "Manufacturer"),
        clock_ghz=at(entry, "ProcessorInfo", "SustainedClockSpeedInGhz"),
        network_baseline_gbps=_sum(cards, "BaselineBandwidthInGbps"),
        # Of several cards the network plugin uses the first.
        network_cards=1,
        max_enis=at(first, "MaximumNetworkInterfaces") or at(entry, "NetworkInfo", "MaximumNetworkInterfaces"),
        ipv4_per_eni=at(entry, "NetworkInfo", "Ipv4AddressesPerInterface"),
        efa=bool(at(entry, "NetworkInfo", "EfaSupported")),
        ebs_baseline_mbps=at(entry, "EbsInfo", "EbsOptimizedInfo", "BaselineBandwidthInMbps"),
        nvme_gb=_nvme(entry),
        gpu_manufacturer=at(gpus, 0, "Manufacturer"),
        gpu_name=at(gpus, 0, "Name"),
        # Machines with a part of a GPU count none.
        gpus=_sum(gpus, "Count") or None,
        gpu_memory_mib=at(gpus, 0, "MemoryInfo", "SizeInMiB"),
        accelerator_manufacturer=other and (at(other, 0, "Manufacturer") or "AWS"),
        accelerator_name=at(other, 0, "Name"),
        accelerators=_sum(other, "Count"),
    )


def _accelerators(entry: Mapping[str, Any]) -> Any:
    return at(entry, "NeuronInfo", "NeuronDevices") or at(entry, "InferenceAcceleratorInfo", "Accelerators")


def _nvme(entry: Mapping[str, Any]) -> Any:
    disks = entry.get("InstanceStorageInfo")
    return at(disks, "TotalSizeInGB") if at(disks, "NvmeSupport") in ("required", "supported") else None


def _sum(entries: Any, field: str) -> float | None:
    """The sum of a field of all entries; None if none has it."""
    numbers = [at(entry, field) for entry in entries] if isinstance(entries, list) else []
    known = [number for number in numbers if isinstance(number, (int, float))]
    return sum(known) if known else None
