"""The time of day; the only place in this package that asks the machine for it."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The time now."""
    return datetime.now(UTC)
