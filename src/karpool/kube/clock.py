"""The local clock; the only place in this package that reads the time of day."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)
