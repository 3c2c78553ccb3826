"""A price list: the machines of a cloud, and what they cost in regions; shipped with Karpool, or from a file."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from karpool.catalog import aws, azure, gcp
from karpool.catalog.machines import Machine
from karpool.catalog.price_data import AWS, AZURE, GCP, RegionPrices, machine_rows, origins, region_prices

_MACHINES: Final = {AWS: aws.machines_in, GCP: gcp.machines_in, AZURE: azure.machines_in}


@dataclass(frozen=True, eq=False, slots=True)
class PriceList:
    """Where prices come from, of which day they are, which regions they cover, and how to look them up."""

    cloud: str
    source: str
    date: str
    regions: tuple[str, ...]
    machines: Callable[[], Mapping[str, Machine]]
    prices: Callable[[str], RegionPrices | None]
    """What a region's machines cost; None where the list does not cover the region."""


@lru_cache(maxsize=3)
def shipped_list(cloud: str) -> PriceList:
    """The list of a cloud that ships with Karpool."""
    known = origins()[cloud]
    machines = partial(shipped_machines, cloud)
    return PriceList(cloud, known.source, known.date, known.regions, machines, partial(region_prices, cloud))


@lru_cache(maxsize=3)
def shipped_machines(cloud: str) -> Mapping[str, Machine]:
    """All machines of a cloud that can be nodes, by name."""
    return machines_in(cloud, machine_rows(cloud))


def machines_in(cloud: str, rows: Iterable[Mapping[str, str]]) -> Mapping[str, Machine]:
    """The machines that rows of a table describe, by name."""
    return {machine.name: machine for machine in _MACHINES[cloud](rows)}
