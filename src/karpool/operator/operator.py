"""`karpool run`: puts all parts of the controller together, on one API server."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial

import structlog

from karpool.controller.cluster_state import ClusterState
from karpool.controller.controller import Controller
from karpool.controller.observer import DecisionObserver
from karpool.disruption.repair.policies import RepairAction, RepairPolicies
from karpool.disruption.settings import DisruptionSettings
from karpool.execution.actions import RecordEvent
from karpool.kube.backoff import Backoff
from karpool.kube.client import Client
from karpool.kube.clock import utc_now
from karpool.kube.election import ApiLeaseLock, LeaderElector, new_identity
from karpool.kube.election_thread import ElectionThread
from karpool.kube.errors import ApiError
from karpool.kube.resources import Unreadable
from karpool.kube.server_time import ServerTime
from karpool.kube.target import Target
from karpool.live import USER_AGENT
from karpool.live.caches import log_unreadable
from karpool.live.fresh_facts import FactReader
from karpool.live.process import background, finished_before, stalled
from karpool.live.time_keeper import keep_time
from karpool.live.writer import Writer
from karpool.model.labels import BUDGETS, NODEPOOL, PAUSE_MAP
from karpool.model.nodepool import NodeClaim
from karpool.observability.events import EventRecorder
from karpool.observability.metrics import Metrics
from karpool.observability.reviews import TokenReviews
from karpool.observability.serving import Page, metrics_page, probe_page, serving
from karpool.observability.webhook import Webhook
from karpool.operator.actuator import ApiActuator
from karpool.operator.caches import OperatorCaches
from karpool.operator.capacity_buffers import BufferReader, BufferStatusController
from karpool.operator.decision_reporter import DecisionReporter
from karpool.operator.deletion_cost_writer import DeletionCostWriter
from karpool.operator.fact_source import ApiFactSource
from karpool.operator.gang_reader import GangReader
from karpool.operator.instances.instance_launcher import GC_INTERVAL, InstanceLauncher
from karpool.operator.instances.measured_instances import measured
from karpool.operator.journal import Journal
from karpool.operator.lifecycle_reporter import LifecycleReporter
from karpool.operator.loop import Loop
from karpool.operator.meters.disruption_meter import measure_disruptions
from karpool.operator.meters.loop_meter import LoopMeter
from karpool.operator.meters.pool_statistics import PoolStatistics
from karpool.operator.meters.unreadable_meter import UnreadableMeter
from karpool.operator.notifier import Notifier
from karpool.operator.observed_catalog import CatalogFor
from karpool.operator.pdb_source import StorePdbSource
from karpool.operator.pool_nodes import PoolNodes
from karpool.operator.pool_status_controller import PoolStatusController
from karpool.operator.providers import provider_maker
from karpool.operator.providers.protocol import Provider, ProviderContext, Reboots
from karpool.operator.settings import RunSettings
from karpool.operator.side_work import SideWork
from karpool.operator.task_queue import TaskQueue
from karpool.operator.upkeep import Upkeep
from karpool.optimization.warmup import warm_up
from karpool.packing.options import Options
from karpool.provisioning.inflight import as_launched
from karpool.recording.settings import ANNOTATION, settings_of, written
from karpool.wire.problems import InputError

_log = structlog.get_logger()
Record = Callable[[RecordEvent], None]


class Operator:
    def __init__(
        self,
        settings: RunSettings,
        target: Target,
        catalog_for: CatalogFor,
        *,
        wall: Callable[[], datetime] = utc_now,
        make_client: Callable[..., Client] = Client,
        observers: Sequence[DecisionObserver] = (),
        pages: Sequence[Page] = (),
    ) -> None:
        """`observers` hear of every decision; `pages` are served beside metrics and probes."""
        self.settings = settings
        self._observers = observers
        self._pages = pages
        self.metrics = Metrics()
        self.journal = Journal(settings.journal, on_failure=self.metrics.journal_failed)
        self.identity = new_identity()
        self._webhook = self._make_webhook()
        self._now = ServerTime(wall)
        self._target, self._make_client = target, make_client
        self.client = make_client(
            target,
            user_agent=USER_AGENT,
            write_gate=self._may_write,
            on_request=self.metrics.api_request,
            on_date=self._now.observe,
            on_unreadable=self._unreadable,
        )
        now = self._now
        self.queue = TaskQueue(now, earliest=lambda: now.earliest, latest=lambda: now.latest, doubt=lambda: now.doubt)
        self.caches = OperatorCaches(
            self.client,
            self.metrics,
            pause_namespace=settings.lease.namespace,
            default_spread=settings.options.default_spread,
            node_overlays=settings.decisions.node_overlays,
            devices=not settings.options.ignore_dra_requests,
        )
        self.provider = provider_maker(settings.provider)(
            ProviderContext(
                client=self.client,
                caches=self.caches,
                catalog_for=catalog_for,
                execution=settings.execution,
                clock=self._now,
            )
        )
        self._repair = _repair_policies(settings, self.provider)
        self.loop: Loop | None = None
        self.controller: Controller | None = None
        self._elector: LeaderElector | None = None
        store = self.caches.store
        nodes = PoolNodes(store)
        self._unreadable_meter = UnreadableMeter(store)
        self._pools = PoolStatusController(
            self.client, store, nodes, node_classes=self.provider.node_class_ready, clock=self._now
        )
        self._buffers = BufferReader(self.client, store, self.caches.changes)
        self._gangs = GangReader(self.client, store, self.caches.changes)
        self._buffer_status: BufferStatusController | None = None
        self._pool_statistics = PoolStatistics(store, nodes, self.provider.execution.taint_key)
        self._engine_loaded = False
        self._always_leads = settings.lease.name is None or settings.dry_run

    def _make_webhook(self) -> Webhook | None:
        address = self.settings.webhook
        if address is None:
            return None
        return Webhook(address, program="karpool run", instance=self.identity, on_result=self.metrics.notice)

    @property
    def leading(self) -> bool:
        return self._always_leads or (self._elector is not None and self._elector.leading)

    @property
    def decisions(self) -> DisruptionSettings:
        """What this controller decides by: the user's settings, and what follows from the provider."""
        settings, provider = self.settings, self.provider
        brakes = replace(
            settings.decisions.brakes,
            opt_in=provider.annotated_budgets,
            launched_by_others=provider.instances is None,
            pause_namespace=settings.lease.namespace,
        )
        annotated = provider.annotated_budgets
        return replace(settings.decisions, annotated_budgets=annotated, repair=self._repair, brakes=brakes)

    @property
    def placing(self) -> Options:
        """What this controller places pods by."""
        supply = BUDGETS if self.decisions.brakes.opted_in_only else None
        return replace(self.settings.options, supply_annotation=supply)

    def _may_write(self) -> bool:
        return self.leading and not self.settings.dry_run

    def unhealthy(self) -> str | None:
        if self.loop is None:
            return None
        limit = self.settings.stalled_after
        return stalled(self.loop.last_iteration, limit) or self.loop.livelocked(limit)

    def unready(self) -> str | None:
        missing = self.caches.unsynced()
        if missing:
            return f"waiting for {', '.join(missing)}"
        return None if self._engine_loaded else "the engine is being loaded"

    async def run(self, stop: asyncio.Event) -> None:
        """Watch, lead and decide until asked to stop; then finish the current write and release the lease."""
        settings = self.settings
        pages = (
            metrics_page(settings.metrics_address, self.metrics.page),
            probe_page("/healthz", settings.health_address, self.unhealthy),
            probe_page("/readyz", settings.health_address, self.unready),
            *self._pages,
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.client)
            bound = await stack.enter_async_context(serving(pages, TokenReviews(self.client)))
            # Of pages with many paths, their root.
            where = {path[1:] or "ui": str(address) for path, address in bound.items() if "/" not in path[1:]}
            pause = f"{settings.lease.namespace}/{PAUSE_MAP}"
            about = {"provider": settings.provider, "dry_run": settings.dry_run, "paused_by": f"ConfigMap {pause}"}
            _log.info("controller starting", **about, **where)
            if settings.dry_run:
                _log.warning("dry run: nothing is written to the cluster", so="add --act to carry decisions out")
            stack.callback(self.journal.close)
            if self._webhook is not None:
                await stack.enter_async_context(background(self._webhook.run()))
            await stack.enter_async_context(background(self.caches.run()))
            await stack.enter_async_context(background(keep_time(self.client, self._now)))
            await stack.enter_async_context(background(LoopMeter(self.metrics.loop_held_up).run()))
            synced = await finished_before(stop, self._read_all())
            if synced and await finished_before(stop, self._load_engine()):
                await self._lead(stop)

    async def _read_all(self) -> None:
        """Wait for all that decisions depend on."""
        await self.caches.wait_for_sync()
        backoff = Backoff(first=1.0, most=30.0)
        while True:
            try:
                await self._gangs.read()
                if self.settings.decisions.capacity_buffers:
                    await self._buffers.read()
            except ApiError as error:
                _log.warning("capacity buffers or gangs cannot be read; retrying", error=str(error))
                await asyncio.sleep(backoff.next())
            else:
                self.caches.changes.apply()
                return

    async def _load_engine(self) -> None:
        """Load the engine, or compile it the first time, so that a new leader decides at once."""
        executor = ThreadPoolExecutor(1, thread_name_prefix="engine")
        try:
            await asyncio.get_running_loop().run_in_executor(executor, warm_up)
        finally:
            executor.shutdown(wait=False)
        self._engine_loaded = True

    async def _lead(self, stop: asyncio.Event) -> None:
        recorder = EventRecorder(
            self.client, uid_of=self.caches.feeds.uid_of, instance=self.identity, on_result=self.metrics.event
        )
        event_loop = asyncio.get_running_loop()

        def record(event: RecordEvent) -> None:
            """Record an event, from any thread; a dry run writes nothing."""
            if not self.settings.dry_run:
                event_loop.call_soon_threadsafe(recorder.record, event)

        writer = Writer(self.client, self.caches.feeds, self._now)
        launcher = self._launcher(writer, record)
        actuator = ApiActuator(writer, recorder, launcher, stopping=stop.is_set, dry_run=self.settings.dry_run)
        costs = self._cost_writer()
        actuator.on_deletion_cost = costs.ask
        waiting = self.caches.changes.waiting
        beside = SideWork(self.queue, wake=lambda: self._wake(event_loop, waiting))
        reader = FactReader(self.client, self.caches.nodes, self.caches.pods)
        facts = ApiFactSource(reader, self.queue, wake=waiting.set)
        self.controller = controller = self._controller(actuator, record, beside, facts)
        actuator.on_refused = controller.refused
        LifecycleReporter(self.caches.store, self.metrics, self._now, self._repair)
        self.loop = Loop(
            self.queue,
            self.caches.changes,
            actuator,
            self.controller,
            leading=lambda: self.leading,
            term=lambda: 0 if self._elector is None else self._elector.term,
            caches_current=lambda: not self.caches.stale(),
            on_unexpected=lambda: self.metrics.unexpected_error("decisions"),
            on_iteration=launcher.launch_pending if launcher is not None else lambda: None,
            on_stop=partial(_stop_all, (launcher, costs)),
        )
        loop = self.loop

        async def work() -> None:
            async with background(self._upkeep(launcher).run()), background(self._provider_upkeep().run()):
                await loop.run(stop)

        async with background(recorder.run()), background(costs.run()):
            await self._elected(work)

    async def _elected(self, work: Callable[[], Awaitable[None]]) -> None:
        """Compete for the lease while working; release it after the last write."""
        lease = self.settings.lease
        if self._always_leads or lease.name is None:
            # Any number of dry runs decide beside a leader; none of them is one.
            if self.settings.dry_run:
                self.metrics.dry_run()
            else:
                self.metrics.leading(leads=True)
            await work()
            return
        # With connections and a loop of its own: however much there is to do here, the lease is renewed.
        client = self._make_client(self._target, user_agent=USER_AGENT, on_request=self.metrics.api_request)
        said = settings_of(
            self.decisions, self.settings.intervals, ignore_dra_requests=self.settings.options.ignore_dra_requests
        )
        own = ApiLeaseLock(client, namespace=lease.namespace, name=lease.name, annotations={ANNOTATION: written(said)})
        self._elector = LeaderElector(own, self.identity, lease.times)
        leading = self.metrics.leading
        election = ElectionThread(
            self._elector,
            client,
            on_started=lambda: leading(leads=True),
            on_stopped=lambda: leading(leads=False),
        )
        try:
            async with election, background(election.ended()):
                await work()
        finally:
            here = ApiLeaseLock(self.client.ungated(), namespace=lease.namespace, name=lease.name)
            await self._elector.release(here)

    def _launcher(self, writer: Writer, record: Record) -> InstanceLauncher | None:
        instances = self.provider.instances
        if instances is None or self.settings.dry_run:
            return None

        def called(method: str, seconds: float, error: str) -> None:
            self.metrics.provider_called(method, self.settings.provider, seconds, error)

        return InstanceLauncher(
            measured(instances, called),
            self.caches.store,
            writer,
            clock=lambda: self._now.earliest,
            alive=lambda: self.leading,
            record=record,
            ours=self.provider.execution.ours,
            planned_for=self._planned_for,
            on_unexpected=self.metrics.unexpected_error,
        )

    def _planned_for(self, claim: str) -> Collection[str]:
        """The keys of the pods that a NodeClaim was made for."""
        session = None if self.controller is None else self.controller.session
        return () if session is None else session.state.guests.get(claim, ())

    def _cost_writer(self) -> DeletionCostWriter:
        def pool_of(name: str) -> str:
            node = self.caches.store.nodes.get(name)
            return "" if node is None else node.metadata.labels.get(NODEPOOL, "")

        return DeletionCostWriter(
            self.client,
            self.caches.pods,
            pool_of=pool_of,
            on_result=self.metrics.deletion_cost,
            on_pending=self.metrics.deletion_costs_pending,
        )

    @staticmethod
    def _wake(event_loop: asyncio.AbstractEventLoop, waiting: asyncio.Event) -> None:
        """Have the loop look for tasks, from any thread; nobody has to when the process is about to end."""
        if not event_loop.is_closed():
            event_loop.call_soon_threadsafe(waiting.set)

    def _controller(self, actuator: ApiActuator, record: Record, beside: SideWork, facts: ApiFactSource) -> Controller:
        store, settings, provider = self.caches.store, self.settings, self.provider

        def expected_launch(claim: NodeClaim) -> NodeClaim:
            return as_launched(claim, provider.catalog_source.catalog)

        cluster_state = ClusterState(
            store,
            expected_launch,
            preferences=settings.options.preferences,
            ignore_dra_requests=settings.options.ignore_dra_requests,
            capacity_buffers=settings.decisions.capacity_buffers,
        )
        controller = Controller(
            store,
            self.queue,
            cluster_state,
            actuator,
            catalog_source=provider.catalog_source,
            pdb_source=StorePdbSource(store),
            facts=facts,
            settings=self.decisions,
            options=self.placing,
            execution=provider.execution,
            intervals=settings.intervals,
            duties=provider.duties,
            beside=beside,
            distrusted=self.caches.distrusted,
        )
        reporter = DecisionReporter(
            store,
            self.metrics,
            self.journal,
            record=record,
            clock=self._now,
            dry_run=settings.dry_run,
            explain_every=settings.explain_every,
            catalog=lambda: provider.catalog_source.catalog,
        )
        controller.observers += [reporter, *self._observers]
        if self._webhook is not None:
            controller.observers.append(Notifier(self._webhook.post, self._now, dry_run=settings.dry_run))
        if cluster_state.headroom is not None and provider.duties.provisions:
            self._buffer_status = BufferStatusController(self.client, cluster_state.headroom, self._now)
            controller.observers.append(self._buffer_status)
        actuator.on_created = reporter.claim_created
        return controller

    def _upkeep(self, launcher: InstanceLauncher | None) -> Upkeep:
        collected = time.monotonic()

        async def pool_status() -> None:
            if self._may_write() and self.provider.duties.manages_lifecycle:
                await self._pools.reconcile()

        async def garbage_collection() -> None:
            nonlocal collected
            if launcher is None or self.controller is None or not self.controller.running:
                collected = time.monotonic()
            elif time.monotonic() - collected > GC_INTERVAL:
                collected = time.monotonic()
                await launcher.collect_garbage()

        async def capacity_buffers() -> None:
            if self.settings.decisions.capacity_buffers:
                await self._buffers.read()
            if self._buffer_status is not None and self._may_write():
                await self._buffer_status.reconcile()

        parts = {
            "gauges": self._update_gauges,
            "pool-status": pool_status,
            "capacity-buffers": capacity_buffers,
            "gangs": self._gangs.read,
            "garbage-collection": garbage_collection,
        }
        return Upkeep(parts, on_unexpected=self.metrics.unexpected_error)

    def _provider_upkeep(self) -> Upkeep:
        upkeep = self.provider.upkeep

        async def provider() -> None:
            if upkeep is not None and self._may_write():
                await upkeep()

        return Upkeep({"provider": provider}, on_unexpected=self.metrics.unexpected_error, interval=1.0)

    async def _update_gauges(self) -> None:
        self.metrics.cluster(len(self.caches.store.nodes), synced=not self.caches.unsynced())
        self.metrics.unreadable(self._unreadable_meter.by_kind())
        measure_disruptions(self.metrics, self.caches.store.pools, self._now())
        catalog, annotated = self.provider.catalog_source.catalog, self.provider.annotated_budgets
        self.metrics.pools(self._pool_statistics.samples(catalog, self._now(), annotated_budgets=annotated))

    def _unreadable(self, unreadable: Unreadable) -> None:
        log_unreadable(unreadable)
        self._pools.unreadable(unreadable)


def _stop_all(parts: Iterable[InstanceLauncher | DeletionCostWriter | None]) -> None:
    for part in parts:
        if part is not None:
            part.stop()


def _repair_policies(settings: RunSettings, provider: Provider) -> RepairPolicies | None:
    """What repair goes by: what the user said, else the provider; policies that nobody here can follow are refused."""
    policies = settings.decisions.repair
    if policies is not None and provider.repair_policies is not None and not settings.own_repair_policies:
        policies = provider.repair_policies
    listed = () if policies is None or settings.decisions.legacy_repair else policies.listed
    reboots = any(policy.reboots for policy in listed)
    if reboots and not isinstance(provider.instances, Reboots):
        message = f"says {RepairAction.REBOOT.value}, and the provider {settings.provider} cannot reboot nodes"
        raise InputError.at("--repair-policies", message)
    return policies
