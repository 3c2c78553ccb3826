"""The metrics of `karpool compact` for Prometheus: the gauges that dashboards of the original know, and a few more."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from prometheus_client import Gauge, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from karpool.compaction.decide import CompactionDecision
from karpool.compaction.metrics import HELP, PREFIX, GaugeSample, measure
from karpool.observability.metrics import EventResult, new_counters, new_registry
from karpool.observability.series import PREFIX as OWN_PREFIX


class _DecisionGauges(Collector):
    """The last decision as gauges; a node or pool that is not in it has none."""

    def __init__(self) -> None:
        self.samples: Sequence[GaugeSample] = ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One family for each gauge."""
        by_name: defaultdict[str, list[GaugeSample]] = defaultdict(list)
        for sample in self.samples:
            by_name[sample.name].append(sample)
        for name, samples in by_name.items():
            labels = tuple(samples[0].labels)
            family = GaugeMetricFamily(name, HELP[name.removeprefix(PREFIX)], labels=labels)
            for sample in samples:
                family.add_metric([sample.labels[label] for label in labels], sample.value)
            yield family


class CompactorMetrics:
    """All metrics of one compactor."""

    def __init__(self) -> None:
        self.registry = new_registry()
        self._decision = _DecisionGauges()
        self.registry.register(self._decision)
        self._counters = new_counters(self.registry, ("api_requests_total", "watch_restarts_total", "events_total"))
        self._config_valid = self._gauge("config_valid", "1 if the configuration as it is written now is in use.")
        self._decided_at = self._gauge("last_look_timestamp_seconds", "When the last decision was made.")

    def page(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def decided(self, decision: CompactionDecision, now: datetime) -> None:
        """A decision was made; its figures replace those of the last one."""
        self._decision.samples = measure(decision)
        self._decided_at.set(now.timestamp())

    def config(self, *, valid: bool) -> None:
        """Whether the configuration as it is written now can be used."""
        self._config_valid.set(valid)

    def api_request(self, verb: str, resource: str, code: int, _seconds: float) -> None:
        """The response to a request has arrived; that to a watch has begun."""
        self._counters["api_requests_total"].labels(verb, resource, str(code)).inc()

    def watch_restarted(self, resource: str) -> None:
        """A watch was cut or refused, and starts again."""
        self._counters["watch_restarts_total"].labels(resource).inc()

    def event(self, result: EventResult) -> None:
        """A Kubernetes Event was sent, repeated, dropped or failed."""
        self._counters["events_total"].labels(result).inc()

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, namespace=OWN_PREFIX, subsystem="compactor", registry=self.registry)
