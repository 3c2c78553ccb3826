"""The machines of Google Cloud, with the labels of GKE's nodes and of Karpenter's GCP provider.

The price list says how many CPUs and how much memory a type has. What else labels tell is in its name:
`FAMILY-SHAPE-SIZE`, and for machines with GPUs their number.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from karpool.catalog.machines import AMD64, ARM64, GPU, Machine, described

LABEL: Final = "karpenter.k8s.gcp/instance-"
GKE_LABEL: Final = "cloud.google.com/"
_ARM_FAMILIES: Final = ("a4x", "c4a", "n4a", "t2a")
_SHARED_CORES: Final = ("micro", "small", "medium")
_POOL_DECIDES: Final = {
    f"{GKE_LABEL}gke-os-distribution": ("cos", "ubuntu"),
    f"{GKE_LABEL}gke-container-runtime": ("containerd",),
}
_FAMILY: Final = re.compile(r"(?P<category>[a-z]+)(?P<generation>[0-9]*)")
_COUNTED: Final = re.compile(r"(?P<kind>a[0-9]+-[a-z]+gpu)-(?P<gpus>[0-9]+)g")

# The accelerators of machines that are sold with them, as GKE labels them.
_GPU_NAMES: Final = {
    "a2-highgpu": "nvidia-tesla-a100",
    "a2-megagpu": "nvidia-tesla-a100",
    "a2-ultragpu": "nvidia-a100-80gb",
    "a3-edgegpu": "nvidia-h100-80gb",
    "a3-highgpu": "nvidia-h100-80gb",
    "a3-megagpu": "nvidia-h100-mega-80gb",
    "a3-ultragpu": "nvidia-h200-141gb",
    "a4-highgpu": "nvidia-b200",
}
_GPUS_BY_SIZE: Final = {
    "g2-standard": ("nvidia-l4", {4: 1, 8: 1, 12: 1, 16: 1, 24: 2, 32: 1, 48: 4, 96: 8}),
    "g4-standard": ("nvidia-rtx-pro-6000", {48: 1, 96: 2, 192: 4, 384: 8}),
}


def machines_in(rows: Iterable[Mapping[str, str]]) -> Iterator[Machine]:
    """The machine types that rows describe."""
    return map(_machine, rows)


def _machine(row: Mapping[str, str]) -> Machine:
    name, vcpus = row["type"], max(1, int(float(row["vcpus"])))
    family, *rest = name.split("-")
    mib = int(float(row["memory_mib"]))
    accelerator, gpus = (row["gpu_name"], int(row["gpus"])) if row["gpus"] else _accelerator(name, vcpus)
    known = _FAMILY.match(family)
    facts = {
        "category": known["category"] if known else "",
        "family": family,
        "generation": known["generation"] if known else "",
        "shape": rest[0],
        "size": next((part for part in rest if part[0].isdigit()), rest[0]),
        "cpu": str(vcpus),
        "memory": str(mib),
        "gpu-name": accelerator,
        "gpu-manufacturer": "nvidia" if accelerator else "",
        "gpu-count": str(gpus) if gpus else "",
    }
    shown = {
        "machine-family": family,
        "gke-accelerator": accelerator,
        "gke-accelerator-count": str(gpus) if gpus else "",
        "gke-cpu-scaling-level": str(vcpus) if rest[0] not in _SHARED_CORES else "",
    }
    return Machine(
        name=name,
        arch=row.get("architectures") or (ARM64 if family in _ARM_FAMILIES else AMD64),
        vcpus=vcpus,
        memory_mib=mib,
        labels={**described((LABEL,), facts), **described((GKE_LABEL,), shown), **_POOL_DECIDES},
        devices={GPU: gpus} if gpus else {},
        shared_core=family == "e2" and rest[0] in _SHARED_CORES,
    )


def _accelerator(name: str, vcpus: int) -> tuple[str, int]:
    """The accelerator of a machine and how many of it there are; 0 where it has a share of one."""
    if counted := _COUNTED.match(name):
        return _GPU_NAMES.get(counted["kind"], ""), int(counted["gpus"])
    label, counts = _GPUS_BY_SIZE.get("-".join(name.split("-")[:2]), ("", {}))
    return label, counts.get(vcpus, 0)
