"""How often a node was rebooted lately, as its NodeClaim remembers it; a fault that comes back is not rebooted away."""

from datetime import UTC, datetime, timedelta
from typing import Final

from karpool.model.labels import REBOOTS
from karpool.model.nodepool import NodeClaim

REMEMBERED: Final = timedelta(hours=24)
MOST_REBOOTS: Final = 2


def reboots_too_often(claim: NodeClaim, now: datetime) -> bool:
    """Whether a node has been rebooted as often as it may be in a day; so it counts if nobody can read how often."""
    try:
        return len(_recent(claim, now)) >= MOST_REBOOTS
    except ValueError:
        return True


def with_reboot(claim: NodeClaim, now: datetime) -> str:
    """The annotation that also has a reboot of this moment, without those that are forgotten."""
    try:
        kept = _recent(claim, now)
    except ValueError:
        kept = []
    return ",".join(f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" for moment in (*kept[-MOST_REBOOTS:], now))


def without_last(claim: NodeClaim) -> str | None:
    """The annotation without the last reboot, which has not happened; None if there is nothing else in it."""
    return claim.metadata.annotations.get(REBOOTS, "").rpartition(",")[0] or None


def _recent(claim: NodeClaim, now: datetime) -> list[datetime]:
    text = claim.metadata.annotations.get(REBOOTS, "")
    moments = [datetime.fromisoformat(part.strip()) for part in text.split(",") if part.strip()]
    aware = [moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC) for moment in moments]
    return [moment for moment in aware if now - moment < REMEMBERED]
