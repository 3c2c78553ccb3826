"""Gauges whose values are replaced all at once: another thread that reads them never sees half of them."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

Values = Mapping[tuple[str, ...], float]


class GaugeTable(Collector):
    """One gauge with labels: a value for each combination of them that there is now."""

    def __init__(self, name: str, text: str, labels: tuple[str, ...], registry: CollectorRegistry) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._values: Values = MappingProxyType({})
        registry.register(self)

    def replace(self, values: Values) -> None:
        self._values = dict(values)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self._name, self._text, labels=self._labels)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        yield family
