"""Failed launches, as their pools remember them: an annotation on the pool's oldest NodeClaims.

The claim that failed is gone soon, and what stays of a pool without claims has nothing to disrupt.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from karpool.model.annotations import AnnotationError, annotation_path
from karpool.model.labels import FAILED_LAUNCH
from karpool.model.nodepool import NodeClaim
from karpool.wire.objects import Timestamp, Wire, condition
from karpool.wire.problems import Flaw, one_line

_LONGEST_MESSAGE: Final = 300
_COPIES: Final = 3
"""On how many claims a failure is written, so that it outlives the removal of one."""
_REPEAT: Final = timedelta(seconds=30)
"""Launches that fail again and again are written down so often at most."""
_FAILED: Final = "LaunchFailed"


class FailedLaunch(Wire):
    """The last failed launch of a pool."""

    claim: str
    at: Timestamp
    message: str = ""

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


def launch_failure(old: NodeClaim | None, new: NodeClaim | None) -> str | None:
    """How a change of a claim shows that its launch has failed, if it does."""
    if old is None or old.terminating or old.is_true("Registered"):
        return None
    launched = condition(old.status.conditions, "Launched")
    if new is None or new.terminating:
        said = "" if launched is None or launched.status == "True" else launched.message
        where = "it had a node" if launched is not None and launched.status == "True" else "it was launched"
        return said or f"it was deleted before {where}"
    now = condition(new.status.conditions, "Launched")
    failed = now is not None and now.status != "True" and now.reason == _FAILED
    was = launched is not None and launched.reason == _FAILED
    return now.message if now is not None and failed and not was else None


def claims_to_tell(pool: Iterable[NodeClaim], failed: str, now: datetime) -> Sequence[str]:
    """The names of the claims that are to remember a failed launch of their pool; none if they do already."""
    alive = [claim for claim in pool if not claim.terminating and claim.name != failed]
    if any(_fresh(claim, now) for claim in alive):
        return ()
    oldest = sorted(alive, key=lambda claim: (claim.metadata.creation_timestamp or now, claim.name))
    return [claim.name for claim in oldest[:_COPIES]]


def remembered_launch(claim: str, message: str, now: datetime) -> FailedLaunch:
    """What those claims are to remember."""
    return FailedLaunch(claim=claim, at=now.replace(microsecond=0), message=one_line(message[:_LONGEST_MESSAGE]))


def _fresh(claim: NodeClaim, now: datetime) -> bool:
    try:
        known = failed_launch(claim)
    except AnnotationError:
        return False
    return known is not None and now - known.at < _REPEAT
