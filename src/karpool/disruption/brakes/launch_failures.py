"""Failed launches, as their pools remember them: an annotation on the pool's oldest NodeClaims.

The claim that failed is gone soon, and what stays of a pool without claims has nothing to disrupt.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from karpool.disruption.brakes.settings import BrakeSettings
from karpool.model.annotations import AnnotationError, annotation_path
from karpool.model.labels import FAILED_LAUNCH
from karpool.model.nodepool import NodeClaim
from karpool.wire.duration import Duration
from karpool.wire.objects import Timestamp, Wire, condition
from karpool.wire.problems import Flaw, one_line

_LAUNCHED: Final = "Launched"
_REGISTERED: Final = "Registered"
_LONGEST_MESSAGE: Final = 300
_COPIES: Final = 3
"""On how many claims a failure is written, so that it outlives the removal of one."""
_REPEAT: Final = timedelta(seconds=30)
"""Launches that fail again and again are written down so often at most, and less often the longer it lasts."""
_RARELY: Final = timedelta(minutes=10)
_NOT_TRIED: Final = ("", "AwaitingReconciliation")
"""Reasons of the condition Launched before anybody has tried."""


class FailedLaunch(Wire):
    """The last failed launch of a pool, and since when launches of it fail in a row."""

    claim: str
    at: Timestamp
    message: str = ""
    since: Timestamp | None = None

    @property
    def row_since(self) -> datetime:
        """When the first launch of the row failed."""
        return self.at if self.since is None else min(self.since, self.at)

    def written(self) -> str:
        """The value of the annotation."""
        return msgspec.json.encode(self).decode()


def failed_launch(claim: NodeClaim) -> FailedLaunch | None:
    """The failed launch that a claim remembers for its pool; raises an AnnotationError if that cannot be read."""
    text = claim.metadata.annotations.get(FAILED_LAUNCH)
    return None if text is None else _read(text)


@lru_cache(maxsize=1024)
def _read(text: str) -> FailedLaunch:
    try:
        return msgspec.json.decode(text, type=FailedLaunch)
    except ValueError as error:
        raise AnnotationError([Flaw(annotation_path(FAILED_LAUNCH), "Annotation", str(error)[:200])]) from None


class LaunchTimes(NamedTuple):
    """How long a claim may take to be launched, and then to have a node, before it is given up."""

    launch: timedelta
    registration: timedelta


def launch_failure(old: NodeClaim | None, new: NodeClaim | None, times: LaunchTimes, now: datetime) -> str | None:
    """How a change of a claim shows that its launch has failed, if it does.

    Somebody says so in the condition Launched; or the claim goes when its time is over. One that goes earlier may have
    been deleted by anybody, for any reason.
    """
    if old is None or old.terminating or old.is_true(_REGISTERED):
        return None
    said = None if new is None else _said(new)
    if said is not None and _said(old) is None:
        return said
    overdue = _overdue(old, times, now) if new is None or new.terminating else None
    return None if overdue is None else _said(old) or overdue


def _said(claim: NodeClaim) -> str | None:
    """What a claim says of its failed launch; None if it says none."""
    launched = condition(claim.status.conditions, _LAUNCHED)
    if launched is None or launched.status == "True" or launched.reason in _NOT_TRIED:
        return None
    return launched.message or launched.reason


def _overdue(claim: NodeClaim, times: LaunchTimes, now: datetime) -> str | None:
    created = claim.metadata.creation_timestamp
    if created is None:
        return None
    if not claim.is_true(_LAUNCHED):
        return f"it was not launched within {_length(times.launch)}" if now >= created + times.launch else None
    launched = condition(claim.status.conditions, _LAUNCHED)
    since = (None if launched is None else launched.last_transition_time) or created
    overdue = now >= since + times.registration
    return f"its node did not register within {_length(times.registration)}" if overdue else None


def _length(time: timedelta) -> str:
    return str(Duration(time // timedelta(microseconds=1) * 1000))


def claims_to_tell(pool: Iterable[NodeClaim], failed: FailedLaunch) -> Sequence[str]:
    """The names of the claims that are to remember a failed launch of their pool; none if they do already."""
    alive = [claim for claim in pool if not claim.terminating and claim.name != failed.claim]
    known = [entry for claim in alive if (entry := _known(claim)) is not None]
    if any(failed.at - entry.at < max(_REPEAT, min(_RARELY, (entry.at - entry.row_since) / 8)) for entry in known):
        return ()
    oldest = sorted(alive, key=lambda claim: (claim.metadata.creation_timestamp or failed.at, claim.name))
    return [claim.name for claim in oldest[:_COPIES]]


def remembered_launch(
    claim: str, message: str, pool: Iterable[NodeClaim], settings: BrakeSettings, now: datetime
) -> FailedLaunch:
    """What claims of a pool are to remember of a launch that fails now."""
    at, apart = now.replace(microsecond=0), settings.failed_launches_apart
    earlier = [entry for other in pool if (entry := _known(other)) is not None and at - entry.at < apart]
    since = min((entry.row_since for entry in earlier), default=None)
    return FailedLaunch(claim=claim, at=at, message=one_line(message[:_LONGEST_MESSAGE]), since=since)


def _known(claim: NodeClaim) -> FailedLaunch | None:
    """What a claim remembers; what cannot be read counts nothing here, and is reported elsewhere."""
    try:
        return failed_launch(claim)
    except AnnotationError:
        return None
