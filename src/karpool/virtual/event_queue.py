"""The clock of a simulation: a heap of tasks, each with its time."""

from collections.abc import Callable
from datetime import datetime, timedelta
from heapq import heappop, heappush

Callback = Callable[[], object]
FINEST = 3
"""Times are whole milliseconds, so that sums of delays do not drift apart."""


class EventQueue:
    """Tasks by their time; those of one moment run in the order in which they were added."""

    def __init__(self, start: datetime) -> None:
        self.start = start
        self.time = 0.0
        self.done = 0
        self.observers: list[Callback] = []
        """Called after every task."""
        self._heap: list[tuple[float, int, Callback]] = []
        self._sequence = 0
        self._moment: datetime | None = start

    def __len__(self) -> int:
        """How many tasks wait."""
        return len(self._heap)

    @property
    def moment(self) -> datetime:
        if self._moment is None:
            self._moment = self.moment_at(self.time)
        return self._moment

    def moment_at(self, time: float) -> datetime:
        return self.start + timedelta(seconds=time)

    @property
    def earliest(self) -> datetime:
        return self.moment

    @property
    def latest(self) -> datetime:
        return self.moment

    @property
    def doubt(self) -> str:
        return ""

    def at(self, time: float, task: Callback) -> None:
        """Run a task at a time, or now if that is past."""
        self._sequence += 1
        heappush(self._heap, (max(self.time, round(time, FINEST)), self._sequence, task))

    def after(self, delay: float, task: Callback) -> None:
        self.at(self.time + delay, task)

    def when(self, moment: datetime, task: Callback) -> None:
        self.at((moment - self.start).total_seconds(), task)

    def run(self, until: float) -> None:
        """Run everything that is due before a time, and set the clock to it."""
        heap = self._heap
        while heap and heap[0][0] < until:
            time, _, task = heappop(heap)
            self._set(time)
            task()
            self.done += 1
            for observe in self.observers:
                observe()
        self._set(until)

    def _set(self, time: float) -> None:
        if time > self.time:
            self.time = time
            self._moment = None
