"""The time of day as the API server has it.

Ages and time-outs compare our time with what the server wrote into objects. With a clock that is wrong, or is set while
we run, nodes would be given up as soon as they are asked for, or drains would wait for hours. So the clock of this
machine counts only as long as the server's answers agree with it, and is read only once.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

import structlog

_log = structlog.get_logger()
TOLERANCE: Final = timedelta(seconds=5)
"""Servers differ a little among themselves; less than this is no difference."""
_WHOLE_SECOND: Final = timedelta(seconds=1)


class ServerTime:
    """A clock that goes on steadily from a moment on which this machine and the server agreed, or else the server's."""

    def __init__(self, wall: Callable[[], datetime], steady: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._steady = steady
        self._since: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        """The time now."""
        if self._since is None:
            return self._wall()
        moment, at = self._since
        return moment + timedelta(seconds=self._steady() - at)

    def observe(self, date: str, seconds: float) -> None:
        """Note the `Date` of an answer that took so long to come."""
        try:
            said = parsedate_to_datetime(date).astimezone(UTC)
        except ValueError:
            return
        now = self()
        asked = now - timedelta(seconds=seconds)
        if asked - TOLERANCE <= said + _WHOLE_SECOND and said <= now + TOLERANCE:
            self._since = self._since or (now, self._steady())
            return
        _log.warning("the clock is not that of the API server, whose time is used", here=str(now), there=str(said))
        self._since = (said, self._steady())
