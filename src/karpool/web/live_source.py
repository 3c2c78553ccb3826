"""A live cluster, watched: only ever listed and watched, and shown also where some kinds may not be read."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final

from karpool.kube.client import Client
from karpool.kube.errors import ApiError, ForbiddenError, NotFoundError
from karpool.kube.resources import Resource
from karpool.kube.store import Store
from karpool.kube.target import Target
from karpool.kube.transport import Timeouts
from karpool.live import USER_AGENT
from karpool.live import resources as r
from karpool.live.caches import ClusterCaches
from karpool.live.gang_objects import read_gang_objects
from karpool.live.process import background
from karpool.live.reading import DEVICES, REQUIRED, CannotReadError, Unlisted, read_autoscaler_status, read_cluster
from karpool.model.labels import PAUSE_MAP
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reading.kinds import KARPENTER
from karpool.operator.observed_catalog import CatalogFor, ObservedCatalog
from karpool.web.console import OpenedCluster
from karpool.web.questions import Decider
from karpool.wire.objects import Object

_TIMEOUTS: Final = Timeouts(response=30.0, retries=3.0)
_READ_AGAIN_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.05
_SPREAD: Final = (r.SERVICES, r.REPLICA_SETS, r.REPLICATION_CONTROLLERS, r.STATEFUL_SETS)


class WatchedCluster(ClusterCaches):
    """The kinds that decisions need most; one that the cluster lacks, or does not show, holds nothing up."""

    def __init__(self, client: Client, pause_namespace: str) -> None:
        super().__init__(client, lambda _kind: None, self._refused)
        self.missing: dict[str, Unlisted] = {}
        self._stores: dict[Resource[Any], Store[Any]] = {
            r.NODE_CLAIMS: self.store.claims,
            r.NODE_POOLS: self.store.pools,
            r.POD_DISRUPTION_BUDGETS: self.store.pdbs,
            r.DAEMON_SETS: self.store.daemon_sets,
            r.CSI_NODES: self.store.csi_nodes,
            r.NAMESPACES: self.store.namespaces,
        }
        self.watch(r.NODE_CLAIMS, self.store.claims)
        self.watch(r.NODE_POOLS, self.store.pools)
        self.watch(r.PAUSES, self.store.pauses, namespace=pause_namespace, name=PAUSE_MAP)

    async def follow(self) -> None:
        """Apply changes as they come."""
        async with background(self.run()):
            while True:
                await self.changes.waiting.wait()
                self.changes.waiting.clear()
                self.changes.apply()

    async def complete(self) -> None:
        """Wait until everything is there that the cluster shows; raises an ApiError if that is too little."""
        while True:
            # All that is not there yet may have been refused by now, and what is needed with it.
            for resource in REQUIRED:
                if resource.plural in self.missing:
                    problem = self.missing[resource.plural].problem
                    raise CannotReadError(resource, ForbiddenError(403, "Forbidden", problem))
            if not set(self.unsynced()) - self.missing.keys():
                break
            await asyncio.sleep(_LOOK_SECONDS)
        # What was read last is applied in the next turn of the loop.
        await asyncio.sleep(0)
        self.changes.apply()

    def notices(self) -> list[str]:
        """What may not be read, and what that means; Karpenter's kinds need not be there."""
        return [str(missing) for missing in self.missing.values() if not _not_installed(missing)]

    def _refused(self, resource: Resource[Any], error: Exception) -> None:
        if not isinstance(error, ForbiddenError | NotFoundError) or resource.plural in self.missing:
            return
        message = f"{_ABSENT}{error.message}" if isinstance(error, NotFoundError) else error.message
        self.missing[resource.plural] = missing = Unlisted(resource, message)
        store = self._stores.get(resource)
        if store is not None and not _not_installed(missing):
            for entry in missing.stand_ins():
                store.put(entry)


_ABSENT: Final = "not installed: "


def _not_installed(missing: Unlisted) -> bool:
    return missing.resource.group == KARPENTER and missing.problem.startswith(_ABSENT)


