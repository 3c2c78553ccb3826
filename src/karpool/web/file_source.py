"""A cluster from files, read when somebody first looks at it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karpool.controller.store import ClusterStore
from karpool.model.objects import Objects
from karpool.operator.observed_catalog import CatalogFor, ObservedCatalog
from karpool.web.answering import COLLECTIONS
from karpool.web.console import OpenedCluster
from karpool.web.questions import Decider
from karpool.wire.objects import Object


@dataclass(frozen=True)
class FileCluster:
    """What was read from files, and how to decide about it."""

    objects: Objects
    decider: Decider
    warnings: tuple[str, ...]


class FileSource:
    """`read` reads the files and checks them; it is called in a thread, because that may take a while."""

    def __init__(
        self,
        name: str,
        about: str,
        read: Callable[[], FileCluster],
        catalog_for: CatalogFor,
        journal: Path | None = None,
    ) -> None:
        self.name = name
        self._journal = journal
        self._about = about
        self._read = read
        self._catalog_for = catalog_for

    async def open(self) -> OpenedCluster:
        return await asyncio.to_thread(self._opened)

    async def close(self) -> None:
        """Nothing is held open."""

    def _opened(self) -> OpenedCluster:
        cluster = self._read()
        store = filled_store(cluster.objects)
        catalog = ObservedCatalog(store, self._catalog_for)
        others = other_collections(cluster.objects)
        about = {"name": self.name, "source": self._about, "kind": "file", "read": datetime.now(UTC)}
        return OpenedCluster(
            store,
            lambda: catalog.catalog,
            cluster.decider,
            living=False,
            about={**about, "warnings": cluster.warnings},
            others=lambda: others,
            journal=self._journal,
        )


def filled_store(objects: Objects) -> ClusterStore:
    """A store with all objects that it has a place for."""
    store = ClusterStore()
    for name, collection in COLLECTIONS.items():
        for entry in getattr(objects, collection):
            getattr(store, name).put(entry)
    return store


def other_collections(objects: Objects) -> Mapping[str, tuple[Object, ...]]:
    """The objects that a store has no place for."""
    known = set(COLLECTIONS.values())
    named: dict[str, Any] = {name: getattr(objects, name) for name in objects.__struct_fields__}
    return {name: kept for name, kept in named.items() if kept and name not in known}
