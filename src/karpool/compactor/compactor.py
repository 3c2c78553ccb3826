"""`karpool compact`: runs the node compactor against one API server.

It evaluates the cluster every few minutes, and every few seconds while nodes are drained. Its state is on the nodes, so
it may be stopped and started at any moment.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
from msgspec import structs

from karpool.compaction.actions import SetNodeState
from karpool.compaction.advance import CompactionStep, advance
from karpool.compaction.advice import advice
from karpool.compaction.config import CONFIG_MAP, Config
from karpool.compaction.confirm import confirmed, nodes_to_read, without_starts
from karpool.compaction.decide import CompactionDecision, nodes_by_reason
from karpool.compaction.pools import pools_without_nodes
from karpool.compaction.rates import NO_LEDGER, rates_in_force
from karpool.compaction.settings import CompactionSettings, jittered
from karpool.compactor.actuator import ApiCompactionActuator, DryRunActuator
from karpool.compactor.autoscaler_status import AutoscalerStatus
from karpool.compactor.config_source import Configuration, config_namespace, in_config_map, in_file, place_of
from karpool.compactor.ledger_map import LedgerMap
from karpool.compactor.notifier import NotifyingSink, brake_notice
from karpool.execution.actions import RecordEvent
from karpool.kube.client import Client
from karpool.kube.clock import utc_now
from karpool.kube.election import new_identity
from karpool.kube.server_time import ServerTime
from karpool.kube.store import Store, Versions
from karpool.kube.target import Target
from karpool.live import USER_AGENT
from karpool.live.caches import ClusterCaches, log_unreadable
from karpool.live.fresh_facts import FactReader
from karpool.live.process import background, stalled
from karpool.live.resources import PAUSES, PLAIN_CONFIG_MAPS
from karpool.live.time_keeper import keep_time
from karpool.model.labels import PAUSE_MAP as PAUSE
from karpool.model.reasons import Reason
from karpool.model.workloads import ConfigMap
from karpool.observability.compactor_metrics import CompactorMetrics
from karpool.observability.events import EventRecorder, EventSink
from karpool.observability.reviews import TokenReviews
from karpool.observability.serving import Address, Page, metrics_page, probe_page, serving
from karpool.observability.webhook import Webhook
from karpool.observability.webhook_address import WebhookAddress

_log = structlog.get_logger()
METRICS_ADDRESS: Final = Address("127.0.0.1", 9101)
_STARTED: Final = "compactor started"
_TICK: Final = 1.0
"""How often changes are applied, and the configuration is read, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactorSettings:
    """All settings of `karpool compact`; the defaults are those of the command line."""

    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    config_file: Path | None = None
    """The file of the configuration; None: it is in the ConfigMap."""
    config_map: str = CONFIG_MAP
    namespace: str | None = None
    """The namespace of the ConfigMap; None: that of this pod, or that of the original."""
    dry_run: bool = False
    metrics_address: Address | None = METRICS_ADDRESS
    webhook: WebhookAddress | None = None
    """Who is told of drains, failures and pauses."""
    stalled_after: timedelta = timedelta(minutes=2)
    """A loop without an iteration for this long is not healthy."""
    shutdown_timeout: timedelta = timedelta(seconds=5)
    """How long a shutdown may take."""


