"""Every method of disruption has its place in the metrics."""

import pytest

from karpool.disruption.command import Method
from karpool.observability.metrics import Metrics

SERIES = (
    "karpool_voluntary_disruption_decisions_total",
    "karpool_voluntary_disruption_failed_validations_total",
    "karpool_voluntary_disruption_queue_failures_total",
)


@pytest.mark.parametrize("method", Method)
def test_commands_of_every_method_are_counted(method: Method) -> None:
    metrics = Metrics()
    metrics.command_started(str(method), "replace")
    metrics.command_invalidated(str(method))
    metrics.command_rolled_back(str(method), "replace")
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    counted = {name: [sample.value for sample in samples if sample.name == name] for name in SERIES}
    assert counted == {name: [1.0] for name in SERIES}
