"""What happens when: a clock of its own, and a heap of things to do."""

from collections.abc import Callable
from datetime import datetime, timedelta
from heapq import heappop, heappush

Deed = Callable[[], object]
FINEST = 3
"""Moments are whole milliseconds, so that no sum of delays drifts apart from another."""


class EventQueue:
    """Deeds by their time; those of one moment happen in the order in which they were asked for."""

    def __init__(self, start: datetime) -> None:
        self.start = start
        self.time = 0.0
        self.done = 0
        self._heap: list[tuple[float, int, Deed]] = []
        self._sequence = 0
        self._moment: datetime | None = start

    @property
    def moment(self) -> datetime:
        """The time now, as objects carry it."""
        if self._moment is None:
            self._moment = self.moment_at(self.time)
        return self._moment

    def moment_at(self, time: float) -> datetime:
        """A number of seconds since the start, as objects carry it."""
        return self.start + timedelta(seconds=time)

    def at(self, time: float, task: Deed) -> None:
        """Do something at a time, or now if that is past."""
        self._sequence += 1
        heappush(self._heap, (max(self.time, round(time, FINEST)), self._sequence, task))

    def after(self, delay: float, task: Deed) -> None:
        """Do something so many seconds from now."""
        self.at(self.time + delay, task)

    def when(self, moment: datetime, task: Deed) -> None:
        """Do something at a moment, or now if that is past."""
        self.at((moment - self.start).total_seconds(), task)

    def run(self, until: float, each: Deed | None = None) -> None:
        """Do everything that is due before a time, and set the clock to it; `each` is called after every deed."""
        heap = self._heap
        while heap and heap[0][0] < until:
            time, _, task = heappop(heap)
            self._set(time)
            task()
            self.done += 1
            if each is not None:
                each()
        self._set(until)

    def _set(self, time: float) -> None:
        if time > self.time:
            self.time = time
            self._moment = None
