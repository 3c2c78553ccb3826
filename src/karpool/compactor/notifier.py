"""Tells a webhook of drains, failures and pauses of `karpool compact`."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, Literal

from karpool.execution.actions import RecordEvent
from karpool.model.reasons import Reason
from karpool.observability.events import EventSink
from karpool.observability.notices import Notice, NoticeEvent

_TOLD: Final = {
    "ScaleDownStarted": (NoticeEvent.DRAIN_STARTED, "Draining"),
    "Drained": (NoticeEvent.DRAIN_FINISHED, "Drained"),
}


class NotifyingSink:
    """Records Events where they are recorded anyway, and posts a notice of each: what happened and succeeded."""

    def __init__(self, sink: EventSink, post: Callable[[Notice], None], clock: Callable[[], datetime]) -> None:
        self._sink = sink
        self._post = post
        self._clock = clock

    def record(self, event: RecordEvent) -> None:
        self._sink.record(event)
        kind, verb = _TOLD.get(event.reason, (NoticeEvent.DRAIN_FAILED, "Trouble with"))
        title = f"{verb} {event.kind} {event.name}"
        severity: Literal["info", "warning"] = "warning" if event.type == "Warning" else "info"
        text = f"{event.kind} {event.name}: {event.message}"
        details = {"object": f"{event.kind} {event.name}", "code": event.reason}
        self._post(Notice(kind, self._clock(), title, text, severity, details))


def brake_notice(stop: Reason, now: datetime, *, holds: bool) -> Notice:
    """A brake that took hold of everything, or let go."""
    event, word = (NoticeEvent.PAUSED, "held") if holds else (NoticeEvent.RESUMED, "no longer held")
    details = {"code": stop.code, "object": stop.object}
    title = f"Karpool: everything is {word}: {stop.code}"
    return Notice(event, now, title, stop.message, "warning" if holds else "info", details)
