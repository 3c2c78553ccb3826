"""Notices a controller that is started again and again, and never gets to a decision."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

FEWEST_RESTARTS: Final = 3
"""A controller that waits, as for a server that is away, stops once; fewer restarts than this are no livelock."""


@dataclass
class LivelockMeter:
    """Counts restarts since the last decision; the times are those of a steady clock, in seconds."""

    since: float
    restarts: int = 0
    reason: str = ""

    def progressed(self, now: float) -> None:
        """A decision was made, or none is expected of this process."""
        self.since, self.restarts, self.reason = now, 0, ""

    def restarted(self, reason: str) -> None:
        self.restarts += 1
        self.reason = reason

    def problem(self, now: float, limit: timedelta) -> str | None:
        """What is wrong, if there was no decision for so long, but restarts."""
        seconds = now - self.since
        if self.restarts < FEWEST_RESTARTS or seconds < limit.total_seconds():
            return None
        what = f"no decision for {seconds:.0f} s, in which the controller was restarted {self.restarts} times"
        return f"{what}, last because {self.reason}"
