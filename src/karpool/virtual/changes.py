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


def with_metadata(obj: T, **changes: object) -> T:
    metadata: Metadata = replace(obj.metadata, **changes)
    return replace(obj, metadata=metadata)


def with_label(obj: T, key: str, value: str | None) -> T:
    """The object with a label, or without it."""
    return with_metadata(obj, labels=_with(obj.metadata.labels, key, value))


def with_annotation(obj: T, key: str, value: str | None) -> T:
    """The object with an annotation, or without it."""
    return with_metadata(obj, annotations=_with(obj.metadata.annotations, key, value))


def _with(entries: dict[str, str], key: str, value: str | None) -> dict[str, str]:
    rest = {name: text for name, text in entries.items() if name != key}
    return rest if value is None else {**rest, key: value}


def set_condition(
    conditions: tuple[Condition, ...], kind: str, status: str, now: datetime, *, reason: str = "", message: str = ""
) -> tuple[Condition, ...]:
    """Conditions with one written; its transition time moves only with its status."""
    before = condition(conditions, kind)
    since = before.last_transition_time if before is not None and before.status == status else now
    written = Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=since)
    if before is None:
        return (*conditions, written)
    return tuple(written if entry.type == kind else entry for entry in conditions)


def with_pod_status(pod: Pod, **changes: object) -> Pod:
    return replace(pod, status=replace(pod.status, **changes))


def with_claim_condition(
    claim: NodeClaim, kind: str, status: str, now: datetime, *, reason: str = "", message: str = ""
) -> NodeClaim:
    conditions = set_condition(claim.status.conditions, kind, status, now, reason=reason, message=message)
    return replace(claim, status=replace(claim.status, conditions=conditions))


def with_taints(node: Node, taints: tuple[Taint, ...]) -> Node:
    return replace(node, spec=replace(node.spec, taints=taints))


def with_node_condition(node: Node, kind: str, status: str, now: datetime) -> Node:
    conditions = set_condition(node.status.conditions, kind, status, now)
    return replace(node, status=replace(node.status, conditions=conditions))
