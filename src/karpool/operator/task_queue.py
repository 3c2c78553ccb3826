"""What the controller is to do when, on the clocks of this machine."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from heapq import heappop, heappush
from typing import Final

from karpool.controller.ports import Task
from karpool.kube.clock import utc_now

FURTHEST_JUMP: Final = 5.0
"""By how many seconds the time of day may stray from the steady clock before it counts as set anew."""


class TaskQueue:
    """Deeds by their time on the steady clock, so that a clock that is set back delays nothing."""

    def __init__(self, wall: Callable[[], datetime] = utc_now, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._steady = steady
        self._heap: list[tuple[float, int, Task]] = []
        self._sequence = 0
        self._apart = self._distance()

    @property
    def moment(self) -> datetime:
        """The time of day."""
        return self._wall()

    def after(self, delay: float, task: Task) -> None:
        """Do something so many seconds from now."""
        self._sequence += 1
        heappush(self._heap, (self._steady() + max(0.0, delay), self._sequence, task))

    def when(self, moment: datetime, task: Task) -> None:
        """Do something at a moment, or now if that is past."""
        self.after((moment - self._wall()).total_seconds(), task)

    def due(self) -> Iterator[Task]:
        """What is to be done by now, each only when it is asked for."""
        while self._heap and self._heap[0][0] <= self._steady():
            yield heappop(self._heap)[2]

    def wait(self) -> float | None:
        """How many seconds there are until something is to be done; None if nothing ever is."""
        return max(0.0, self._heap[0][0] - self._steady()) if self._heap else None

    def clear(self) -> None:
        """Forget all that was to be done."""
        self._heap.clear()

    def jumped(self) -> bool:
        """Whether the time of day was set anew since the last question."""
        apart = self._distance()
        jumped = abs(apart - self._apart) > FURTHEST_JUMP
        # Small steps are the work of time servers; what they add up to is no jump.
        self._apart = apart
        return jumped

    def _distance(self) -> float:
        return self._wall().timestamp() - self._steady()
