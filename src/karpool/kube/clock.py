"""The local clocks; the only place in this package that reads the time of day."""

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)


def steady_seconds() -> float:
    """A clock that cannot be set; where there is one, one that also counts while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
