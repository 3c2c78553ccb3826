"""`karpool compact`: the node compactor at work, on one API server.

It looks at the cluster every few minutes, and every few seconds while nodes are drained. All it knows stands on the
nodes, so it may be stopped and started at any moment.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import structlog

from karpool.compaction.actions import SetNodeState
from karpool.compaction.advance import CompactionStep, advance
from karpool.compaction.config import CONFIG_MAP, Config
from karpool.compaction.decide import CompactionDecision, nodes_by_reason
from karpool.compaction.pools import pools_without_nodes
from karpool.compaction.settings import CompactionSettings, jittered
from karpool.compactor.actuator import ApiCompactionActuator, CompactionActuator, DryRunActuator
from karpool.compactor.config_source import Configuration, config_namespace, in_config_map, in_file, place_of
from karpool.execution.actions import RecordEvent
from karpool.kube.api_objects import ConfigMap
from karpool.kube.client import Client
from karpool.kube.clock import utc_now
from karpool.kube.election import new_identity
from karpool.kube.resources import CONFIG_MAPS
from karpool.kube.store import Store, Versions
from karpool.kube.target import Target
from karpool.live import USER_AGENT
from karpool.live.caches import ClusterCaches, log_unreadable
from karpool.live.process import background, stalled
from karpool.observability.compactor_metrics import CompactorMetrics
from karpool.observability.events import EventRecorder
from karpool.observability.serving import Address, Page, metrics_page, probe_page, serving

_log = structlog.get_logger()
METRICS_ADDRESS: Final = Address("127.0.0.1", 9101)
_BEGINS: Final = "the compactor begins"
_TICK: Final = 1.0
"""How often changes are taken in, and a new configuration is looked for, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactorSettings:
    """Everything that `karpool compact` may be told; the defaults are those of the command line."""

    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    config_file: Path | None = None
    """Where the configuration is; None: in the ConfigMap."""
    config_map: str = CONFIG_MAP
    namespace: str | None = None
    """Where the ConfigMap is; None: beside this pod, or where the original has it."""
    dry_run: bool = False
    metrics_address: Address | None = METRICS_ADDRESS
    stalled_after: timedelta = timedelta(minutes=2)
    """A loop that has not turned for this long is not healthy."""
    goodbye: timedelta = timedelta(seconds=5)
    """How long the end may take, once asked for."""


