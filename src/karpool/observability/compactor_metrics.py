"""The metrics of `karpool compact` for Prometheus: the gauges that dashboards of the original know, and a few more."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from prometheus_client import Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from karpool.compaction.decide import CompactionDecision
from karpool.compaction.metrics import HELP, PREFIX, GaugeSample, measure
from karpool.observability.metrics import ProcessMetrics
from karpool.observability.series import PREFIX as OWN_PREFIX


class _DecisionGauges(Collector):
    """The last decision as gauges; a node or pool that is not in it has none."""

    def __init__(self) -> None:
        self.samples: Sequence[GaugeSample] = ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        by_name: defaultdict[str, list[GaugeSample]] = defaultdict(list)
        for sample in self.samples:
            by_name[sample.name].append(sample)
        for name, samples in by_name.items():
            labels = tuple(samples[0].labels)
            family = GaugeMetricFamily(name, HELP[name.removeprefix(PREFIX)], labels=labels)
            for sample in samples:
                family.add_metric([sample.labels[label] for label in labels], sample.value)
            yield family


class CompactorMetrics(ProcessMetrics):
    def __init__(self) -> None:
        super().__init__(("api_requests_total", "watch_restarts_total", "events_total", "notifications_total"))
        self._decision = _DecisionGauges()
        self.registry.register(self._decision)
        self._config_valid = self._gauge("config_valid", "1 if the configuration as it is written now is in use.")
        self._brakes = Gauge(
            "brakes",
            "1 for the brake that stops everything, if one does.",
            ["brake"],
            namespace=OWN_PREFIX,
            subsystem="compactor",
            registry=self.registry,
        )
        self._decided_at = self._gauge("last_look_timestamp_seconds", "When the last decision was made.")

    def decided(self, decision: CompactionDecision, now: datetime) -> None:
        """A decision was made; its figures replace those of the last one."""
        self._decision.samples = measure(decision)
        self._decided_at.set(now.timestamp())
        self._brakes.clear()
        if decision.stop is not None:
            self._brakes.labels(decision.stop.code).set(1)

    def config(self, *, valid: bool) -> None:
        self._config_valid.set(valid)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, namespace=OWN_PREFIX, subsystem="compactor", registry=self.registry)
