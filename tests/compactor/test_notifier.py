"""What people who do not watch are told of `karpool compact`."""

from datetime import UTC, datetime

from tests.tables import row, table

from karpool.compactor.notifier import NotifyingSink, brake_notice
from karpool.execution.actions import RecordEvent
from karpool.model.reasons import Reason
from karpool.observability.notices import Notice

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Recorder:
    def __init__(self) -> None:
        self.events: list[RecordEvent] = []

    def record(self, event: RecordEvent) -> None:
        self.events.append(event)


@table(
    row(
        "a drain begins",
        event=RecordEvent("Node", "a", "ScaleDownStarted", "is drained"),
        notice=("DrainStarted", "info", "Draining Node a"),
    ),
    row("it ends", event=RecordEvent("Node", "a", "Drained", "m"), notice=("DrainFinished", "info", "Drained Node a")),
    row(
        "it is given up",
        event=RecordEvent("Node", "a", "DrainStalled", "given up", "Warning"),
        notice=("DrainFailed", "warning", "Trouble with Node a"),
    ),
)
def test_events_are_recorded_and_told(event: RecordEvent, notice: tuple[str, str, str]) -> None:
    recorder, notices = Recorder(), list[Notice]()
    NotifyingSink(recorder, notices.append, lambda: NOW).record(event)
    assert recorder.events == [event]
    (told,) = notices
    assert (told.event.value, told.severity, told.title) == notice
    assert told.details == {"object": "Node a", "code": event.reason}


def test_a_brake_is_told_both_ways() -> None:
    stop = Reason("Paused", "the sale is on", "ConfigMap estafette/karpool-pause")
    assert brake_notice(stop, NOW, holds=True).title == "Karpool: everything is held: Paused"
    assert brake_notice(stop, NOW, holds=False).event == "Resumed"