class Compactor:
    """One process of the compactor; `run` lasts until it is asked to stop."""

    def __init__(
        self,
        settings: CompactorSettings,
        target: Target,
        *,
        wall: Callable[[], datetime] = utc_now,
        make_client: Callable[..., Client] = Client,
        pages: Sequence[Page] = (),
    ) -> None:
        """`pages` are served beside metrics and probes."""
        self.settings = settings
        self._pages = pages
        self.metrics = CompactorMetrics()
        self.client = make_client(
            target,
            user_agent=USER_AGENT,
            write_gate=lambda: not settings.dry_run,
            on_request=self.metrics.api_request,
            on_unreadable=log_unreadable,
        )
        self.caches = ClusterCaches(self.client, self.metrics.watch_restarted)
        self.turned = time.monotonic()
        """When the loop last got on: came round, decided, or did something; on the steady clock."""
        self._wall = wall
        self._config_key = f"{config_namespace(target, settings.namespace)}/{settings.config_map}"
        self._config_maps: Store[ConfigMap] = Store(Versions())
        self.config = self._configuration()
        self._recorder = EventRecorder(
            self.client, uid_of=self._uid, instance=new_identity(), on_result=self.metrics.event, wall=wall
        )
        self._actuator: CompactionActuator = (
            DryRunActuator()
            if settings.dry_run
            else ApiCompactionActuator(self.client, self.caches.nodes, self._recorder, on_done=self._turn)
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decisions")
        self._waited: tuple[str, Any] | None = None
        self._counted: dict[str, Any] = {}
        self._compared: Config | None = None
        """The configuration whose pools were last looked for among the nodes."""

    def _configuration(self) -> Configuration:
        file = self.settings.config_file
        if file is not None:
            return Configuration(str(file), in_file(file), self._config_told)
        namespace, _, name = self._config_key.partition("/")
        self.caches.watch(CONFIG_MAPS, self._config_maps, namespace=namespace, name=name)
        return Configuration(
            place_of(self._config_key), in_config_map(self._config_maps, self._config_key), self._config_told
        )

    # -- what others may ask -------------------------------------------------------------------------------------

    def unhealthy(self) -> str | None:
        """What is wrong with this process, if it should be started anew."""
        return stalled(self.turned, self.settings.stalled_after)

    def unready(self) -> str | None:
        """Why this process cannot do its work now."""
        event, fields = self._waits()
        about = ", ".join(fields["kinds"]) if "kinds" in fields else self.config.problem
        return None if event == _BEGINS else f"{event}: {about}"

    # -- the run -------------------------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event) -> None:
        """Look and act until asked to stop; the write under way then is finished."""
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
            bound = await stack.enter_async_context(serving(pages))
            _log.info("listening", **{path.strip("/"): str(place) for path, place in bound.items()})
            await stack.enter_async_context(background(self.caches.run()))
            await stack.enter_async_context(background(self._recorder.run()))
            while not stop.is_set():
                await self._rest(stop, await self._look())

    async def _look(self) -> float:
        """Take a step, if that is possible now; how many seconds to rest then."""
        config = self.config.current
        if not self._may_begin() or config is None:
            return _TICK
        step = await self._decide(config)
        worked = await self._actuator.execute(step.actions)
        # The next step must know what this one has written.
        self.caches.changes.apply()
        return self._pause(step, worked=worked).total_seconds()

    async def _decide(self, config: Config) -> CompactionStep:
        now, settings = self._wall(), self.settings.compaction
        objects = self._actuator.seen(self.caches.store.objects())
        loop = asyncio.get_running_loop()
        step = await loop.run_in_executor(self._thread, advance, objects, config, now, settings)
        self._turn()
        self.metrics.decided(step.decision, now)
        self._tell(step)
        self._compare(step.decision, config)
        return step

    def _pause(self, step: CompactionStep, *, worked: bool) -> timedelta:
        settings = self.settings.compaction
        if not worked:
            return settings.drain_interval
        if step.requeue_at is not None and not self.settings.dry_run:
            return step.requeue_at - step.decision.time
        return jittered(settings.sleep, random.random())

    async def _rest(self, stop: asyncio.Event, seconds: float) -> None:
        """Take changes in until it is time for another look, or there is another configuration."""
        due = time.monotonic() + seconds
        while (left := due - time.monotonic()) > 0 and not stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), min(left, _TICK))
            self._turn()
            self.caches.changes.apply()
            if not self.caches.unsynced() and self.config.refresh():
                return

    def _turn(self) -> None:
        """Note that the loop is getting on."""
        self.turned = time.monotonic()

    # -- what is told --------------------------------------------------------------------------------------------

    def _may_begin(self) -> bool:
        """Whether this process can work; tells when that changes."""
        event, fields = waits = self._waits()
        if waits != self._waited:
            tell = _log.debug if self._waited is not None and event == self._waited[0] else _log.info
            self._waited = waits
            tell(event, **fields, dry_run=self.settings.dry_run)
        return event == _BEGINS

    def _waits(self) -> tuple[str, dict[str, Any]]:
        """What this process waits for, as a line of the log; what is wrong with a configuration has its own."""
        if missing := self.caches.unsynced():
            return "waiting for the API server", {"kinds": missing}
        if silent := self.caches.stale():
            return "nothing was heard for too long", {"kinds": silent}
        return (_BEGINS if self.config.current is not None else "waiting for a configuration"), {}

    def _tell(self, step: CompactionStep) -> None:
        pools = step.decision.pools
        begun = [action for action in step.actions if isinstance(action, SetNodeState) and action.unschedulable]
        counted = {
            "nodes": sum(pool.nodes for pool in pools),
            "underutilized": sum(pool.underutilized for pool in pools),
            "marked": sum(pool.marked for pool in pools),
            "in_progress": sum(pool.in_progress for pool in pools),
            "chosen": len(step.decision.chosen),
            "begun": len(begun),
            "reasons": nodes_by_reason(step.decision),
        }
        tell = _log.debug if counted == self._counted else _log.info
        self._counted = counted
        tell("looked at the cluster", **counted)

    def _compare(self, decision: CompactionDecision, config: Config) -> None:
        """Warn of pools without nodes, once for each configuration; without any nodes that says nothing."""
        if config == self._compared or not decision.nodes:
            return
        self._compared = config
        there = [pool.name for pool in decision.pools if pool.name]
        for name in pools_without_nodes(config, there):
            _log.warning("no node belongs to a pool of the configuration", pool=name, there_are=there)

    def _config_told(self, problem: str | None) -> None:
        self.metrics.config(valid=problem is None)
        if problem is not None and self.settings.config_file is None and self._config_key in self._config_maps:
            self._recorder.record(
                RecordEvent("ConfigMap", self._config_key, "InvalidConfiguration", problem, "Warning")
            )

    def _uid(self, kind: str, name: str) -> str:
        store: Store[Any] = self._config_maps if kind == "ConfigMap" else self.caches.store.nodes
        held = store.get(name)
        return "" if held is None else str(held.metadata.uid)
