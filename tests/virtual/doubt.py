"""A clock of the virtual cluster whose time is in doubt from one moment to another."""

from datetime import datetime, timedelta

from karpool.controller.ports import Task
from karpool.virtual.event_queue import EventQueue


class DoubtfulClock:
    """The clock of a simulation as its controller sees it; the cluster itself knows the time."""

    def __init__(self, queue: EventQueue, *, begins: float, ends: float) -> None:
        self._queue = queue
        self._begins = begins
        self._ends = ends

    @property
    def doubt(self) -> str:
        return "an API server says otherwise" if self._begins <= self._queue.time < self._ends else ""

    @property
    def moment(self) -> datetime:
        return self._queue.moment

    @property
    def earliest(self) -> datetime:
        return self._queue.start + timedelta(seconds=self._begins) if self.doubt else self._queue.moment

    def after(self, delay: float, task: Task) -> None:
        self._queue.after(delay, task)

    def when(self, moment: datetime, task: Task) -> None:
        delay = (moment - self.earliest).total_seconds()
        self._queue.after(max(1.0, delay) if self.doubt else delay, task)
