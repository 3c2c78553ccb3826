"""Copies of immutable objects with one change."""

from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.model.scheduling import Taint
from karpool.wire.objects import Condition, Metadata, Object, condition

T = TypeVar("T", bound=Object)
C = TypeVar("C", Node, NodeClaim, Pod)


def with_metadata(obj: T, **changes: object) -> T:
    metadata: Metadata = replace(obj.metadata, **changes)
    return replace(obj, metadata=metadata)


def with_label(obj: T, key: str, value: str | None) -> T:
    return with_metadata(obj, labels=_with(obj.metadata.labels, key, value))


def with_annotation(obj: T, key: str, value: str | None) -> T:
    return with_metadata(obj, annotations=_with(obj.metadata.annotations, key, value))


def _with(entries: dict[str, str], key: str, value: str | None) -> dict[str, str]:
    rest = {name: text for name, text in entries.items() if name != key}
    return rest if value is None else {**rest, key: value}


def with_status(obj: C, **changes: object) -> C:
    return replace(obj, status=replace(obj.status, **changes))


def with_condition(obj: C, kind: str, status: str, now: datetime, *, reason: str = "", message: str = "") -> C:
    """The object with a condition; its transition time moves only with its status."""
    conditions: tuple[Condition, ...] = obj.status.conditions
    before = condition(conditions, kind)
    since = before.last_transition_time if before is not None and before.status == status else now
    written = Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=since)
    if before is None:
        return with_status(obj, conditions=(*conditions, written))
    return with_status(obj, conditions=tuple(written if entry.type == kind else entry for entry in conditions))


def with_taints(node: Node, taints: tuple[Taint, ...]) -> Node:
    return replace(node, spec=replace(node.spec, taints=taints))
