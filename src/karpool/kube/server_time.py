"""The time of day by the clock of the API server.

Ages and timeouts compare the time now with timestamps that the server wrote. If the local clock is wrong, or is set
while the process runs, nodes would time out as soon as they are created, or drains would wait for hours. So the local
clock is used only while the `Date` of responses agrees with it, and is read only once.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

import structlog

_log = structlog.get_logger()
TOLERANCE: Final = timedelta(seconds=5)
"""The clocks of several servers differ; a smaller difference than this is ignored."""
_WHOLE_SECOND: Final = timedelta(seconds=1)


class ServerTime:
    """A clock that counts steadily from a moment on which both clocks agreed, or else from the server's time."""

    def __init__(self, wall: Callable[[], datetime], steady: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._steady = steady
        self._since: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        if self._since is None:
            return self._wall()
        moment, at = self._since
        return moment + timedelta(seconds=self._steady() - at)

    def observe(self, date: str, seconds: float) -> None:
        """Compare with the `Date` of a response that took so many seconds."""
        try:
            server = parsedate_to_datetime(date).astimezone(UTC)
        except ValueError:
            return
        now = self()
        sent = now - timedelta(seconds=seconds)
        if sent - TOLERANCE <= server + _WHOLE_SECOND and server <= now + TOLERANCE:
            self._since = self._since or (now, self._steady())
            return
        _log.warning("local clock differs from that of the API server, which is used", here=str(now), there=str(server))
        self._since = (server, self._steady())
