import pytest

from karpool.disruption.command import Method
from karpool.observability.metrics import Metrics


@pytest.mark.parametrize("method", Method)
def test_commands_of_every_method_are_counted(method: Method) -> None:
    metrics = Metrics()
    metrics.command_started(str(method), "replace")
    metrics.command_invalidated(str(method))
    metrics.command_rolled_back(str(method), "replace")
