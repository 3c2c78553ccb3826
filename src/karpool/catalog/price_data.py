"""The price lists that ship with Karpool: a table of machines for each cloud, a table of prices for each region.

`scripts/build_prices.py` writes them. Each is read when it is first asked for, and no other one with it.
"""

import csv
import io
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Final, NamedTuple

import msgspec

AWS: Final = "aws"
GCP: Final = "gcp"
AZURE: Final = "azure"
CLOUDS: Final = (AWS, GCP, AZURE)
ANY_ZONE: Final = "*"
"""The zone of spot prices that are the same in a whole region."""
_FIRST_ZONE: Final = 2
_UNKNOWN: Final = "?"
"""What is sold at a price that nobody knows; an empty cell is what is not sold."""


class ListOrigin(msgspec.Struct, frozen=True):
    """Where the prices of a cloud come from, of which day they are, and which regions they cover."""

    date: str
    source: str
    regions: tuple[str, ...]


class TypePrices(NamedTuple):
    """What a type costs in a region: on demand, and as spot in the zones that have it; None: nobody knows."""

    on_demand: float | None
    spot: Mapping[str, float | None]


class RegionPrices(NamedTuple):
    """The types that are sold in a region, and its zones as the price list names them.

    `zone_names`: by the ids of zones the names that they have in the account for which the list was made, if known.
    """

    zones: tuple[str, ...]
    types: Mapping[str, TypePrices]
    zone_names: Mapping[str, str] = {}


@lru_cache(maxsize=1)
def origins() -> Mapping[str, ListOrigin]:
    """Where the prices of every cloud come from."""
    text = (resources.files("karpool.catalog") / "data" / "sources.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, ListOrigin])


@lru_cache(maxsize=len(CLOUDS))
def machine_rows(cloud: str) -> tuple[dict[str, str], ...]:
    """The machines of a cloud, as the table of its types has them; an empty value is one that is not known."""
    return tuple(csv.DictReader(_table(cloud, "types")))


@lru_cache(maxsize=8)
def region_prices(cloud: str, region: str) -> RegionPrices | None:
    """What a region's machines cost; None where no price list covers the region."""
    if region not in origins()[cloud].regions:
        return None
    lines = csv.reader(_table(cloud, region))
    zones = tuple(next(lines)[_FIRST_ZONE:])
    types = {}
    for name, on_demand, *spot in lines:
        priced = {zone: _price(price) for zone, price in zip(zones, spot, strict=True) if price}
        types[name] = TypePrices(_price(on_demand), priced)
    return RegionPrices(zones, types)


def _price(cell: str) -> float | None:
    return None if cell in ("", _UNKNOWN) else float(cell)


def _table(cloud: str, name: str) -> io.StringIO:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    packed = (resources.files("karpool.catalog") / "data" / cloud / f"{name}.csv.zst").read_bytes()
    return io.StringIO(zstd.decompress(packed).decode())
