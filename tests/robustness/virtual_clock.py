"""The clock of one process: Karpool's own estimate, from the dates of answers and a local clock that may be set."""

from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Final

from karpool.kube.server_time import ServerTime
from karpool.operator.task_queue import FURTHEST_JUMP, seconds_until
from karpool.virtual.event_queue import EventQueue

_ANSWER_SECONDS: Final = 0.01


class TrueClock:
    """The clock of a process that never hears a wrong time."""

    def __init__(self, queue: EventQueue) -> None:
        self._queue = queue

    @property
    def moment(self) -> datetime:
        return self._queue.moment

    @property
    def earliest(self) -> datetime:
        return self._queue.moment

    @property
    def latest(self) -> datetime:
        return self._queue.moment

    @property
    def doubt(self) -> str:
        return ""

    def wait(self, moment: datetime) -> float:
        """How many seconds until a moment."""
        return (moment - self._queue.moment).total_seconds()

    def answered(self, ahead: float) -> None:
        """An answer said that it is so many seconds later than it is."""

    def set_local(self, ahead: float) -> None:
        """Somebody sets the clock of the machine."""

    def jumped(self) -> bool:
        """Whether the time has jumped since this was last asked."""
        return False


class DoubtfulClock(TrueClock):
    """The estimate of `karpool run`, fed with what the servers of this story say."""

    def __init__(self, queue: EventQueue) -> None:
        super().__init__(queue)
        self._ahead = 0.0
        self._time = ServerTime(self._wall, lambda: queue.time)
        self._offset = self._current_offset()

    def _wall(self) -> datetime:
        return self._queue.moment + timedelta(seconds=self._ahead)

    @property
    def moment(self) -> datetime:
        return self._time()

    @property
    def earliest(self) -> datetime:
        return self._time.earliest

    @property
    def latest(self) -> datetime:
        return self._time.latest

    @property
    def doubt(self) -> str:
        return self._time.doubt

    def wait(self, moment: datetime) -> float:
        return seconds_until(moment, self.earliest, in_doubt=bool(self.doubt))

    def answered(self, ahead: float) -> None:
        said = self._queue.moment + timedelta(seconds=ahead)
        self._time.observe(format_datetime(said, usegmt=True), _ANSWER_SECONDS)

    def set_local(self, ahead: float) -> None:
        self._ahead = ahead

    def jumped(self) -> bool:
        before, self._offset = self._offset, self._current_offset()
        return abs(self._offset - before) > FURTHEST_JUMP

    def _current_offset(self) -> float:
        return self.moment.timestamp() - self._queue.time
