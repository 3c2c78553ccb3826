"""Clocks of the virtual cluster: one whose time is in doubt for a while, one of servers that are seconds apart."""

from datetime import datetime, timedelta

from karpool.controller.ports import Task
from karpool.operator.task_queue import seconds_until
from karpool.virtual.event_queue import EventQueue


class DoubtfulClock:
    """The clock of a simulation as its controller sees it; the cluster itself knows the time."""

    def __init__(self, queue: EventQueue, *, begins: float, ends: float, back: float = 0.0) -> None:
        """`back`: how many seconds before the doubt began it may still be."""
        self._queue = queue
        self._back = timedelta(seconds=back)
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
        begun = self._queue.start + timedelta(seconds=self._begins)
        return begun - self._back if self.doubt else self._queue.moment

    @property
    def latest(self) -> datetime:
        return self._queue.moment

    def after(self, delay: float, task: Task) -> None:
        self._queue.after(delay, task)

    def when(self, moment: datetime, task: Task) -> None:
        self._queue.after(seconds_until(moment, self.earliest, in_doubt=bool(self.doubt)), task)


class UncertainClock(DoubtfulClock):
    """A clock that cannot tell how much of the last seconds has passed; the fastest server has the time."""

    def __init__(self, queue: EventQueue, *, seconds: float) -> None:
        super().__init__(queue, begins=0.0, ends=0.0)
        self._behind = timedelta(seconds=seconds)

    @property
    def earliest(self) -> datetime:
        return self._queue.moment - self._behind
