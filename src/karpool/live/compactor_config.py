"""The compactor's configuration where a cluster keeps it: under one key of a ConfigMap."""

from karpool.compaction.config import KEY, Config, parse_config
from karpool.live.client import Client
from karpool.live.errors import NotFoundError
from karpool.live.resources import CONFIG_MAPS
from karpool.model.problems import InputError


async def read_compactor_config(client: Client, *, name: str, namespace: str) -> Config:
    """The configuration; raises InputError if there is none, or it cannot be used."""
    place = f"ConfigMap {namespace}/{name}"
    try:
        found = await client.get(CONFIG_MAPS, name, namespace=namespace)
    except NotFoundError:
        raise InputError.at(place, "does not exist; make it, or name a file with --config") from None
    if KEY not in found.data:
        raise InputError.at(place, f"has no key {KEY}")
    return parse_config(found.data[KEY], file=f"{place}: data[{KEY}]")
