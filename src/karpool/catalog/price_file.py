"""Price lists in files, as `karpool catalog update` writes them and `--catalog` reads them.

A JSON object of kind PriceList: cloud, day and source; for each region its zones and prices; and the machines as rows
of the tables that ship with Karpool. A mistake is refused with its place, and nothing of such a file is used.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec

from karpool.catalog.machines import Machine
from karpool.catalog.places import is_region
from karpool.catalog.price_data import ANY_ZONE, CLOUDS, RegionPrices, TypePrices
from karpool.catalog.price_list import PriceList, machines_in
from karpool.wire.fields import explain, written_path
from karpool.wire.problems import Flaw, InputError, Problem

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_. ]{0,61}[A-Za-z0-9])?|")
_LARGEST: Final = 1e6

Day = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Price = Annotated[float, msgspec.Meta(gt=0, le=_LARGEST)]


class ListedPrice(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a type costs in $/h in a region, on demand, and as spot in the zones that have it; null: nobody knows."""

    on_demand: Price | None = None
    spot: dict[str, Price | None] = {}


class ListedRegion(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The zones of a region, their names in the account that asked, and the types that are sold there."""

    zones: tuple[str, ...]
    types: dict[str, ListedPrice]
    zone_names: dict[str, str] = {}


class PriceListFile(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    api_version: Literal["karpool.sh/v1"] = "karpool.sh/v1"
    kind: Literal["PriceList"] = "PriceList"
    cloud: str
    date: Day
    source: Text
    regions: dict[str, ListedRegion]
    machines: tuple[dict[str, str], ...]


def encode_price_list(listed: PriceListFile) -> bytes:
    return msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n"


def read_price_list(data: bytes, file: str) -> PriceList:
    """The price list in the bytes of a file; raises InputError for the first mistake."""
    written = _decoded(data, file)
    machines = _machines(written, file)
    for flaw in _flaws(written):
        raise InputError(Problem.of(flaw, file=file, about=""))
    regions = {name: _region_prices(region) for name, region in written.regions.items()}
    names = tuple(sorted(regions))
    return PriceList(written.cloud, written.source, written.date, names, lambda: machines, regions.get)


def _decoded(data: bytes, file: str) -> PriceListFile:
    try:
        plain = msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError.at(file, f"not a price list in JSON: {why}") from None
    try:
        return msgspec.convert(plain, PriceListFile)
    except msgspec.ValidationError as error:
        raise InputError(Problem.of(explain(error, PriceListFile, plain), file=file, about="")) from None


def _machines(written: PriceListFile, file: str) -> Mapping[str, Machine]:
    """The machines by name; a fact that a row leaves out is not known."""
    if written.cloud not in CLOUDS:
        raise InputError.at(file, f"{written.cloud!r} is none of {', '.join(CLOUDS)}", field="cloud")
    found: dict[str, Machine] = {}
    seen: set[str] = set()
    for position, row in enumerate(written.machines):
        field, name = f"machines[{position}]", row.get("type", "")
        if not _NAME.fullmatch(name) or name in seen:
            raise InputError.at(file, f"{name[:80]!r} is no name of a type, or there are two", field=f"{field}.type")
        seen.add(name)
        found.update(_machine(written.cloud, row, file, field))
    return found


def _machine(cloud: str, row: Mapping[str, str], file: str, field: str) -> Mapping[str, Machine]:
    """The machine of a row under its name; none if it cannot be a node."""
    try:
        made = machines_in(cloud, [defaultdict(str, row)])
    except (ValueError, OverflowError) as error:
        raise InputError.at(file, f"a number is not one: {error}", field=field) from None
    for machine in made.values():
        if machine.vcpus <= 0 or machine.memory_mib <= 0 or min(machine.devices.values(), default=1) < 0:
            raise InputError.at(file, "vcpus and memory_mib must be more than 0", field=field)
        for key, allowed in machine.labels.items():
            if not all(map(_LABEL_VALUE.fullmatch, allowed)):
                raise InputError.at(file, f"{allowed[0][:80]!r} cannot be the value of {key}", field=field)
    return made


def _flaws(written: PriceListFile) -> Iterator[Flaw]:
    known = {row["type"] for row in written.machines}
    if not written.regions:
        yield Flaw("regions", "Empty", "covers no region")
    for name, region in written.regions.items():
        if not is_region(written.cloud, name):
            yield Flaw(written_path(("regions", name[:80])), "Region", f"is not a region of {written.cloud}")
        for zone in (*region.zones, *region.zone_names.values()):
            if zone != ANY_ZONE and not _NAME.fullmatch(zone):
                yield Flaw(written_path(("regions", name, "zones")), "Zone", f"{zone[:80]!r} is no name of a zone")
        for kind, price in region.types.items():
            at = written_path(("regions", name, "types", kind[:80]))
            if kind not in known:
                yield Flaw(at, "UnknownType", "is not among the machines")
            if not set(price.spot) <= set(region.zones):
                yield Flaw(
                    at, "UnknownZone", f"{min(set(price.spot) - set(region.zones))[:80]!r} is not among the zones"
                )


def _region_prices(region: ListedRegion) -> RegionPrices:
    types = {name: TypePrices(price.on_demand, price.spot) for name, price in region.types.items()}
    return RegionPrices(region.zones, types, region.zone_names)
