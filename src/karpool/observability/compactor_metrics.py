"""What the compactor measures, for Prometheus: the gauges that dashboards of the original know, and its own few."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from karpool import __version__
from karpool.compaction.decide import CompactionDecision
from karpool.compaction.metrics import HELP, PREFIX, GaugeSample, measure
from karpool.observability.metrics import EventResult
from karpool.observability.series import COUNTERS
from karpool.observability.series import PREFIX as OWN_PREFIX

_COUNTED: Final = ("api_requests_total", "watch_restarts_total", "events_total")


class _Measured(Collector):
    """The last decision as gauges; a node or pool that is not in it has no series."""

    def __init__(self) -> None:
        self.samples: Sequence[GaugeSample] = ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One family for each gauge."""
        found: defaultdict[str, list[GaugeSample]] = defaultdict(list)
        for sample in self.samples:
            found[sample.name].append(sample)
        for name, samples in found.items():
            labels = tuple(samples[0].labels)
            family = GaugeMetricFamily(name, HELP[name.removeprefix(PREFIX)], labels=labels)
            for sample in samples:
                family.add_metric([sample.labels[label] for label in labels], sample.value)
            yield family


class CompactorMetrics:
    """All series of one compactor."""

    def __init__(self) -> None:
        # Doubles the number of lines, and nothing here needs the time at which a counter was made.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._measured = _Measured()
        self.registry.register(self._measured)
        self._counters = {
            name: Counter(
                name, COUNTERS[name].help, COUNTERS[name].labels, namespace=OWN_PREFIX, registry=self.registry
            )
            for name in _COUNTED
        }
        self._config_valid = self._gauge("config_valid", "1: the configuration as it is written now is in use.")
        self._looked = self._gauge("last_look_timestamp_seconds", "When the cluster was last looked at.")
        Info("build", "Which Karpool this is.", namespace=OWN_PREFIX, registry=self.registry).info(
            {"version": __version__}
        )
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def page(self) -> bytes:
        """All series in Prometheus' text format."""
        return generate_latest(self.registry)

    def decided(self, decision: CompactionDecision, now: datetime) -> None:
        """The cluster was looked at; what was measured before is gone."""
        self._measured.samples = measure(decision)
        self._looked.set(now.timestamp())

    def config(self, *, valid: bool) -> None:
        """Whether the configuration as it is written now can be used."""
        self._config_valid.set(valid)

    def api_request(self, verb: str, resource: str, code: int, _seconds: float) -> None:
        """The API server answered a request; for a watch: began to answer."""
        self._counters["api_requests_total"].labels(verb, resource, str(code)).inc()

    def watch_restarted(self, resource: str) -> None:
        """A watch had to be begun again."""
        self._counters["watch_restarts_total"].labels(resource).inc()

    def event(self, result: EventResult) -> None:
        """What came of a Kubernetes Event."""
        self._counters["events_total"].labels(result).inc()

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, namespace=OWN_PREFIX, subsystem="compactor", registry=self.registry)
