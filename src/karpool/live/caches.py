"""The caches of a live cluster: one reflector for each kind that decisions need."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import structlog

from karpool.controller.store import ClusterStore
from karpool.kube.cache import CacheFeed, ChangeQueue
from karpool.kube.client import Client
from karpool.kube.errors import ForbiddenError, NotFoundError, UnreachableError
from karpool.kube.reflector import Reflector
from karpool.kube.resources import Resource, Unreadable
from karpool.kube.store import Store, Versions
from karpool.live import resources as r

_log = structlog.get_logger()
_TELL_EVERY: Final = 10.0
UNTRUSTED: Final = 330.0
"""Every watch ends by itself and begins anew within five minutes; one of which nothing was heard for longer hangs."""
UNHEARD: Final = 5.0
"""A watch that was cut begins anew within a moment; after an outage, caches show what was, until it does."""
_QUIET: Final = 60.0
_UNKNOWN: Final = "install the definitions: karpool crds | kubectl apply -f -"
_FORBIDDEN: Final = "apply the role that comes with the manifests in deploy/"


class ClusterCaches:
    """A store that follows the API server, with the kinds that every decision needs; `run` keeps it so."""

    def __init__(self, client: Client, on_restart: Callable[[str], None]) -> None:
        """`on_restart` hears of each watch that was cut, by the plural of its kind."""
        self.store = store = ClusterStore()
        self.changes = ChangeQueue()
        self._client = client
        self._on_restart = on_restart
        self._reflectors: list[Reflector[Any]] = []
        self._told: dict[tuple[str, str], float] = {}
        self.nodes = self.watch(r.NODES, store.nodes)
        self.pods = self.watch(r.PODS, store.pods)
        self.watch(r.POD_DISRUPTION_BUDGETS, store.pdbs)
        self.watch(r.DAEMON_SETS, store.daemon_sets)
        self.watch(r.PERSISTENT_VOLUME_CLAIMS, store.volume_claims)
        self.watch(r.PERSISTENT_VOLUMES, store.volumes)
        self.watch(r.STORAGE_CLASSES, store.storage_classes)
        self.watch(r.CSI_NODES, store.csi_nodes)
        self.watch(r.NAMESPACES, store.namespaces)

    def watch(
        self, resource: Resource[Any], store: Store[Any], *, namespace: str = "", name: str = ""
    ) -> CacheFeed[Any]:
        """Keep a shelf in step with a kind of object, or with the one that is named."""
        kept: CacheFeed[Any] = CacheFeed(store, self.changes)
        named = f"metadata.name={name}" if name else ""
        self._reflectors.append(
            Reflector(self._client, resource, kept, namespace=namespace, field_selector=named, on_error=self._trouble)
        )
        return kept

    def own_store(self) -> Store[Any]:
        """A shelf for a kind that decisions do not read."""
        return Store(Versions())

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())

    async def wait_for_sync(self) -> None:
        """Wait until everything was read once."""
        while self.unsynced():
            waits = [asyncio.create_task(reflector.synced.wait()) for reflector in self._reflectors]
            _, pending = await asyncio.wait(waits, timeout=_TELL_EVERY)
            for task in pending:
                task.cancel()
            if pending:
                _log.info("waiting for the API server", kinds=self.unsynced())
        self.changes.apply()

    def unsynced(self) -> list[str]:
        """The kinds of which nothing is known yet."""
        return [one.resource.plural for one in self._reflectors if not one.synced.is_set()]

    def stale(self) -> list[str]:
        """The kinds of which nothing was heard for so long that they cannot be trusted."""
        now = asyncio.get_running_loop().time()
        return [reflector.resource.plural for reflector in self._reflectors if _is_stale(reflector, now)]

    def _trouble(self, resource: Resource[Any], error: Exception) -> None:
        self._on_restart(resource.plural)
        if isinstance(error, NotFoundError):
            self._tell_seldom("the cluster does not know this kind", resource.plural, error, hint=_UNKNOWN)
        elif isinstance(error, ForbiddenError):
            self._tell_seldom("not allowed to watch", resource.plural, error, hint=_FORBIDDEN)
        elif isinstance(error, UnreachableError):
            # All watches fail together: one of them is enough to tell.
            self._tell_seldom("the API server does not answer", "", error)
        else:
            self._tell_seldom("a watch was cut", resource.plural, error)

    def _tell_seldom(self, event: str, resource: str, error: Exception, **more: str) -> None:
        """Log the same trouble once a minute; in between only for those who want to see everything."""
        now = asyncio.get_running_loop().time()
        again = now < self._told.get((event, resource), 0.0)
        if not again:
            self._told[event, resource] = now + _QUIET
        about = {"resource": resource} if resource else {}
        (_log.debug if again else _log.warning)(event, **about, error=str(error), **more)


def _is_stale(reflector: Reflector[Any], now: float) -> bool:
    disconnected = reflector.disconnected_at
    return now - reflector.last_activity > UNTRUSTED or (disconnected is not None and now - disconnected > UNHEARD)


def log_unreadable(found: Unreadable) -> None:
    """Tell of an object that cannot be read."""
    _log.warning("an object was left out", about=f"{found.resource.kind} {found.key}", problem=found.problem)
