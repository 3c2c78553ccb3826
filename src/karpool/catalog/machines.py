"""Machines as clouds sell them: what they have, and the labels that their nodes get, whatever they cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from karpool.model.requirements import Requirement, one_of

GPU: Final = "nvidia.com/gpu"
AMD_GPU: Final = "amd.com/gpu"
AMD64: Final = "amd64"
ARM64: Final = "arm64"


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine type of a cloud; `devices` are its GPUs and the like, by the name of their resource."""

    name: str
    arch: str
    vcpus: int
    memory_mib: int
    labels: Mapping[str, tuple[str, ...]]
    devices: Mapping[str, int] = field(default_factory=dict)
    network_interfaces: int = 0
    addresses_per_interface: int = 0
    shared_core: bool = False
    """Whether it has only a part of the CPUs that it shows."""
    closed_to: tuple[str, ...] = ()
    """Node classes of its cloud that do not use it, by their labels."""
    orderable: bool = True
    """Whether a new one can be had; of others there are only nodes of old."""


@lru_cache(maxsize=16384)
def values(*allowed: str) -> Requirement:
    """The same object for the same values: thousands of types share them."""
    return one_of(*allowed)


def described(prefixes: tuple[str, ...], facts: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Labels with each of the prefixes for all facts that are known."""
    return {prefix + name: (value,) for prefix in prefixes for name, value in facts.items() if value}


def dashed(text: str) -> str:
    """A maker's name as a label value."""
    return text.lower().replace(" ", "-")
