"""What Karpool measures, for Prometheus: a registry of its own, and a method for everything that happens."""

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
from karpool.observability.series import COUNTERS, GAUGES, HISTOGRAMS, POOL, PREFIX

EventResult = Literal["sent", "repeated", "dropped", "failed"]

# What the ecosystem's labels say for each method: the reason, and the type of consolidation.
_LABELS_OF: Final = {
    "Emptiness": ("empty", "empty"),
    "Drift": ("drifted", ""),
    "MultiNodeConsolidation": ("underutilized", "multi"),
    "SingleNodeConsolidation": ("underutilized", "single"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSample:
    """A pool in numbers; resources in cores and bytes, money in $/h. An empty name: nodes that no pool has."""

    name: str
    nodes: int = 0
    cost: float = 0.0
    unpriced: int = 0
    limits: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    allocatable: Mapping[str, float] = field(default_factory=dict)
    requested: Mapping[str, float] = field(default_factory=dict)
    allowed: Mapping[str, float] = field(default_factory=dict)
    """By reason for disruption: how many more nodes may go now."""


class Metrics:
    """All series of one process."""

    def __init__(self) -> None:
        # Doubles the number of lines, and nothing here needs the time at which a counter was made.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._counters = {
            name: Counter(name, one.help, one.labels, namespace=PREFIX, registry=self.registry)
            for name, one in COUNTERS.items()
        }
        self._histograms = {
            name: Histogram(name, one.help, one.labels, namespace=PREFIX, registry=self.registry, buckets=buckets)
            for name, (one, buckets) in HISTOGRAMS.items()
        }
        self._gauges = {
            name: Gauge(name, one.help, one.labels, namespace=PREFIX, registry=self.registry)
            for name, one in GAUGES.items()
        }
        self._pools: set[str] = set()
        Info("build", "Which Karpool this is.", namespace=PREFIX, registry=self.registry).info({"version": __version__})
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def page(self) -> bytes:
        """All series in Prometheus' text format."""
        return generate_latest(self.registry)

    # -- nodes and pods ------------------------------------------------------------------------------------------

    def claim_created(self, pool: str, reason: str) -> None:
        """A NodeClaim was created: `provisioned`, or the reason of the command that replaces others."""
        self._count("nodeclaims_created_total", self._pool(pool), reason.lower())

    def claim_disrupted(self, pool: str, reason: str, capacity_type: str = "") -> None:
        """A NodeClaim is to go: for a command's cause, because it `expired`, or as somebody `deleted` it."""
        self._count("nodeclaims_disrupted_total", self._pool(pool), reason.lower(), capacity_type)

    def claim_terminated(self, pool: str, *, seconds: float) -> None:
        """A NodeClaim is gone, this long after its deletion was asked for."""
        self._count("nodeclaims_terminated_total", self._pool(pool))
        self._observe("nodeclaims_termination_duration_seconds", seconds, pool)

    def node_created(self, pool: str) -> None:
        """A Node registered."""
        self._count("nodes_created_total", self._pool(pool))

    def node_drained(self, pool: str) -> None:
        """The last pod left a Node that is to go."""
        self._count("nodes_drained_total", self._pool(pool))

    def node_terminated(self, pool: str, *, seconds: float, age: float) -> None:
        """A Node is gone, this long after its deletion was asked for, at this age."""
        self._count("nodes_terminated_total", self._pool(pool))
        self._observe("nodes_termination_duration_seconds", seconds, pool)
        self._observe("nodes_lifetime_duration_seconds", age, pool)

    def pod_bound(self, seconds: float) -> None:
        """A pod got its node, this long after its creation."""
        self._observe("pods_bound_duration_seconds", seconds)

    def pod_started(self, seconds: float) -> None:
        """A pod runs, this long after its creation."""
        self._observe("pods_startup_duration_seconds", seconds)

    # -- decisions -----------------------------------------------------------------------------------------------

    def decision_pass(self, seconds: float) -> None:
        """A pass over all nodes is over."""
        self._observe("decision_seconds", seconds)

    def rejections(self, *, rejections: Mapping[str, int], eligible: Mapping[str, int]) -> None:
        """What a pass found: nodes kept, by reason code; nodes that could be disrupted, by cause."""
        self._replace("rejections", {(code,): number for code, number in rejections.items()})
        self._replace(
            "voluntary_disruption_eligible_nodes", {(cause.lower(),): number for cause, number in eligible.items()}
        )

    def command_started(self, method: str, decision: str, savings: float) -> None:
        """A command was begun; what it saves is in $/h."""
        self._count("voluntary_disruption_decisions_total", decision, *_LABELS_OF[method])
        self._counters["saved_dollars_per_hour_total"].inc(max(0.0, savings))

    def command_invalidated(self, method: str) -> None:
        """A command was dropped before it began: a second look found it wrong."""
        self._count("voluntary_disruption_failed_validations_total", _LABELS_OF[method][1])

    def command_rolled_back(self, method: str, decision: str) -> None:
        """A command that had begun was taken back."""
        self._count("voluntary_disruption_queue_failures_total", decision, *_LABELS_OF[method])

    def scheduling_pass(self, seconds: float, *, unschedulable: int) -> None:
        """Nodes for pending pods were looked for; this many pods fit nowhere."""
        self._observe("scheduler_scheduling_duration_seconds", seconds)
        self._gauges["scheduler_unschedulable_pods_count"].set(unschedulable)

    # -- the cluster ---------------------------------------------------------------------------------------------

    def cluster(self, nodes: int, *, synced: bool) -> None:
        """How many nodes the caches hold, and whether all of them were filled."""
        self._gauges["cluster_state_node_count"].set(nodes)
        self._gauges["cluster_state_synced"].set(synced)

    def pools(self, figures: Iterable[PoolSample]) -> None:
        """All pools that there are; every series of any other pool ends."""
        found = tuple(figures)
        self._replace("nodes_count", {(pool.name,): pool.nodes for pool in found})
        self._replace("cluster_cost_dollars_per_hour", {(pool.name,): pool.cost for pool in found})
        self._replace("cluster_unpriced_nodes", {(pool.name,): pool.unpriced for pool in found})
        for name, amounts in (
            ("nodepools_limit", {pool.name: pool.limits for pool in found}),
            ("nodepools_usage", {pool.name: pool.usage for pool in found}),
            ("nodes_allocatable", {pool.name: pool.allocatable for pool in found}),
            ("nodes_total_pod_requests", {pool.name: pool.requested for pool in found}),
            ("nodepools_allowed_disruptions", {pool.name: pool.allowed for pool in found}),
        ):
            self._replace(name, {(pool, key): value for pool, of in amounts.items() for key, value in of.items()})
        self._forget(self._pools - {pool.name for pool in found})

    def _forget(self, pools: set[str]) -> None:
        counters = (self._counters[name] for name, one in COUNTERS.items() if POOL in one.labels)
        histograms = (self._histograms[name] for name, (one, _) in HISTOGRAMS.items() if POOL in one.labels)
        for metric in (*counters, *histograms):
            for pool in pools:
                metric.remove_by_labels({POOL: pool})
        self._pools -= pools

    # -- the process ---------------------------------------------------------------------------------------------

    def leading(self, *, leads: bool) -> None:
        """This process began to lead, or ceased to."""
        self._gauges["leading"].set(leads)
        self._count("leader_transitions_total")

    def api_request(self, verb: str, resource: str, code: str | int, seconds: float) -> None:
        """The API server answered a request; for a watch: began to answer."""
        self._count("api_requests_total", verb, resource, str(code))
        self._observe("api_request_duration_seconds", seconds, verb, resource)
        if verb == "evict":
            self._count("pods_eviction_requests_total", str(code))

    def watch_restarted(self, resource: str) -> None:
        """A watch was cut or refused, and is begun again."""
        self._count("watch_restarts_total", resource)

    def event(self, result: EventResult) -> None:
        """What came of a Kubernetes Event."""
        self._count("events_total", result)

    def journal_failed(self) -> None:
        """A line of the decision journal was lost."""
        self._count("journal_failures_total")

    # -- how -----------------------------------------------------------------------------------------------------

    def _pool(self, name: str) -> str:
        self._pools.add(name)
        return name

    def _count(self, name: str, *labels: str) -> None:
        counter = self._counters[name]
        (counter.labels(*labels) if labels else counter).inc()

    def _observe(self, name: str, seconds: float, *labels: str) -> None:
        histogram = self._histograms[name]
        (histogram.labels(*labels) if labels else histogram).observe(seconds)

    def _replace(self, name: str, values: Mapping[tuple[str, ...], float]) -> None:
        """Give a gauge these values and no others; nothing is served in between, because nothing here waits."""
        gauge = self._gauges[name]
        gauge.clear()
        for labels, value in values.items():
            gauge.labels(*labels).set(value)
