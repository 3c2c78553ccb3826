"""The controller's tasks by the time they are due, on the clocks of this machine."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from heapq import heappop, heappush
from typing import Final

from karpool.controller.ports import Task
from karpool.kube.clock import utc_now

FURTHEST_JUMP: Final = 5.0
"""By how many seconds the time of day may differ from the monotonic clock before it counts as set."""

DOUBT_INTERVAL: Final = 1.0
"""How many seconds a task that waits for a moment waits at least while the time stands still."""
LONGEST_IN_DOUBT: Final = 15.0
"""How many seconds it waits at most: the time that was believed in doubt may turn out to be hours wrong."""


def seconds_until(moment: datetime, earliest: datetime, *, in_doubt: bool) -> float:
    """How long to wait for a moment, as far as the time is known; in doubt that is to be asked again now and then."""
    delay = (moment - earliest).total_seconds()
    return min(max(delay, DOUBT_INTERVAL), LONGEST_IN_DOUBT) if in_doubt else delay


class TaskQueue:
    """Tasks by their time on the monotonic clock, so that a clock that is set back delays none."""

    def __init__(
        self,
        wall: Callable[[], datetime] = utc_now,
        steady: Callable[[], float] = time.monotonic,
        *,
        earliest: Callable[[], datetime] | None = None,
        latest: Callable[[], datetime] | None = None,
        doubt: Callable[[], str] = lambda: "",
    ) -> None:
        """`earliest` and `latest`: what the time may be, if that differs; `doubt` says why it is not certain."""
        self._wall = wall
        self._earliest = earliest or wall
        self._latest = latest or wall
        self._doubt = doubt
        self._steady = steady
        self._heap: list[tuple[float, int, Task]] = []
        self._sequence = 0
        self._lock = threading.Lock()
        self._offset = self._current_offset()

    @property
    def moment(self) -> datetime:
        return self._wall()

    @property
    def earliest(self) -> datetime:
        return self._earliest()

    @property
    def latest(self) -> datetime:
        return self._latest()

    @property
    def doubt(self) -> str:
        return self._doubt()

    def after(self, delay: float, task: Task) -> None:
        """Run a task so many seconds from now; any thread may ask for it."""
        with self._lock:
            self._sequence += 1
            heappush(self._heap, (self._steady() + max(0.0, delay), self._sequence, task))

    def when(self, moment: datetime, task: Task) -> None:
        """Run a task when a moment has certainly come; while the time is in doubt, ask again now and then."""
        self.after(seconds_until(moment, self._earliest(), in_doubt=bool(self._doubt())), task)

    def due(self) -> Iterator[Task]:
        """The tasks that are due, each removed when it is yielded."""
        while True:
            with self._lock:
                if not self._heap or self._heap[0][0] > self._steady():
                    return
                task = heappop(self._heap)[2]
            yield task

    def wait(self) -> float | None:
        """How many seconds until the next task is due; None without a task."""
        with self._lock:
            return max(0.0, self._heap[0][0] - self._steady()) if self._heap else None

    def clear(self) -> None:
        with self._lock:
            self._heap.clear()

    def jumped(self) -> bool:
        offset = self._current_offset()
        jumped = abs(offset - self._offset) > FURTHEST_JUMP
        # Time servers make small steps, which may add up without a jump.
        self._offset = offset
        return jumped

    def _current_offset(self) -> float:
        return self._wall().timestamp() - self._steady()
