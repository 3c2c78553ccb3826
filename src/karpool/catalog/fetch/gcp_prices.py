"""What machines of Google Cloud cost: its price list has prices of CPUs, of memory and of GPUs, not of machines.

A machine is the sum of its parts. If it has parts whose price is not in the list, or not beyond doubt, its price is
unknown: local disks, GPUs that have no price of their own, and memory machines that pay a premium.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, Final

from karpool.catalog.fetch.asking import at, only

_PART: Final = re.compile(
    r"(Spot Preemptible |Preemptible )?"
    r"(?P<family>[A-Z][0-9]+[A-Z]?|Compute optimized|Memory-optimized)"
    r"( AMD| Arm| Predefined| Memory-optimized)?( Instance)? (?P<part>Core|Ram) running in .+"
)
_WHOLE: Final = re.compile(
    r"(Spot Preemptible |Preemptible )?(?P<machine>Micro Instance with burstable CPU|Small Instance with 1 VCPU)"
    r" running in .+"
)
_GPU: Final = re.compile(r"(?P<gpu>Nvidia .+?) GPU (attached to Spot Preemptible VMs )?running in .+")
_FAMILIES: Final = {"Compute optimized": "c2", "Memory-optimized": "m1"}
_MACHINES: Final = {"Micro Instance with burstable CPU": "f1-micro", "Small Instance with 1 VCPU": "g1-small"}
_GPUS: Final = {"nvidia-tesla-a100": "Nvidia Tesla A100", "nvidia-l4": "Nvidia L4"}
"""Those that are sold by the piece, with machines that have no disks besides."""
_PAID_CORES: Final = {"e2-micro": 0.25, "e2-small": 0.5, "e2-medium": 1.0}
_OLD_NAMES: Final = re.compile(r"n1-(mega|ultra)mem-.*")
_UNKNOWN: Final = re.compile(r"m2-.*|m4-ultramem-224|z3-.*|.*-lssd.*|.*highlssd.*|.*standardlssd.*")
"""Machines with a premium, a price of their own, or local disks."""
_UNITS: Final = {"Core": ("h",), "Ram": ("GiBy.h", "GBy.h"), "": ("h",)}
_MIB_PER_GIB: Final = 1024


class PartPrices:
    """The prices of parts in some regions, collected from the entries of a list; contradictions count as unknown."""

    def __init__(self, regions: Collection[str]) -> None:
        self._regions = frozenset(regions)
        self._found: dict[tuple[str, str, str, bool], set[float]] = defaultdict(set)

    def add(self, entry: Any) -> None:
        """Take an entry of the list, if it is the price of a part, on demand or as spot, in one of the regions."""
        usage, text = at(entry, "category", "usageType"), at(entry, "description")
        named = _named(text) if isinstance(text, str) else None
        if named is None or usage not in ("OnDemand", "Preemptible"):
            return
        what, part = named
        spot = usage == "Preemptible"
        if spot is not ("Preemptible" in str(text)):
            return
        price = _hourly(entry, part)
        regions = at(entry, "serviceRegions")
        for region in self._regions.intersection(regions if isinstance(regions, list) else ()):
            if price is not None:
                self._found[what, part, region, spot].add(price)

    def price(self, what: str, part: str, region: str, *, spot: bool) -> float | None:
        """The price of a part of a family (or of a GPU, or a whole machine: part is empty); None if nobody knows."""
        return only(self._found.get((what, part, region, spot), ()))


def machine_price(machine: Mapping[str, Any], region: str, rates: PartPrices, *, spot: bool) -> float | None:
    """What a machine costs an hour; None if the price of any part of it is not known."""
    name = machine["name"]
    if _UNKNOWN.fullmatch(name) or at(machine, "bundledLocalSsds", "partitionCount"):
        return None
    if name in _MACHINES.values():
        return rates.price(name, "", region, spot=spot)
    family = "m1" if _OLD_NAMES.fullmatch(name) else name.partition("-")[0]
    cores = _PAID_CORES.get(name, machine["guestCpus"])
    gpus = _gpus(machine, region, rates, spot=spot)
    core, ram = (rates.price(family, part, region, spot=spot) for part in ("Core", "Ram"))
    if core is None or ram is None or gpus is None:
        return None
    price = cores * core + machine["memoryMb"] / _MIB_PER_GIB * ram + gpus
    return round(float(price), 6)


def _gpus(machine: Mapping[str, Any], region: str, rates: PartPrices, *, spot: bool) -> float | None:
    total = 0.0
    for accelerator in machine.get("accelerators") or ():
        name, count = at(accelerator, "guestAcceleratorType"), at(accelerator, "guestAcceleratorCount")
        each = rates.price(_GPUS.get(name, ""), "", region, spot=spot)
        if each is None or not isinstance(count, int):
            return None
        total += each * count
    return total


def _named(text: str) -> tuple[str, str] | None:
    """What an entry is the price of: a family and a part of its machines, or something whole."""
    if found := _PART.fullmatch(text):
        family = found["family"]
        return _FAMILIES.get(family, family.lower()), found["part"]
    if found := _WHOLE.fullmatch(text):
        return _MACHINES[found["machine"]], ""
    found = _GPU.fullmatch(text)
    return (found["gpu"], "") if found else None


def _hourly(entry: Any, part: str) -> float | None:
    """The price of an hour in US dollars, beyond what is free."""
    newest = at(entry, "pricingInfo")
    expression = at(newest[-1], "pricingExpression") if isinstance(newest, list) and newest else None
    rates = at(expression, "tieredRates")
    if at(expression, "usageUnit") not in _UNITS[part] or not isinstance(rates, list) or not rates:
        return None
    price = at(rates[-1], "unitPrice")
    if at(price, "currencyCode") not in (None, "USD"):
        return None
    units, nanos = at(price, "units") or 0, at(price, "nanos") or 0
    try:
        amount = int(units) + int(nanos) / 1e9
    except (TypeError, ValueError):
        return None
    return amount if amount > 0 else None
