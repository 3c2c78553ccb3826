"""Where a catalogue comes from: built in, generated as the KWOK provider does, or a file."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from karpool.catalog import builtin, kwok
from karpool.catalog.instance_types import Catalog, InstanceType
from karpool.catalog.kwok_file import read_types
from karpool.catalog.overrides import PriceChanges, checked_amount, repriced
from karpool.wire.entry_points import Plugin, load_plugin, plugin_names
from karpool.wire.problems import InputError, suggestion
from karpool.wire.sources import ManifestSource, display_name, read_source

AWS: Final = "aws"
KWOK: Final = "kwok"
GROUP: Final = "karpool.catalogs"
"""The entry points of installed packages: functions without parameters that return instance types."""
_PLUGIN_NAME: Final = r"[A-Za-z][\w-]*"


class _Types(NamedTuple):
    """Types as a source gives them, and the share of the on-demand price that spot costs, if that is its rule."""

    types: tuple[InstanceType, ...]
    spot_fraction: float | None = None


def open_catalog(
    source: str | None = None,
    *,
    node_fee: float = 0.0,
    overrides: Mapping[tuple[str, str], float] | None = None,
    factor: float = 1.0,
    spot_fraction: float | None = None,
) -> Catalog:
    """The catalogue of a source (`aws`, `aws:REGION`, `kwok`, a plugin's name, a file) with the user's prices and fee.

    `overrides` are hourly prices by type and capacity type, the latter empty for all but spot and reserved.
    """
    listed = _types(AWS if source is None else source)
    share = listed.spot_fraction if spot_fraction is None else checked_amount("--spot-fraction", spot_fraction)
    prices = dict(overrides or {})
    changes = PriceChanges(factor=checked_amount("--price-factor", factor), spot_fraction=share, overrides=prices)
    types = listed.types
    if changes != PriceChanges(spot_fraction=listed.spot_fraction):
        types = tuple(repriced(entry, changes) for entry in types)
    return Catalog(types, node_fee=checked_amount("--node-fee", node_fee), price_overrides=prices)


def catalog_names() -> tuple[str, ...]:
    """The catalogues that are built in or installed; none of them is loaded."""
    return tuple(sorted({AWS, KWOK, *plugin_names(GROUP)}))


def is_catalog_name(source: str) -> bool:
    """Whether a source is built in (with any region) or installed, and not a file."""
    name, colon, _ = source.partition(":")
    if colon:
        return name == AWS
    return re.fullmatch(_PLUGIN_NAME, source) is not None and source in catalog_names()


def _types(source: str) -> _Types:
    name, colon, region = source.partition(":")
    if source == AWS or (name == AWS and builtin.is_region(region)):
        return _Types(builtin.aws_types(region or builtin.DEFAULT_REGION), builtin.SPOT_FRACTION)
    if name == AWS and colon:
        raise InputError.at("--catalog", f"{region!r} is not a region; write aws:REGION, such as aws:eu-west-1")
    if source == KWOK:
        return _Types(kwok.kwok_types(), kwok.SPOT_FRACTION)
    if re.fullmatch(_PLUGIN_NAME, source):
        plugin = load_plugin(GROUP, source, "--catalog")
        if plugin is not None:
            return _Types(_plugin_types(plugin))
        if not Path(source).exists():
            names = catalog_names()
            message = (
                f"there is no catalogue or file {source!r}; there are {', '.join(names)}{suggestion(source, names)}"
            )
            raise InputError.at("--catalog", message)
    file = ManifestSource(source)
    return _Types(read_types(read_source(file, sys.stdin.buffer), display_name(file)))


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
