"""Clusters to show, without a command line: a store that a test changes, and pages over it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from aiohttp import ClientSession
from tests.factories import node, node_pool, pod

from karpool.catalog.instance_types import Catalog
from karpool.catalog.sources import open_catalog
from karpool.controller.store import ClusterStore
from karpool.model.objects import Objects
from karpool.observability.serving import Address, Guard, serving
from karpool.web.console import Console, OpenedCluster
from karpool.web.fleet import FleetRows
from karpool.web.pages import console_pages
from karpool.web.questions import DecidedCluster

ANY_PORT = Address("127.0.0.1", 0)
CATALOG = open_catalog("sample")


class NoDecider:
    """For tests in which nobody asks for an answer."""

    def __call__(self, objects: Objects) -> DecidedCluster:
        raise NotImplementedError(objects)


def small_store() -> ClusterStore:
    """Two nodes of one pool, with a pod on the first, and one pod that waits."""
    store = ClusterStore()
    store.pools.put(node_pool("web"))
    store.nodes.put(node("a", pool="web"))
    store.nodes.put(node("b", pool="web"))
    store.pods.put(pod("cart", node="a", cpu="500m", memory="1Gi"))
    store.pods.put(pod("waits", cpu="1"))
    return store


def fleet_of(store: ClusterStore, catalog: Callable[[], Catalog] = lambda: CATALOG) -> FleetRows:
    """The fleet of a store, with all rows made."""
    fleet = FleetRows(store, catalog)
    fleet.read(fleet.waiting)
    fleet.change()
    return fleet


def nodes_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Nodes of a document by name, each with its fields by name."""
    rows = [dict(zip(document["nodeFields"], row, strict=True)) for row in document["nodes"]]
    return {row["name"]: row for row in rows}


def decoded(change: tuple[int, bytes] | None) -> dict[str, Any]:
    assert change is not None
    found: dict[str, Any] = msgspec.json.decode(change[1])
    return found


class StoreSource:
    """A cluster that a test fills and changes."""

    def __init__(self, name: str = "test", store: ClusterStore | None = None) -> None:
        self.name = name
        self.store = small_store() if store is None else store
        self.opened = 0

    async def open(self) -> OpenedCluster:
        self.opened += 1
        about = {"name": self.name, "source": "a test", "kind": "live"}
        return OpenedCluster(self.store, lambda: CATALOG, NoDecider(), living=True, about=about)

    async def close(self) -> None:
        """Nothing is held open."""


@dataclass
class Served:
    """Pages that are served, and a browser of a kind."""

    base: str
    session: ClientSession
    address: Address

    async def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
        async with self.session.request(method, self.base + path, headers=headers) as answer:
            return answer.status, await answer.read(), dict(answer.headers)

    async def json(self, path: str) -> Any:
        status, body, _ = await self.get(path)
        assert status == 200, body
        return msgspec.json.decode(body)


@asynccontextmanager
async def served(
    *sources: StoreSource, address: Address = ANY_PORT, guard: Guard | None = None
) -> AsyncIterator[Served]:
    console = Console(sources or (StoreSource(),))
    try:
        async with serving(console_pages(console, address), guard) as bound, ClientSession() as session:
            port = bound["/"].port
            yield Served(f"http://127.0.0.1:{port}", session, replace(address, port=port))
    finally:
        await console.close()


def ask_served(story: Callable[[Served], Awaitable[Any]], *sources: StoreSource, **options: Any) -> Any:
    """What a story comes to whose pages are served meanwhile."""

    async def play() -> Any:
        async with served(*sources, **options) as pages:
            return await story(pages)

    return asyncio.run(play())
