"""Batching: pods that come together get their nodes together."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Window:
    """How long to wait for more: until nobody new has come for `idle`, at most for `longest`."""

    idle: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Batch:
    """Who asked for nodes since the first one did; empty while nobody has."""

    opened: datetime | None = None
    latest: datetime | None = None
    seen: frozenset[str] = frozenset()


def trigger(batch: Batch, uid: str, now: datetime) -> Batch:
    """Somebody asks for a node; asking twice within a batch makes it no longer."""
    if uid in batch.seen:
        return batch
    return Batch(batch.opened or now, now, batch.seen | {uid})


def closes(batch: Batch, window: Window | None = None) -> datetime | None:
    """When the batch is complete, if nobody new comes; None while it is empty."""
    window = window or Window()
    if batch.opened is None or batch.latest is None:
        return None
    return min(batch.latest + window.idle, batch.opened + window.longest)


def complete(batch: Batch, now: datetime, window: Window | None = None) -> bool:
    """Whether it is time to provision; afterwards the next batch begins empty."""
    closing = closes(batch, window)
    return closing is not None and now >= closing
