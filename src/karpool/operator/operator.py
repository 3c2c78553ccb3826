"""`karpool run`: all parts of the controller put together, on one API server."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from typing import Final

import structlog

from karpool.catalog.instance_types import Catalog
from karpool.controller.cluster_state import ClusterState
from karpool.controller.controller import Controller
from karpool.execution.actions import RecordEvent
from karpool.kube.client import Client
from karpool.kube.clock import utc_now
from karpool.kube.election import ApiLeaseLock, LeaderElector, new_identity
from karpool.kube.errors import ApiError
from karpool.kube.resources import Unreadable
from karpool.kube.server_time import ServerTime
from karpool.kube.target import Target
from karpool.live import USER_AGENT
from karpool.live.caches import log_unreadable
from karpool.live.process import background, finished_before, stalled
from karpool.live.writer import Writer
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.observability.events import EventRecorder
from karpool.observability.metrics import Metrics
from karpool.observability.serving import Page, metrics_page, probe_page, serving
from karpool.operator.actuator import ApiActuator
from karpool.operator.caches import OperatorCaches
from karpool.operator.decision_reporter import DecisionReporter
from karpool.operator.instance_launcher import COLLECTION, InstanceLauncher
from karpool.operator.journal import Journal
from karpool.operator.lifecycle_reporter import LifecycleReporter
from karpool.operator.loop import Loop
from karpool.operator.observed_catalog import CatalogFor
from karpool.operator.pdb_source import StorePdbSource
from karpool.operator.pool_statistics import PoolStatistics
from karpool.operator.pool_status_controller import PoolStatusController
from karpool.operator.providers import provider_maker
from karpool.operator.providers.protocol import Provider, ProviderContext
from karpool.operator.settings import RunSettings
from karpool.operator.task_queue import TaskQueue
from karpool.packing.warmup import warm_up
from karpool.provisioning.launching import foresee

_log = structlog.get_logger()
UPKEEP: Final = 5.0
"""How often the status of pools and the gauges are brought up to date, in seconds."""
Wall = Callable[[], datetime]


class Operator:
    """One process of the controller; `run` lasts until it is asked to stop."""

    def __init__(
        self,
        settings: RunSettings,
        target: Target,
        catalog_for: CatalogFor,
        *,
        wall: Wall = utc_now,
        make_client: Callable[..., Client] = Client,
        pages: Sequence[Page] = (),
    ) -> None:
        """`pages` are served beside metrics and probes."""
        self.settings = settings
        self._pages = pages
        self.metrics = Metrics()
        self.journal = Journal(
            settings.journal.path,
            largest=settings.journal.largest,
            old_files=settings.journal.old_files,
            on_failure=self.metrics.journal_failed,
        )
        self.identity = new_identity()
        self._now = ServerTime(wall)
        self.client = make_client(
            target,
            user_agent=USER_AGENT,
            write_gate=self._may_write,
            on_request=self.metrics.api_request,
            on_date=self._now.observe,
            on_unreadable=self._unreadable,
        )
        self.queue = TaskQueue(self._now)
        self.caches = OperatorCaches(self.client, self.metrics)
        self.provider = provider_maker(settings.provider)(
            ProviderContext(
                client=self.client,
                caches=self.caches,
                catalog_for=catalog_for,
                execution=settings.execution,
                clock=self._now,
            )
        )
        self.loop: Loop | None = None
        self.controller: Controller | None = None
        self._elector: LeaderElector | None = None
        self._pools = PoolStatusController(
            self.client, self.caches.store, node_classes=self.provider.node_class_ready, clock=self._now
        )
        self._census = PoolStatistics(self.caches.store, self.provider.execution.taint_key)
        self._prepared = False
        self._alone = settings.lease.name is None or settings.dry_run

    # -- what others may ask -------------------------------------------------------------------------------------

    @property
    def leading(self) -> bool:
        """Whether this process decides."""
        return self._alone or (self._elector is not None and self._elector.leading)

    def _may_write(self) -> bool:
        return self.leading and not self.settings.dry_run

    def unhealthy(self) -> str | None:
        """What is wrong with this process, if it should be started anew."""
        return None if self.loop is None else stalled(self.loop.turned, self.settings.stalled_after)

    def unready(self) -> str | None:
        """Why this process cannot do its work yet."""
        missing = self.caches.unsynced()
        if missing:
            return f"waiting for {', '.join(missing)}"
        return None if self._prepared else "the engine is being loaded"

    # -- the run -------------------------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event) -> None:
        """Follow, lead and decide until asked to stop; then finish the write under way and release the lease."""
        settings = self.settings
        pages = (
            metrics_page(settings.metrics_address, self.metrics.page),
            probe_page("/healthz", settings.health_address, self.unhealthy),
            probe_page("/readyz", settings.health_address, self.unready),
            *self._pages,
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.client)
            bound = await stack.enter_async_context(serving(pages))
            where = {path.strip("/"): str(address) for path, address in bound.items()}
            _log.info("begins", provider=settings.provider, dry_run=settings.dry_run, **where)
            stack.callback(self.journal.close)
            await stack.enter_async_context(background(self.caches.run()))
            synced = await finished_before(stop, self.caches.wait_for_sync())
            if synced and await finished_before(stop, self._prepare()):
                await self._lead(stop)

    async def _prepare(self) -> None:
        """Load the engine, or compile it where nobody has; whoever leads should decide at once."""
        with_engine = ThreadPoolExecutor(1, thread_name_prefix="engine")
        try:
            await asyncio.get_running_loop().run_in_executor(with_engine, warm_up)
        finally:
            with_engine.shutdown(wait=False)
        self._prepared = True

    async def _lead(self, stop: asyncio.Event) -> None:
        recorder = EventRecorder(
            self.client,
            uid_of=self.caches.feeds.uid_of,
            instance=self.identity,
            on_result=self.metrics.event,
        )
        events = asyncio.get_running_loop()

        def record(event: RecordEvent) -> None:
            """Tell people of something, from whichever thread; a dry run writes nothing."""
            if not self.settings.dry_run:
                events.call_soon_threadsafe(recorder.record, event)

        writer = Writer(self.client, self.caches.feeds, self._now)
        provider = self.provider
        launches = self._launches(provider, writer, record)
        actuator = ApiActuator(writer, recorder, launches, stopping=stop.is_set, dry_run=self.settings.dry_run)
        self.controller = self._controller(provider, actuator, record)
        LifecycleReporter(self.caches.store, self.metrics, self._now)
        self.loop = Loop(
            self.queue,
            self.caches.changes,
            actuator,
            self.controller,
            leading=lambda: self.leading,
            term=lambda: 0 if self._elector is None else self._elector.term,
            trusted=lambda: not self.caches.stale(),
            each_turn=launches.catch_up if launches is not None else _nothing,
            at_stop=launches.stop if launches is not None else _nothing,
        )
        loop = self.loop

        async def work() -> None:
            async with background(self._upkeep(provider, launches)):
                await loop.run(stop)

        async with background(recorder.run()):
            await self._elected(work)

    async def _elected(self, work: Callable[[], Awaitable[None]]) -> None:
        """Work while the lease is held; give it back after the last write."""
        lease = self.settings.lease
        if self._alone or lease.name is None:
            self.metrics.leading(leads=True)
            await work()
            return
        leases = ApiLeaseLock(self.client.ungated(), namespace=lease.namespace, name=lease.name)
        self._elector = LeaderElector(leases, self.identity, lease.times)
        leading = self.metrics.leading
        try:
            async with background(self._elector.run(lambda: leading(leads=True), lambda: leading(leads=False))):
                await work()
        finally:
            await self._elector.release()

    # -- parts ---------------------------------------------------------------------------------------------------

    def _launches(
        self, provider: Provider, writer: Writer, record: Callable[[RecordEvent], None]
    ) -> InstanceLauncher | None:
        if provider.machines is None or self.settings.dry_run:
            return None
        return InstanceLauncher(
            provider.machines,
            self.caches.store,
            writer,
            clock=self._now,
            alive=lambda: self.leading,
            record=record,
        )

    def _controller(
        self, provider: Provider, actuator: ApiActuator, record: Callable[[RecordEvent], None]
    ) -> Controller:
        store, settings = self.caches.store, self.settings

        def foreseen(claim: NodeClaim) -> NodeClaim:
            return foresee(Objects(node_claims=(claim,)), provider.offers.catalog).node_claims[0]

        controller = Controller(
            store,
            self.queue,
            ClusterState(store, foreseen, preferences=settings.options.preferences),
            actuator,
            offers=provider.offers,
            pdb_source=StorePdbSource(store),
            settings=replace(settings.decisions, annotated_budgets=provider.annotated_budgets),
            options=settings.options,
            execution=provider.execution,
            intervals=settings.intervals,
            duties=provider.duties,
        )
        controller.observers.append(
            DecisionReporter(
                store,
                self.metrics,
                self.journal,
                record=record,
                clock=self._now,
                dry_run=settings.dry_run,
                explain_every=settings.explain_every,
            )
        )
        return controller

    # -- upkeep --------------------------------------------------------------------------------------------------

    async def _upkeep(self, provider: Provider, launches: InstanceLauncher | None) -> None:
        """Status of pools, gauges, and machines that belong to nobody."""
        collected = time.monotonic()
        while True:
            try:
                self._measure(provider.offers.catalog, annotated=provider.annotated_budgets)
                if self._may_write() and provider.duties.tends:
                    await self._pools.keep()
                if launches is None or self.controller is None or not self.controller.running:
                    collected = time.monotonic()
                elif time.monotonic() - collected > COLLECTION:
                    collected = time.monotonic()
                    await launches.collect()
            except ApiError as error:
                _log.warning("upkeep failed; it is tried again", error=str(error))
            await asyncio.sleep(UPKEEP)

    def _measure(self, catalog: Catalog, *, annotated: bool) -> None:
        store = self.caches.store
        self.metrics.cluster(len(store.nodes), synced=not self.caches.unsynced())
        self.metrics.pools(self._census.figures(catalog, self._now(), annotated_budgets=annotated))

    def _unreadable(self, found: Unreadable) -> None:
        log_unreadable(found)
        self._pools.unreadable(found)


def _nothing() -> None:
    """Do nothing."""
