"""The metrics of `karpool run` for Prometheus: one registry, and one method for each thing that happens."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from karpool import __version__
from karpool.observability.gauge_table import GaugeTable
from karpool.observability.series import COUNTERS, GAUGES, HISTOGRAMS, POOL, PREFIX

EventResult = Literal["sent", "repeated", "dropped", "failed"]
NoticeResult = Literal["delivered", "dropped", "failed"]

_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The labels of Karpenter for each method: the reason, and the consolidation type.
_LABELS_OF: Final = {
    "Repair": ("unhealthy", ""),
    "Emptiness": ("empty", "empty"),
    "Drift": ("drifted", ""),
    "MultiNodeConsolidation": ("underutilized", "multi"),
    "SingleNodeConsolidation": ("underutilized", "single"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSample:
    """The figures of a pool: cores, bytes, $/h. The empty name stands for nodes without a pool."""

    name: str
    nodes: int = 0
    cost: float = 0.0
    unpriced: int = 0
    limits: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    allocatable: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By whether nodes have a NodeClaim (`true`, `false`), and resource."""
    requested: Mapping[tuple[str, str], float] = field(default_factory=dict)
    allowed: Mapping[str, float] = field(default_factory=dict)
    """By disruption reason: how many more nodes may be disrupted now."""
    busy: Mapping[str, float] = field(default_factory=dict)
    """By disruption reason: how many nodes take part of the budgets now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptedClaim:
    """A NodeClaim that was deleted, as metrics tell it: why, and how long its pods have to leave."""

    pool: str
    reason: str
    """The cause of a command, `expired`, or `deleted`."""
    capacity_type: str = ""
    policy: str = ""
    """The consolidation policy of its pool, where consolidation deleted it."""
    mode: str = "graceful"
    pods: int = 0
    """How many pods need another place."""

    @property
    def labels(self) -> tuple[str, ...]:
        return self.pool, snake_case(self.reason), self.capacity_type, snake_case(self.policy), self.mode


def snake_case(words: str) -> str:
    """`WhenEmptyOrUnderutilized` as label values are written."""
    return _CAPITAL.sub("_", words).lower()


class ProcessMetrics:
    """The metrics of any program that talks to an API server, in a registry of its own."""

    def __init__(self, counters: Iterable[str]) -> None:
        """`counters` names those that the program has."""
        # The time at which each counter was made doubles the number of lines, and is of no use here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        Info("build", "The version of Karpool.", namespace=PREFIX, registry=registry).info({"version": __version__})
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        self._counters = {
            name: Counter(name, COUNTERS[name].help, COUNTERS[name].labels, namespace=PREFIX, registry=registry)
            for name in counters
        }

    def page(self) -> bytes:
        return generate_latest(self.registry)

    def api_request(self, verb: str, resource: str, code: int, _seconds: float) -> None:
        """The response to a request has arrived; that to a watch has begun."""
        self._count("api_requests_total", verb, resource, str(code))

    def watch_restarted(self, resource: str) -> None:
        self._count("watch_restarts_total", resource)

    def event(self, result: EventResult) -> None:
        self._count("events_total", result)

    def notice(self, result: NoticeResult) -> None:
        self._count("notifications_total", result)

    def _count(self, name: str, *labels: str) -> None:
        counter = self._counters[name]
        (counter.labels(*labels) if labels else counter).inc()


class Metrics(ProcessMetrics):
    def __init__(self) -> None:
        super().__init__(COUNTERS)
        self._histograms = {
            name: Histogram(name, series.help, series.labels, namespace=PREFIX, registry=self.registry, buckets=buckets)
            for name, (series, buckets) in HISTOGRAMS.items()
        }
        self._gauges = {
            name: Gauge(name, series.help, namespace=PREFIX, registry=self.registry)
            for name, series in GAUGES.items()
            if not series.labels
        }
        self._tables = {
            name: GaugeTable(f"{PREFIX}_{name}", series.help, series.labels, self.registry)
            for name, series in GAUGES.items()
            if series.labels
        }
        self._pools: set[str] = set()
        self.price_lower_bound(math.nan)
        self.target_price(math.nan)

    def price_lower_bound(self, price: float) -> None:
        """The price in $/h that no plan can bring the cluster below; NaN while nobody knows."""
        self._gauges["cluster_price_lower_bound"].set(price)

    def search(self, seconds: float) -> None:
        """A global search has ended after so many seconds."""
        self._observe("search_seconds", seconds)

    def target_price(self, price: float) -> None:
        """The price in $/h of the fleet that is pursued; NaN without a target."""
        self._gauges["search_target_price"].set(price)

    def target_ended(self, reason: str) -> None:
        """A target is not followed any more: `reached`, or the reason for which it was dropped."""
        self._count("search_targets_total", reason)
        self.target_price(math.nan)

    def claim_created(self, pool: str, reason: str, *, relaxed: bool = False) -> None:
        """A NodeClaim was created, with reason `provisioned` or that of the command that needs a replacement."""
        self._count("nodeclaims_created_total", self._pool(pool), reason.lower(), str(relaxed).lower())

    def claim_disrupted(self, disruption: DisruptedClaim) -> None:
        """A NodeClaim was deleted."""
        self._pool(disruption.pool)
        self._count("nodeclaims_disrupted_total", *disruption.labels)
        self._counters["pods_disruption_initiated_total"].labels(*disruption.labels).inc(disruption.pods)

    def unhealthy_disrupted(self, disruption: DisruptedClaim, condition: str, image: str) -> None:
        """A NodeClaim was deleted because of a condition of its node."""
        labels = (snake_case(condition), self._pool(disruption.pool), disruption.capacity_type, image, disruption.mode)
        self._count("nodeclaims_unhealthy_disrupted_total", *labels)

    def claim_terminated(self, pool: str, capacity_type: str, zone: str, *, seconds: float) -> None:
        """A NodeClaim was removed, so many seconds after its deletion."""
        self._count("nodeclaims_terminated_total", self._pool(pool), capacity_type, zone)
        self._observe("nodeclaims_termination_duration_seconds", seconds, pool)

    def node_created(self, pool: str, zone: str) -> None:
        self._count("nodes_created_total", self._pool(pool), zone)

    def node_drained(self, pool: str) -> None:
        """The last pod left a Node that is under deletion."""
        self._count("nodes_drained_total", self._pool(pool))

    def node_terminated(self, pool: str, zone: str, *, seconds: float, age: float) -> None:
        """A Node was removed, so many seconds after its deletion, at this age."""
        self._count("nodes_terminated_total", self._pool(pool), zone)
        self._observe("nodes_termination_duration_seconds", seconds, pool)
        self._observe("nodes_lifetime_duration_seconds", age, pool)

    def pod_bound(self, seconds: float, *, devices: bool) -> None:
        """A pod was bound, so many seconds after its creation; whether it asks for devices."""
        self._observe("pods_bound_duration_seconds", seconds, str(devices).lower())

    def pod_started(self, seconds: float) -> None:
        """A pod started, so many seconds after its creation."""
        self._observe("pods_startup_duration_seconds", seconds)

    def decision_pass(self, seconds: float) -> None:
        self._observe("decision_seconds", seconds)

    def rejections(self, *, rejections: Mapping[str, int], eligible: Mapping[str, int]) -> None:
        """The nodes of a pass: those that stay, by reason code; those that could be disrupted, by cause."""
        self._replace("rejections", {(code,): number for code, number in rejections.items()})
        self._replace(
            "voluntary_disruption_eligible_nodes", {(cause.lower(),): number for cause, number in eligible.items()}
        )

    def brakes(self, held: Iterable[tuple[str, str]]) -> None:
        """The brakes that hold: the reason code of each, and the pool that it stops; an empty name stands for all."""
        self._replace("brakes", dict.fromkeys(held, 1))

    def unreadable(self, counts: Mapping[str, int]) -> None:
        """How many objects of each kind cannot be read."""
        self._replace("unreadable_objects", {(kind,): count for kind, count in counts.items()})

    def disrupted(self, nodes: Mapping[str, int], pods: Mapping[str, int], harmed: Mapping[str, int]) -> None:
        """By pool: the nodes and pods that were disrupted within the hour, and the pods that came to harm."""
        amounts = (("nodes", nodes), ("pods", pods))
        self._replace(
            "disrupted_last_hour", {(pool, what): number for what, of in amounts for pool, number in of.items()}
        )
        self._replace("harmed_pods", {(pool,): number for pool, number in harmed.items()})

    def command_started(self, method: str, decision: str, pools: Iterable[str] = ()) -> None:
        """A command was started, which takes nodes from some pools."""
        self._count("voluntary_disruption_decisions_total", decision, *_LABELS_OF[method])
        for pool in pools:
            name = "voluntary_disruption_decisions_by_nodepool_total"
            self._count(name, self._pool(pool), decision, *_LABELS_OF[method])

    def move_judged(self, pool: str, policy: str, *, approved: bool, score: float | None) -> None:
        """A pool approved of a move of consolidation, or rejected it; a score is given by Balanced pools only."""
        decision = "approved" if approved else "rejected"
        self._count("consolidation_moves_total", decision, self._pool(pool), policy)
        if score is not None:
            self._observe("consolidation_score", score, decision, pool, policy)

    def provider_called(self, method: str, provider: str, seconds: float, error: str = "") -> None:
        """A call of the provider has ended, in an error if one is named."""
        self._observe("cloudprovider_duration_seconds", seconds, method, provider)
        if error:
            self._count("cloudprovider_errors_total", method, provider, error)

    def terminated_first(self, pool: str, method: str, why: str) -> None:
        """A command was started whose node goes before anything can replace it."""
        self._count("voluntary_disruption_terminate_first_decisions_total", pool, _LABELS_OF[method][0], why)

    def reboot_ended(self, result: str, *, seconds: float, recovery: float | None) -> None:
        """A reboot has ended so many seconds after it was requested, and after the provider took it on."""
        self._count("nodes_reboots_total", result)
        self._observe("nodes_reboot_duration_seconds", seconds, result)
        if recovery is not None:
            self._observe("nodes_reboot_recovery_duration_seconds", recovery)

    def deletion_cost(self, result: str) -> None:
        """The deletion cost of a pod was written or not: `updated`, `skipped_...` or `error`."""
        self._count("pod_deletion_cost_pod_annotation_writes_total", result)

    def deletion_costs_pending(self, nodes: Mapping[str, int]) -> None:
        """By pool: on how many nodes deletion costs of pods are still to be written."""
        name = "pod_deletion_cost_nodes_with_pending_annotation_writes"
        self._replace(name, {(pool,): number for pool, number in nodes.items()})

    def command_completed(self, savings: float) -> None:
        """The nodes of a command are gone; its savings are in $/h."""
        self._counters["saved_dollars_per_hour_total"].inc(max(0.0, savings))

    def command_invalidated(self, method: str) -> None:
        """A command was dropped before its start, because its validation failed."""
        self._count("voluntary_disruption_failed_validations_total", _LABELS_OF[method][1])

    def command_rolled_back(self, method: str, decision: str) -> None:
        self._count("voluntary_disruption_queue_failures_total", decision, *_LABELS_OF[method])

    def scheduling_pass(self, seconds: float, *, unschedulable: int) -> None:
        """Pending pods were scheduled in so many seconds; so many of them fit nowhere."""
        self._observe("scheduler_scheduling_duration_seconds", seconds)
        self._gauges["scheduler_unschedulable_pods_count"].set(unschedulable)

    def cluster(self, nodes: int, *, synced: bool) -> None:
        self._gauges["cluster_state_node_count"].set(nodes)
        self._gauges["cluster_state_synced"].set(synced)

    def pools(self, figures: Iterable[PoolSample]) -> None:
        """The figures of all pools; the metrics of any other pool are removed."""
        pools = tuple(figures)
        self._replace("nodes_count", {(pool.name,): pool.nodes for pool in pools})
        self._replace("cluster_cost_dollars_per_hour", {(pool.name,): pool.cost for pool in pools})
        self._replace("cluster_unpriced_nodes", {(pool.name,): pool.unpriced for pool in pools})
        for name, amounts in (
            ("nodepools_limit", {pool.name: pool.limits for pool in pools}),
            ("nodepools_usage", {pool.name: pool.usage for pool in pools}),
            ("nodepools_allowed_disruptions", {pool.name: pool.allowed for pool in pools}),
            ("nodepools_nodes_consuming_budgets", {pool.name: pool.busy for pool in pools}),
        ):
            self._replace(name, {(pool, key): value for pool, of in amounts.items() for key, value in of.items()})
        for name, by_kind in (
            ("nodes_allocatable", {pool.name: pool.allocatable for pool in pools}),
            ("nodes_total_pod_requests", {pool.name: pool.requested for pool in pools}),
        ):
            self._replace(name, {(pool, *key): value for pool, of in by_kind.items() for key, value in of.items()})
        self._remove_pools(self._pools - {pool.name for pool in pools})

    def _remove_pools(self, pools: set[str]) -> None:
        counters = (self._counters[name] for name, series in COUNTERS.items() if POOL in series.labels)
        histograms = (self._histograms[name] for name, (series, _) in HISTOGRAMS.items() if POOL in series.labels)
        for metric in (*counters, *histograms):
            for pool in pools:
                metric.remove_by_labels({POOL: pool})
        self._pools -= pools

    def dry_run(self) -> None:
        self._gauges["dry_run"].set(1)

    def leading(self, *, leads: bool) -> None:
        self._gauges["leading"].set(leads)
        if not leads:
            self.brakes(())  # only who leads asks them
        self._count("leader_transitions_total")

    def api_request(self, verb: str, resource: str, code: int, seconds: float) -> None:
        super().api_request(verb, resource, code, seconds)
        self._observe("api_request_duration_seconds", seconds, verb, resource)
        if verb == "evict":
            self._count("pods_eviction_requests_total", str(code))

    def loop_held_up(self, seconds: float) -> None:
        self._observe("event_loop_delay_seconds", seconds)

    def unexpected_error(self, where: str) -> None:
        """An error that nobody declared: work goes on, but somebody should look."""
        self._count("unexpected_errors_total", where)

    def journal_failed(self) -> None:
        self._count("journal_failures_total")

    def _pool(self, name: str) -> str:
        self._pools.add(name)
        return name

    def _observe(self, name: str, seconds: float, *labels: str) -> None:
        histogram = self._histograms[name]
        (histogram.labels(*labels) if labels else histogram).observe(seconds)

    def _replace(self, name: str, values: Mapping[tuple[str, ...], float]) -> None:
        """Give a gauge exactly these values, all at once: pages are rendered in another thread."""
        self._tables[name].replace(values)
