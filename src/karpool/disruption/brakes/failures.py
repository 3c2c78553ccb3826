"""Commands that failed, as their nodes remember them: an annotation on each NodeClaim that a failed command was about.

It is written when a command is rolled back, by the same patch that removes its marks or an earlier one, so that a
controller that is started again goes on counting.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from karpool.model.annotations import AnnotationError, annotation_path
from karpool.model.labels import FAILED_COMMAND, NODEPOOL
from karpool.model.nodepool import NodeClaim
from karpool.wire.objects import Timestamp, Wire
from karpool.wire.problems import Flaw, one_line

_LONGEST_MESSAGE: Final = 300


class FailureCause(StrEnum):
    """Why a command was given up."""

    NOT_MARKED = "NotMarked"
    REPLACEMENT_REFUSED = "ReplacementRefused"
    REPLACEMENT_GONE = "ReplacementGone"
    POD_ARRIVED = "PodArrived"
    PROTECTED = "Protected"
    TIMED_OUT = "TimedOut"
    STOPPED = "Stopped"
    UNREADABLE = "Unreadable"


HARMLESS: Final = frozenset(
    {FailureCause.POD_ARRIVED, FailureCause.PROTECTED, FailureCause.STOPPED, FailureCause.UNREADABLE}
)
"""Nothing is wrong with what was tried: it may be tried again when the rules allow it."""
OF_ITS_NODES: Final = HARMLESS | {FailureCause.NOT_MARKED}
"""What says nothing about other nodes of the pool."""


class Failure(NamedTuple):
    """Why a command fails now."""

    cause: FailureCause
    message: str

    @property
    def line(self) -> str:
        """The message as it is written down: one line, not too long."""
        return one_line(self.message[:_LONGEST_MESSAGE])


class GivenUp(Wire):
    """A command that was given up though nothing was wrong with it."""

    command: str
    message: str = ""


class FailedCommand(Wire):
    """The last failed command of a node, how often in a row one failed, and how often in its pool for this cause."""

    command: str
    cause: str
    at: Timestamp
    message: str = ""
    tries: int = 1
    pool_tries: int = 1
    other_causes: dict[str, int] = {}
    """How often in a row commands of the pool failed for other causes."""
    given_up: GivenUp | None = None
    """A later command about the node; what failed before it is not forgotten for that."""

    def told_of(self, command: str) -> str | None:
        """What is written down here of a command, if anything."""
        if self.command == command:
            return self.message
        later = self.given_up
        return later.message if later is not None and later.command == command else None

    @property
    def counts(self) -> dict[str, int]:
        """How often in a row commands of the pool failed, by cause."""
        return {**self.other_causes, self.cause: self.pool_tries}

    def written(self) -> str:
        """The value of the annotation."""
        return msgspec.json.encode(self).decode()


def failed_command(claim: NodeClaim) -> FailedCommand | None:
    """The failed command that a claim remembers; raises an AnnotationError if that cannot be read."""
    text = claim.metadata.annotations.get(FAILED_COMMAND)
    return None if text is None else _read(text)


@lru_cache(maxsize=1024)
def _read(text: str) -> FailedCommand:
    try:
        return msgspec.json.decode(text, type=FailedCommand)
    except ValueError as error:
        raise AnnotationError([Flaw(annotation_path(FAILED_COMMAND), "Annotation", str(error)[:200])]) from None


def remembered(claim: NodeClaim, now: datetime, forgotten_after: timedelta) -> FailedCommand | None:
    """The failed command that still counts; one that cannot be read counts nothing here, and is reported elsewhere."""
    try:
        known = failed_command(claim)
    except AnnotationError:
        return None
    return known if known is not None and now - known.at < forgotten_after else None


def after_failure(
    claim: NodeClaim,
    failure: Failure,
    *,
    command: str,
    pool: Iterable[NodeClaim],
    now: datetime,
    forgotten_after: timedelta,
) -> FailedCommand:
    """What a claim is to remember when a command about it has failed; `pool`: the claims of its pool."""
    known = remembered(claim, now, forgotten_after)
    harmless = failure.cause in HARMLESS
    if harmless and known is not None and known.cause not in HARMLESS:
        return msgspec.structs.replace(known, given_up=GivenUp(command=command, message=failure.line))
    tries = 0 if known is None else known.tries
    alike = [entry for other in pool if (entry := remembered(other, now, forgotten_after)) is not None]
    pool_tries = max((entry.counts.get(failure.cause, 0) for entry in alike), default=0)
    others = {} if known is None else known.counts
    return FailedCommand(
        command=command,
        cause=str(failure.cause),
        at=now.replace(microsecond=0),
        message=failure.line,
        tries=tries + (not harmless),
        pool_tries=pool_tries + (not harmless),
        other_causes={cause: count for cause, count in others.items() if count and cause != failure.cause},
    )


def pool_of(claim: NodeClaim) -> str:
    """The name of a claim's pool."""
    return claim.metadata.labels.get(NODEPOOL, "")
