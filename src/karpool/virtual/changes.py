"""Changes to immutable objects: the same object with one thing different."""

from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.model.scheduling import Taint
from karpool.wire.objects import Condition, Metadata, Object, condition

T = TypeVar("T", bound=Object)


def with_metadata(thing: T, **changes: object) -> T:
    """The object with other metadata."""
    metadata: Metadata = replace(thing.metadata, **changes)
    return replace(thing, metadata=metadata)


def with_label(thing: T, key: str, value: str | None) -> T:
    """The object with a label, or without it."""
    return with_metadata(thing, labels=_with(thing.metadata.labels, key, value))


def with_annotation(thing: T, key: str, value: str | None) -> T:
    """The object with an annotation, or without it."""
    return with_metadata(thing, annotations=_with(thing.metadata.annotations, key, value))


def _with(held: dict[str, str], key: str, value: str | None) -> dict[str, str]:
    rest = {name: text for name, text in held.items() if name != key}
    return rest if value is None else {**rest, key: value}


def set_condition(
    conditions: tuple[Condition, ...], kind: str, status: str, now: datetime, *, reason: str = "", message: str = ""
) -> tuple[Condition, ...]:
    """Conditions with one written; its transition time moves only with its status."""
    held = condition(conditions, kind)
    since = held.last_transition_time if held is not None and held.status == status else now
    written = Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=since)
    if held is None:
        return (*conditions, written)
    return tuple(written if entry.type == kind else entry for entry in conditions)


def pod_fares(pod: Pod, **changes: object) -> Pod:
    """The pod in another state."""
    return replace(pod, status=replace(pod.status, **changes))


def with_claim_condition(
    claim: NodeClaim, kind: str, status: str, now: datetime, *, reason: str = "", message: str = ""
) -> NodeClaim:
    """The claim with a condition written."""
    conditions = set_condition(claim.status.conditions, kind, status, now, reason=reason, message=message)
    return replace(claim, status=replace(claim.status, conditions=conditions))


def with_taints(node: Node, taints: tuple[Taint, ...]) -> Node:
    """The node with other taints."""
    return replace(node, spec=replace(node.spec, taints=taints))


def with_node_condition(node: Node, kind: str, status: str, now: datetime) -> Node:
    """The node with a condition written."""
    conditions = set_condition(node.status.conditions, kind, status, now)
    return replace(node, status=replace(node.status, conditions=conditions))
