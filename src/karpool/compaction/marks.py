"""The compactor's state of a node, in an annotation of that node.

The annotation is that of estafette-k8s-node-compactor, so that marks and scale-downs survive a change to Karpool.
Fields that only Karpool has are left out while they are empty.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

ANNOTATION: Final = "estafette.io/node-compactor-state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A node's state; `updated` is when it last changed: for a scale-down in progress, when that started."""

    marked: bool = False
    marked_at: datetime | None = None
    in_progress: bool = False
    updated: datetime | None = None
    drained_at: datetime | None = None
    """When the last pod was gone; None while some are there."""
    retry_after: datetime | None = None
    """Until when the node is left alone, because its scale-down was given up."""


def decode_mark(annotations: dict[str, str]) -> Mark:
    """A node's state; what cannot be read counts as absent."""
    try:
        fields = msgspec.json.decode(annotations.get(ANNOTATION, "{}"))
    except msgspec.DecodeError:
        return Mark()
    if not isinstance(fields, dict):
        return Mark()
    return Mark(
        marked=_flag(fields.get("markedForRemoval")),
        marked_at=_time(fields.get("markedAt")),
        in_progress=_flag(fields.get("scaleDownInProgress")),
        updated=_time(fields.get("lastUpdated")),
        drained_at=_time(fields.get("drainedAt")),
        retry_after=_time(fields.get("retryAfter")),
    )


def encode_mark(mark: Mark) -> str:
    """The annotation's value; a time that does not apply is an empty string, as in the original."""
    fields: dict[str, object] = {
        "markedForRemoval": mark.marked,
        "markedAt": _text(mark.marked_at),
        "scaleDownInProgress": mark.in_progress,
        "lastUpdated": _text(mark.updated),
    }
    own = {"drainedAt": mark.drained_at, "retryAfter": mark.retry_after}
    fields |= {name: _text(moment) for name, moment in own.items() if moment is not None}
    return msgspec.json.encode(fields).decode()


def updated_mark(mark: Mark, now: datetime, *, underutilized: bool) -> Mark:
    """The state that a node should have: marked while it is under-used, since that was first seen."""
    if mark.in_progress:
        return mark
    if underutilized and (not mark.marked or mark.marked_at is None):
        return replace(mark, marked=True, marked_at=now, updated=now)
    if mark.marked and not underutilized:
        return replace(mark, marked=False, marked_at=None, updated=now)
    return mark


def _flag(value: Any) -> bool:
    return value is True or value == "true"


def _time(value: Any) -> datetime | None:
    """A time in RFC 3339; None for anything else, such as an empty string."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo is not None else None


def _text(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
