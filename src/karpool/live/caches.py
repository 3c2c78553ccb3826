"""Caches of a live cluster: one reflector for each kind that decisions need, all filling one ClusterStore."""

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
from karpool.kube.store import Store
from karpool.kube.watch_probe import ProbeTimes, WatchProbe
from karpool.live import resources as r

_log = structlog.get_logger()
_LOG_PROGRESS_SECONDS: Final = 10.0
_STALE_SECONDS: Final = 330.0
"""A watch ends and starts again within five minutes; one that is silent for longer hangs."""
PROBES: Final = ProbeTimes()
_DISCONNECTED_SECONDS: Final = 5.0
"""A watch that was cut usually starts again at once; in an outage the cache is stale until it does."""
_REPEAT_SECONDS: Final = 60.0
_UNKNOWN: Final = "install the definitions: karpool crds | kubectl apply -f -"
_FORBIDDEN: Final = "apply the role that comes with the manifests in deploy/"


class ClusterCaches:
    """A store with the kinds that every decision needs; `run` keeps it up to date."""

    def __init__(
        self,
        client: Client,
        on_restart: Callable[[str], None],
        on_failure: Callable[[Resource[Any], Exception], None] = lambda _resource, _error: None,
    ) -> None:
        """`on_restart` gets the plural of the kind whenever a watch was cut, `on_failure` the kind and what cut it."""
        self.store = store = ClusterStore()
        self.changes = ChangeQueue()
        self._client = client
        self._on_restart = on_restart
        self._on_failure = on_failure
        self._reflectors: list[Reflector[Any]] = []
        self._probes: list[WatchProbe] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next_log: dict[tuple[str, str], float] = {}
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
        """Keep a store up to date with a kind of object, or with one object of it."""
        feed: CacheFeed[Any] = CacheFeed(store, self.changes)
        selector = f"metadata.name={name}" if name else ""
        reflector: Reflector[Any] = Reflector(
            self._client, resource, feed, namespace=namespace, field_selector=selector, on_error=self._failed
        )
        self._reflectors.append(reflector)
        self._probes.append(WatchProbe(reflector, PROBES))
        return feed

    async def run(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())
            for probe in self._probes:
                tasks.create_task(probe.run())

    async def wait_for_sync(self) -> None:
        while self.unsynced():
            waits = [asyncio.create_task(reflector.synced.wait()) for reflector in self._reflectors]
            _, pending = await asyncio.wait(waits, timeout=_LOG_PROGRESS_SECONDS)
            for task in pending:
                task.cancel()
            if pending:
                _log.info("waiting for the API server", kinds=self.unsynced())
        self.changes.apply()

    def unsynced(self) -> list[str]:
        return [reflector.resource.plural for reflector in self._reflectors if not reflector.synced.is_set()]

    def stale(self) -> list[str]:
        """The kinds whose cache is too old to decide on."""
        now = asyncio.get_running_loop().time()
        return [reflector.resource.plural for reflector in self._reflectors if _is_stale(reflector, now)]

    def distrusted(self) -> dict[str, str]:
        """Why the watch of a kind cannot be trusted, by its plural; any thread may ask."""
        if self._loop is None:
            return {}
        now = self._loop.time()
        doubts = ((probe.reflector.resource.plural, probe.doubt(now)) for probe in self._probes)
        return {plural: why for plural, why in doubts if why}

    def _failed(self, resource: Resource[Any], error: Exception) -> None:
        self._on_restart(resource.plural)
        self._on_failure(resource, error)
        if isinstance(error, NotFoundError):
            self._log_failure("kind not installed", resource.plural, error, hint=_UNKNOWN)
        elif isinstance(error, ForbiddenError):
            self._log_failure("watch forbidden", resource.plural, error, hint=_FORBIDDEN)
        elif isinstance(error, UnreachableError):
            # All watches fail together: one line is enough.
            self._log_failure("API server unreachable", "", error)
        else:
            self._log_failure("watch interrupted", resource.plural, error)

    def _log_failure(self, event: str, resource: str, error: Exception, **hint: str) -> None:
        """Warn of the same failure once a minute, and log the others at level debug."""
        now = asyncio.get_running_loop().time()
        repeated = now < self._next_log.get((event, resource), 0.0)
        if not repeated:
            self._next_log[event, resource] = now + _REPEAT_SECONDS
        about = {"resource": resource} if resource else {}
        (_log.debug if repeated else _log.warning)(event, **about, error=str(error), **hint)


def _is_stale(reflector: Reflector[Any], now: float) -> bool:
    since = reflector.disconnected_at
    hangs = now - reflector.last_activity > _STALE_SECONDS
    return hangs or (since is not None and now - since > _DISCONNECTED_SECONDS)


def log_unreadable(unreadable: Unreadable) -> None:
    about = f"{unreadable.resource.kind} {unreadable.key}"
    _log.warning("object cannot be read", about=about, problem=unreadable.problem)
