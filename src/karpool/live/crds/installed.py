"""Finds definitions in a cluster that Karpool did not install."""

from karpool.kube.client import Client
from karpool.kube.errors import NotFoundError
from karpool.kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from karpool.live.crds import NAMES, is_ours


async def foreign_definitions(client: Client) -> tuple[str, ...]:
    return tuple([name for name in NAMES if await _is_foreign(client, name)])


async def _is_foreign(client: Client, name: str) -> bool:
    try:
        installed = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    except NotFoundError:
        return False
    return not is_ours(installed.metadata.labels)
