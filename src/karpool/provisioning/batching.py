"""Batching: pods that become pending together get their nodes together."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class BatchWindow:
    """How long to wait for more pods: until none has come for `idle`, at most for `longest`."""

    idle: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(seconds=10)


class Batch:
    """The pods that need a node since the first of them did; the next batch starts empty."""

    def __init__(self, window: BatchWindow | None = None) -> None:
        self.window = window or BatchWindow()
        self.closes: datetime | None = None
        """When the batch is complete if no other pod comes; None while it is empty."""
        self._latest_end: datetime | None = None
        self._seen: set[str] = set()

    def trigger(self, uid: str, now: datetime) -> None:
        """A pod needs a node; the same pod extends a batch only once."""
        if uid in self._seen:
            return
        self._seen.add(uid)
        if self._latest_end is None:
            self._latest_end = now + self.window.longest
        self.closes = min(now + self.window.idle, self._latest_end)

    def complete(self, now: datetime) -> bool:
        return self.closes is not None and now >= self.closes