class LiveSource:
    """A cluster of a kube context, watched from the moment in which somebody first looks at it."""

    def __init__(
        self,
        target: Target,
        decider: Decider,
        catalog_for: CatalogFor,
        *,
        pause_namespace: str,
        node_overlays: bool = False,
        devices: bool = False,
        spread: bool = False,
        journal: Path | None = None,
    ) -> None:
        """`node_overlays`: whether they change prices. `devices`, `spread`: whether decisions look at these."""
        self.name = target.context or "cluster"
        self._target = target
        self._journal = journal
        self._decider = decider
        self._catalog_for = catalog_for
        self._pause_namespace = pause_namespace
        self._node_overlays = node_overlays
        self._kinds = (
            r.CAPACITY_BUFFERS,
            r.NODE_OVERLAYS,
            *(DEVICES if devices else ()),
            *(_SPREAD if spread else ()),
        )
        self._rest: Mapping[str, tuple[Object, ...]] = {}
        self._problem = ""
        self._stack = AsyncExitStack()

    async def open(self) -> OpenedCluster:
        await self._stack.aclose()
        self._stack = stack = AsyncExitStack()
        try:
            client = await stack.enter_async_context(
                Client(self._target, timeouts=_TIMEOUTS, user_agent=f"{USER_AGENT} ui")
            )
            # Listed, not watched: an API server that does not answer is noticed here.
            await self._read_rest(client, ())
            watched = WatchedCluster(client, self._pause_namespace)
            self._fill_overlays(watched)
            await stack.enter_async_context(background(watched.follow()))
            await watched.complete()
            notices = await self._read_rest(client, watched.store.pods.listed())
            await stack.enter_async_context(background(self._keep_reading(client, watched)))
        except ApiError as error:
            await stack.aclose()
            error.about = f"context {self.name}: {error.about}" if error.about else f"context {self.name}"
            raise
        except BaseException:
            await stack.aclose()
            raise
        catalog = ObservedCatalog(watched.store, self._catalog_for)
        about = {"name": self.name, "source": self._target.server, "kind": "live"}

        def status() -> Mapping[str, Any]:
            problems = [self._problem] if self._problem else []
            return {"stale": watched.stale(), "warnings": [*notices, *watched.notices(), *problems]}

        return OpenedCluster(
            watched.store,
            lambda: catalog.catalog,
            self._decider,
            living=True,
            about=about,
            status=status,
            others=lambda: self._rest,
            journal=self._journal,
        )

    async def close(self) -> None:
        await self._stack.aclose()

    async def _keep_reading(self, client: Client, watched: WatchedCluster) -> None:
        """Read now and then what changes seldom."""
        while True:
            await asyncio.sleep(_READ_AGAIN_SECONDS)
            try:
                await self._read_rest(client, watched.store.pods.listed())
            except ApiError as error:
                self._problem = f"cannot be read now: {error}"
            else:
                self._problem = ""
                self._fill_overlays(watched)

    async def _read_rest(self, client: Client, pods: Iterable[Pod]) -> list[str]:
        """What is not watched; `pods` say which kinds of gangs there are. Gives what could not be read."""
        gangs = await read_gang_objects(client, pods)
        reading = await read_cluster(client, resources=self._kinds)
        statuses = []
        # Without it, groups of unknown size are named in the plan's own warnings.
        with suppress(ForbiddenError):
            statuses.append(await read_autoscaler_status(client))
        rest: Mapping[str, tuple[Object, ...]] = _all_collections(reading.objects)
        known = tuple(status for status in statuses if status is not None)
        rest = {**rest, **gangs.found, "autoscaler_statuses": known}
        # The same tuples as before, where nothing has changed: only others are sent on.
        self._rest = {name: self._rest[name] if self._rest.get(name) == kept else kept for name, kept in rest.items()}
        return [*reading.notes(), *gangs.problems]

    def _fill_overlays(self, watched: WatchedCluster) -> None:
        """Overlays are in the store too, for the prices on the page."""
        if not self._node_overlays:
            return
        overlays: Any = {entry.key: entry for entry in self._rest.get("node_overlays", ())}
        store = watched.store.overlays
        for gone in [key for key in (entry.key for entry in store.listed()) if key not in overlays]:
            store.remove(gone)
        for entry in overlays.values():
            if store.get(entry.key) != entry:
                store.put(entry)


def _all_collections(objects: Objects) -> Mapping[str, tuple[Object, ...]]:
    named: dict[str, Any] = {name: getattr(objects, name) for name in objects.__struct_fields__}
    return {name: kept for name, kept in named.items() if kept}
