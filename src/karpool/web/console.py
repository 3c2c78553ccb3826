"""The clusters that a console shows, each opened when somebody first looks at it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from karpool.catalog.instance_types import Catalog
from karpool.controller.store import ClusterStore
from karpool.report.price_words import prices_parts, prices_words
from karpool.web.answering import Answering
from karpool.web.feed import Feed
from karpool.web.fleet import FleetRows
from karpool.web.questions import Decider
from karpool.wire.objects import Object


@dataclass(frozen=True)
class OpenedCluster:
    """A cluster that has been read, or is being watched."""

    store: ClusterStore
    catalog: Callable[[], Catalog]
    decider: Decider
    living: bool
    """Whether it changes, and time matters."""
    about: Mapping[str, Any]
    """What the page says of it: where it comes from, and when it was read."""
    status: Callable[[], Mapping[str, Any]] = dict
    """What may change from moment to moment, such as watches that are cut."""
    journal: Path | None = None
    """The file with the decisions of the controller that works on it."""
    nice: int = 0
    """By how much working out answers is to give way to others on this machine."""
    others: Callable[[], Mapping[str, tuple[Object, ...]]] = dict
    """Objects that the store has no place for, by the name of their collection."""


class NotReadyError(Exception):
    """A cluster that cannot be shown yet; asked again in a moment, it can."""


class Source(Protocol):
    """Where a cluster comes from."""

    name: str

    async def open(self) -> OpenedCluster:
        """Read it; raises an InputError or an ApiError if that cannot be done."""

    async def close(self) -> None:
        """Stop watching it."""


class ShownCluster:
    """A cluster with what pages ask about it."""

    def __init__(self, cluster: OpenedCluster) -> None:
        self.cluster = cluster
        self.feed = Feed(lambda: FleetRows(cluster.store, cluster.catalog), cluster.status)
        self.answering = Answering(
            cluster.store,
            cluster.others,
            cluster.decider,
            moves=cluster.living,
            nice=cluster.nice,
            journal=cluster.journal,
        )

    def about(self) -> dict[str, Any]:
        prices = prices_words(prices_parts(self.cluster.catalog().origins))
        return {**self.cluster.about, "living": self.cluster.living, "prices": prices, **self.cluster.status()}

    async def close(self) -> None:
        self.feed.close()
        await self.answering.close()


class Console:
    """All clusters by name, the first one first."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = {source.name: source for source in sources}
        self._opening: dict[str, asyncio.Task[ShownCluster]] = {}

    @property
    def names(self) -> list[str]:
        return list(self._sources)

    async def cluster(self, name: str = "") -> ShownCluster:
        """A cluster, opened if need be; raises a KeyError if there is none of that name."""
        name = name or self.names[0]
        source = self._sources[name]
        task = self._opening.get(name)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._opening[name] = asyncio.create_task(_opened(source))
        # One page that goes away must not take the cluster from all others.
        return await asyncio.shield(task)

    async def close(self) -> None:
        for name, task in self._opening.items():
            task.cancel()
            # One that is still opening closes by itself what it has opened; two at once would do that in no order.
            await asyncio.wait((task,))
            if not task.cancelled() and task.exception() is None:
                await task.result().close()
            await self._sources[name].close()


async def _opened(source: Source) -> ShownCluster:
    return ShownCluster(await source.open())