class Compactor:
    def __init__(
        self,
        settings: CompactorSettings,
        target: Target,
        *,
        wall: Callable[[], datetime] = utc_now,
        pages: Sequence[Page] = (),
    ) -> None:
        """`pages` are served beside metrics and probes."""
        self.settings = settings
        self._pages = pages
        self.metrics = CompactorMetrics()
        self._time = ServerTime(wall)
        self.client = Client(
            target,
            user_agent=USER_AGENT,
            write_gate=lambda: not settings.dry_run,
            on_request=self.metrics.api_request,
            on_date=self._time.observe,
            on_unreadable=log_unreadable,
        )
        self.caches = ClusterCaches(self.client, self.metrics.watch_restarted)
        self.last_iteration = time.monotonic()
        """When the loop last made progress, on the monotonic clock."""
        self._config_key = f"{config_namespace(target, settings.namespace)}/{settings.config_map}"
        namespace = self._config_key.partition("/")[0]
        brakes = replace(settings.compaction.brakes, pause_namespace=namespace)
        self._compaction = replace(settings.compaction, brakes=brakes)
        self.caches.watch(PAUSES, self.caches.store.pauses, namespace=namespace, name=PAUSE)
        self._pauses: tuple[object, ...] = ()
        """The pause that the last decision knew."""
        self._ledger = LedgerMap(self.client, namespace)
        self._autoscaler = AutoscalerStatus(self.client)
        self._stop: Reason | None = None
        self._config_maps: Store[ConfigMap] = Store(Versions())
        self.config = self._configuration()
        identity = new_identity()
        self._recorder = EventRecorder(self.client, uid_of=self._uid, instance=identity, on_result=self.metrics.event)
        self._webhook = self._make_webhook(identity)
        self._events: EventSink = self._recorder
        if self._webhook is not None:
            self._events = NotifyingSink(self._recorder, self._webhook.post, self._time)
        self._actuator = (
            DryRunActuator()
            if settings.dry_run
            else ApiCompactionActuator(self.client, self.caches.nodes, self._events, on_done=self._made_progress)
        )
        self._reader = FactReader(self.client, self.caches.nodes, self.caches.pods)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decisions")
        self._logged_status: tuple[str, Any] | None = None
        self._logged_counts: dict[str, Any] = {}
        self._checked_config: Config | None = None
        """The configuration whose pools were last compared with the nodes."""

    def _make_webhook(self, identity: str) -> Webhook | None:
        address = self.settings.webhook
        if address is None:
            return None
        return Webhook(address, program="karpool compact", instance=identity, on_result=self.metrics.notice)

    def _configuration(self) -> Configuration:
        file = self.settings.config_file
        if file is not None:
            return Configuration(str(file), in_file(file), self._on_config_problem)
        namespace, _, name = self._config_key.partition("/")
        self.caches.watch(PLAIN_CONFIG_MAPS, self._config_maps, namespace=namespace, name=name)
        return Configuration(
            place_of(self._config_key), in_config_map(self._config_maps, self._config_key), self._on_config_problem
        )

    def unhealthy(self) -> str | None:
        return stalled(self.last_iteration, self.settings.stalled_after)

    def unready(self) -> str | None:
        event, fields = self._status()
        about = ", ".join(fields["kinds"]) if "kinds" in fields else fields.get("why", self.config.problem)
        return None if event == _STARTED else f"{event}: {about}"

    async def run(self, stop: asyncio.Event) -> None:
        """Evaluate and act until asked to stop; then finish the current write."""
        address = self.settings.metrics_address
        pages = (
            metrics_page(address, self.metrics.page),
            probe_page("/healthz", address, self.unhealthy),
            probe_page("/readyz", address, self.unready),
            *self._pages,
        )
        async with AsyncExitStack() as stack:
            stack.callback(self._thread.shutdown, wait=False, cancel_futures=True)
            await stack.enter_async_context(self.client)
            bound = await stack.enter_async_context(serving(pages, TokenReviews(self.client)))
            _log.info("compactor starting", **{path.strip("/"): str(place) for path, place in bound.items()})
            if self._webhook is not None:
                await stack.enter_async_context(background(self._webhook.run()))
            await stack.enter_async_context(background(self.caches.run()))
            await stack.enter_async_context(background(keep_time(self.client, self._time)))
            await stack.enter_async_context(background(self._recorder.run()))
            while not stop.is_set():
                await self._sleep(stop, await self._reconcile())

    async def _reconcile(self) -> float:
        """Take a step, if possible; how many seconds to sleep then."""
        config = self.config.current
        if not self._is_ready() or config is None:
            return _TICK
        step = await self._decide(config)
        actions, refused = confirmed(step, await self._reader.read(nodes_to_read(step.actions)))
        entries = [entry for name, entry in step.entries.items() if name not in refused]
        noted = not entries or self.settings.dry_run or await self._ledger.write(entries, step.decision.time)
        if not noted:
            actions = without_starts(actions)
        for name, reason in refused.items():
            _log.warning("drain waits", node=name, code=reason.code, why=reason.message, about=reason.object)
        succeeded = await self._actuator.execute(actions) and not refused and noted
        # The next step must see what this one has written.
        self.caches.changes.apply()
        return self._interval(step, succeeded=succeeded).total_seconds()

    async def _decide(self, config: Config) -> CompactionStep:
        now, settings = self._time.earliest, self._compaction
        uncertainty = max(self._time.latest - now, timedelta(0))
        self._pauses = self.caches.store.pauses.listed()
        statuses = await self._autoscaler.read()
        objects = structs.replace(self._actuator.with_marks(self.caches.store.objects()), autoscaler_statuses=statuses)
        rated = rates_in_force(objects, settings.brakes, now)
        ledger = await self._ledger.read() if rated else NO_LEDGER
        loop = asyncio.get_running_loop()
        work = partial(advance, objects, config, now, settings, ledger=ledger, uncertainty=uncertainty)
        step = await loop.run_in_executor(self._thread, work)
        self._made_progress()
        self.metrics.decided(step.decision, now)
        self._log_brake(step.decision.stop)
        self._log_step(step)
        self._warn_of_empty_pools(step.decision, config)
        return step

    def _interval(self, step: CompactionStep, *, succeeded: bool) -> timedelta:
        settings = self.settings.compaction
        if not succeeded:
            return settings.drain_interval
        if step.requeue_at is not None and not self.settings.dry_run:
            return step.requeue_at - step.decision.time
        return jittered(settings.sleep, random.random())

    async def _sleep(self, stop: asyncio.Event, seconds: float) -> None:
        """Apply changes until the next step is due, or the configuration changes."""
        due = time.monotonic() + seconds
        while (left := due - time.monotonic()) > 0 and not stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), min(left, _TICK))
            self._made_progress()
            self.caches.changes.apply()
            if not self.caches.unsynced() and (self.config.refresh() or self._pause_changed()):
                return

    def _pause_changed(self) -> bool:
        return self.caches.store.pauses.listed() != self._pauses

    def _log_brake(self, stop: Reason | None) -> None:
        """Log a brake when it takes hold, and when it lets go."""
        before, self._stop = self._stop, stop
        if before is not None and (stop is None or stop.code != before.code):
            _log.info("brake released", code=before.code, about=before.object)
            self._tell_brake(before, holds=False)
        if stop is not None and (before is None or stop.code != before.code):
            _log.warning("brake holds", code=stop.code, why=stop.message, about=stop.object)
            self._tell_brake(stop, holds=True)

    def _tell_brake(self, stop: Reason, *, holds: bool) -> None:
        if self._webhook is not None:
            self._webhook.post(brake_notice(stop, self._time(), holds=holds))

    def _made_progress(self) -> None:
        self.last_iteration = time.monotonic()

    def _is_ready(self) -> bool:
        """Whether a step can be taken; logs when that changes."""
        event, fields = status = self._status()
        if status != self._logged_status:
            known = self._logged_status is not None and event == self._logged_status[0]
            self._logged_status = status
            (_log.debug if known else _log.info)(event, **fields, dry_run=self.settings.dry_run)
        return event == _STARTED

    def _status(self) -> tuple[str, dict[str, Any]]:
        """What this process waits for, as a line of the log; a broken configuration has a line of its own."""
        if unsynced := self.caches.unsynced():
            return "waiting for the API server", {"kinds": unsynced}
        if stale := self.caches.stale():
            return "waiting for news from the API server", {"kinds": stale}
        if distrusted := self.caches.distrusted():
            return "waiting for watches that can be trusted", {"kinds": list(distrusted), "why": str(distrusted)}
        if doubt := self._time.doubt:
            return "waiting for a time that is certain", {"why": doubt}
        return (_STARTED if self.config.current is not None else "waiting for a configuration"), {}

    def _log_step(self, step: CompactionStep) -> None:
        pools = step.decision.pools
        counts = {
            "nodes": sum(pool.nodes for pool in pools),
            "underutilized": sum(pool.underutilized for pool in pools),
            "marked": sum(pool.marked for pool in pools),
            "in_progress": sum(pool.in_progress for pool in pools),
            "chosen": len(step.decision.chosen),
            "begun": sum(isinstance(action, SetNodeState) and bool(action.unschedulable) for action in step.actions),
            "reasons": nodes_by_reason(step.decision),
        }
        level = _log.debug if counts == self._logged_counts else _log.info
        self._logged_counts = counts
        level("cluster evaluated", **counts)

    def _warn_of_empty_pools(self, decision: CompactionDecision, config: Config) -> None:
        if config == self._checked_config or not decision.nodes:
            return
        self._checked_config = config
        for text in advice(config):
            _log.warning("configuration will hardly do what was meant", why=text)
        pools = [pool.name for pool in decision.pools if pool.name]
        for name in pools_without_nodes(config, pools):
            _log.warning("configured pool has no nodes", pool=name, there_are=pools)

    def _on_config_problem(self, problem: str | None) -> None:
        self.metrics.config(valid=problem is None)
        if problem is not None and self.settings.config_file is None and self._config_key in self._config_maps:
            self._events.record(RecordEvent("ConfigMap", self._config_key, "InvalidConfiguration", problem, "Warning"))

    def _uid(self, kind: str, name: str) -> str:
        store: Store[Any] = self._config_maps if kind == "ConfigMap" else self.caches.store.nodes
        about = store.get(name)
        return "" if about is None else str(about.metadata.uid)
