"""Where a catalogue comes from: a cloud's price list, the sample, what the KWOK provider generates, or a file."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from karpool.catalog import kwok, sample
from karpool.catalog.builtin import KubeletSettings, cloud_types, listed_types, unlisted_zones
from karpool.catalog.discounts import check_types, parse_discounts, with_discounts
from karpool.catalog.instance_types import Catalog, InstanceType, PriceOrigin
from karpool.catalog.kwok_file import read_types
from karpool.catalog.overrides import PriceChanges, checked_amount, repriced
from karpool.catalog.places import DEFAULT_REGIONS, KWOK, CloudRegion, is_region
from karpool.catalog.price_data import AWS, CLOUDS
from karpool.catalog.price_file import read_price_list
from karpool.catalog.price_list import PriceList, shipped_list
from karpool.wire.entry_points import Plugin, load_plugin, plugin_names
from karpool.wire.problems import InputError, suggestion
from karpool.wire.sources import ManifestSource, display_name, read_source

SAMPLE: Final = "sample"
GROUP: Final = "karpool.catalogs"
"""The entry points of installed packages: functions without parameters that return instance types."""
_PLUGIN_NAME: Final = r"[A-Za-z][\w-]*"


class _Types(NamedTuple):
    """Types as a source gives them, and the share of the on-demand price that spot costs, if that is its rule."""

    types: tuple[InstanceType, ...]
    spot_fraction: float | None = None
    origins: tuple[PriceOrigin, ...] = ()


def open_catalog(
    source: str | None = None,
    *,
    places: tuple[CloudRegion, ...] = (),
    kubelets: KubeletSettings = KubeletSettings(),  # noqa: B008 - it is immutable
    node_fee: float = 0.0,
    overrides: Mapping[tuple[str, str], float] | None = None,
    factor: float = 1.0,
    spot_fraction: float | None = None,
    discounts: Iterable[str] = (),
) -> Catalog:
    """The catalogue of a source (`aws`, `gcp:REGION`, `kwok`, a plugin, a file) with the user's prices and fee.

    `places` are the regions of clouds that count where the source names none; without a source, of all these clouds.
    `overrides` are hourly prices by type and capacity type, the latter empty for all but spot and reserved;
    `discounts` are written as `m7*=31%`.
    """
    listed = _of_places(places, kubelets) if source is None and places else _types(source or AWS, places, kubelets)
    share = listed.spot_fraction if spot_fraction is None else checked_amount("--spot-fraction", spot_fraction)
    prices = dict(overrides or {})
    types, rules = listed.types, parse_discounts(discounts)
    check_types(rules, types)
    factor = checked_amount("--price-factor", factor)
    changes = PriceChanges(factor=factor, spot_fraction=share, overrides=prices, discounts=rules)
    if changes != PriceChanges(spot_fraction=listed.spot_fraction):
        types = tuple(repriced(entry, changes) for entry in types)
    fee = checked_amount("--node-fee", node_fee)
    origins = with_discounts(listed.origins, rules, types)
    return Catalog(types, node_fee=fee, price_overrides=prices, origins=origins)


def catalog_names() -> tuple[str, ...]:
    """The catalogues that are built in or installed; none of them is loaded."""
    return tuple(sorted({*CLOUDS, KWOK, SAMPLE, *plugin_names(GROUP)}))


def is_catalog_name(source: str) -> bool:
    """Whether a source is built in (with any region) or installed, and not a file."""
    name, colon, _ = source.partition(":")
    if colon:
        return name in CLOUDS
    return re.fullmatch(_PLUGIN_NAME, source) is not None and source in catalog_names()


def check_region(source: str) -> str:
    """What is wrong with the region that a source such as `gcp:us-central1` names; empty if nothing is."""
    cloud, colon, region = source.partition(":")
    if cloud not in CLOUDS or not colon or is_region(cloud, region):
        return ""
    return f"{region!r} is not a region; write {cloud}:REGION, such as {cloud}:{DEFAULT_REGIONS[cloud]}"


def _of_places(places: tuple[CloudRegion, ...], kubelets: KubeletSettings) -> _Types:
    clouds = dict.fromkeys(place.cloud for place in places)
    parts = [_of_cloud(cloud, [place for place in places if place.cloud == cloud], kubelets) for cloud in clouds]
    types = tuple(entry for part in parts for entry in part.types)
    return _Types(types, None, tuple(origin for part in parts for origin in part.origins))


def _of_cloud(cloud: str, places: Sequence[CloudRegion], kubelets: KubeletSettings) -> _Types:
    return _Types(cloud_types(cloud, tuple(places), kubelets), None, _origins(shipped_list(cloud), places))


def _origins(listed: PriceList, places: Iterable[CloudRegion]) -> tuple[PriceOrigin, ...]:
    found = []
    for place in places:
        covered = place.region in listed.regions
        date = listed.date if covered else ""
        unlisted = tuple(sorted({zone.id for zone in unlisted_zones(listed, place)}))
        found.append(
            PriceOrigin(listed.source, listed.cloud, place.region, date, known=covered, unlisted_zones=unlisted)
        )
    return tuple(found)


def _types(source: str, places: tuple[CloudRegion, ...], kubelets: KubeletSettings) -> _Types:
    name, colon, region = source.partition(":")
    if wrong := check_region(source):
        raise InputError.at("--catalog", wrong)
    if name in CLOUDS and (colon or source == name):
        near = [place for place in places if place.cloud == name and region in ("", place.region)]
        return _of_cloud(name, near or [CloudRegion(name, region or DEFAULT_REGIONS[name])], kubelets)
    if source == SAMPLE:
        origin = PriceOrigin("sample table", AWS, sample.DEFAULT_REGION)
        return _Types(sample.sample_types(), sample.SPOT_FRACTION, (origin,))
    if source == KWOK:
        return _Types(kwok.kwok_types(), kwok.SPOT_FRACTION, (PriceOrigin("KWOK provider"),))
    if re.fullmatch(_PLUGIN_NAME, source):
        plugin = load_plugin(GROUP, source, "--catalog")
        if plugin is not None:
            return _Types(_plugin_types(plugin), None, (PriceOrigin(plugin.description),))
        if not Path(source).exists():
            names = catalog_names()
            message = (
                f"there is no catalogue or file {source!r}; there are {', '.join(names)}{suggestion(source, names)}"
            )
            raise InputError.at("--catalog", message)
    file = ManifestSource(source)
    shown = display_name(file)
    data = read_source(file, sys.stdin.buffer)
    if data.lstrip().startswith(b"{"):
        return _of_list(read_price_list(data, shown), places, kubelets)
    return _Types(read_types(data, shown), None, (PriceOrigin(shown),))


def _of_list(listed: PriceList, places: tuple[CloudRegion, ...], kubelets: KubeletSettings) -> _Types:
    """The types of a price list in a file in the regions of its cloud that count, else in all that it covers."""
    near = [place for place in places if place.cloud == listed.cloud]
    near = near or [CloudRegion(listed.cloud, region) for region in listed.regions]
    return _Types(listed_types(listed, near, kubelets), None, _origins(listed, near))


def _plugin_types(plugin: Plugin) -> tuple[InstanceType, ...]:
    try:
        types = tuple(plugin.value())
    except InputError:
        raise
    except Exception as error:
        message = f"{plugin.description} failed: {type(error).__name__}: {error}"
        raise InputError.at("--catalog", message) from error
    if not types or not all(isinstance(entry, InstanceType) for entry in types):
        raise InputError.at("--catalog", f"{plugin.description} did not return instance types")
    return types
