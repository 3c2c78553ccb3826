"""The machines of Azure, with the labels of AKS and of its node auto-provisioning.

The price list says how many CPUs and how much memory a size has. What else labels tell is in its name:
family, CPUs, how many of them are switched on, features, accelerator and version, as in `Standard_E16-4ads_v5`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from karpool.catalog.machines import AMD64, AMD_GPU, ARM64, GPU, Machine, dashed, described
from karpool.model.labels import AKS_CLASS

LABEL: Final = "karpenter.azure.com/sku-"
AKS_LABEL: Final = "kubernetes.azure.com/"
_NAME: Final = re.compile(
    r"Standard_(?P<family>[A-Z])(?P<branch>[A-Z]*)[0-9]+(-(?P<fewer>[0-9]+))?(?P<features>[a-z]*)"
    r"(_(?P<more>[A-Za-z0-9]+?))??(_v(?P<version>[0-9]+))?(_Promo)?"
)
# The price list counts more of them than the machine has.
_TRUE_GPUS: Final = {"Standard_ND96isr_H100_v5": 8}
_FIRST_ACCELERATED_VERSION: Final = 2
_NO_NODES: Final = ("Basic_", "Standard_A0", "Standard_A1", "Standard_B1ls")
"""Sizes that AKS takes for no node pool."""
_LEAST_VCPUS: Final = 2
_LEAST_MIB: Final = 3584
_CONFIDENTIAL: Final = ("D", "E")
"""Families whose branch C is for confidential computing."""


def machines_in(rows: Iterable[Mapping[str, str]]) -> Iterator[Machine]:
    """The sizes that rows describe, if AKS takes them."""
    return (_machine(row) for row in rows if not row["type"].startswith(_NO_NODES))


def _machine(row: Mapping[str, str]) -> Machine:
    name, listed = row["type"], int(float(row["vcpus"]))
    parts = _NAME.fullmatch(name)
    features = parts["features"] if parts else ""
    vcpus = int(parts["fewer"]) if parts and parts["fewer"] else listed
    mib = int(float(row["memory_mib"]))
    gpus = _TRUE_GPUS.get(name, int(float(row["gpus"] or 0)))
    amd = row["gpu_name"].startswith("Radeon")
    facts = {"name": name, "cpu": str(vcpus), "memory": str(mib), "gpu-count": str(gpus)}
    if parts is not None:
        premium = "s" in features or parts["branch"] == "S"
        version = parts["version"] or "1"
        facts |= {
            "family": parts["family"],
            "series": _series(parts),
            "version": version,
            "storage-premium-capable": str(premium).lower(),
            "networking-accelerated": _accelerated(parts["family"], int(version), vcpus),
        }
    if gpus:
        facts |= {"gpu-name": dashed(row["gpu_name"]), "gpu-manufacturer": "amd" if amd else "nvidia"}
    return Machine(
        name=name,
        arch=ARM64 if "p" in features else AMD64,
        vcpus=vcpus,
        memory_mib=mib,
        labels={**described((LABEL,), facts), **_aks_labels(vcpus, mib)},
        devices={AMD_GPU if amd else GPU: gpus} if gpus else {},
        closed_to=() if _auto_provisioned(parts, vcpus, mib) else (AKS_CLASS,),
        orderable=vcpus >= _LEAST_VCPUS and not name.endswith("_Promo"),
    )


def _auto_provisioned(parts: re.Match[str] | None, vcpus: int, mib: int) -> bool:
    """Whether node auto-provisioning uses a size: none that is small, confidential, or has CPUs switched off."""
    if parts is None or vcpus < _LEAST_VCPUS or mib < _LEAST_MIB:
        return False
    confidential = parts["family"] in _CONFIDENTIAL and parts["branch"].startswith("C")
    return not confidential and not parts["fewer"]


def _series(parts: re.Match[str]) -> str:
    more = f"_{parts['more']}" if parts["more"] else ""
    version = f"_v{parts['version']}" if parts["version"] else ""
    return parts["family"] + parts["branch"] + parts["features"] + more + version


def _accelerated(family: str, version: int, vcpus: int) -> str:
    """Whether a size has accelerated networking; the oldest do not, and of others the smallest are in doubt."""
    if version < _FIRST_ACCELERATED_VERSION or family == "A":
        return "false" if family in ("A", "B") else ""
    return "true" if vcpus > 1 else ""


def _aks_labels(vcpus: int, mib: int) -> dict[str, tuple[str, ...]]:
    """What AKS itself says of its nodes; some of it the pool decides, so that each value can be had."""
    return {
        f"{AKS_LABEL}sku-cpu": (str(vcpus),),
        f"{AKS_LABEL}sku-memory": (str(mib),),
        f"{AKS_LABEL}mode": ("system", "user"),
        f"{AKS_LABEL}scalesetpriority": ("regular", "spot"),
        f"{AKS_LABEL}priority": ("regular", "spot"),
        f"{AKS_LABEL}os-sku": ("AzureLinux", "CBLMariner", "Mariner", "Ubuntu"),
    }
