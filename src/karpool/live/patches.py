"""Merge patches for actions that change an object in place.

They are computed on plain JSON, because a list is written as a whole, and fields that Karpool does not know must stay.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final

from karpool.execution import actions as a
from karpool.model.scheduling import Taint

Json = dict[str, Any]
MetadataEdit = a.SetLabel | a.Annotate | a.AddFinalizer | a.RemoveFinalizer
TaintEdit = a.AddTaint | a.RemoveTaint
StatusEdit = a.SetClaimCondition | a.ClearClaimCondition | a.SetClaimNode | a.SetPodEventTime
Edit = MetadataEdit | TaintEdit | StatusEdit
EDITS: Final = (
    a.SetLabel,
    a.Annotate,
    a.AddFinalizer,
    a.RemoveFinalizer,
    a.AddTaint,
    a.RemoveTaint,
    a.SetClaimCondition,
    a.ClearClaimCondition,
    a.SetClaimNode,
    a.SetPodEventTime,
)


def target(edit: Edit) -> tuple[a.Kind, str, str]:
    """The kind, the name and the subresource that an edit changes."""
    match edit:
        case a.AddTaint(node=name) | a.RemoveTaint(node=name):
            return "Node", name, ""
        case a.SetLabel() | a.Annotate() | a.AddFinalizer() | a.RemoveFinalizer():
            return edit.kind, edit.name, ""
        case _:
            return "NodeClaim", edit.claim, "status"


def merge_patch(current: Json, edits: Iterable[Edit], now: datetime) -> Json:
    """The merge patch for all edits; empty if nothing changes."""
    patch: Json = {}
    for edit in edits:
        match edit:
            case a.AddTaint() | a.RemoveTaint():
                _edit_list(current, patch, ("spec", "taints"), _taints(edit))
            case a.AddFinalizer() | a.RemoveFinalizer():
                _edit_list(current, patch, ("metadata", "finalizers"), _finalizers(edit))
            case a.SetLabel(key=key, value=value):
                _edit_value(current, patch, ("metadata", "labels", key), value)
            case a.Annotate(key=key, value=value):
                _edit_value(current, patch, ("metadata", "annotations", key), value)
            case a.SetClaimNode(node=node):
                _edit_value(current, patch, ("status", "nodeName"), node)
            case a.SetPodEventTime(time=time):
                _edit_value(current, patch, ("status", "lastPodEventTime"), timestamp(time))
            case a.SetClaimCondition() | a.ClearClaimCondition():
                _edit_list(current, patch, ("status", "conditions"), _conditions(edit, now))
    return patch


def timestamp(moment: datetime) -> str:
    """A time as Kubernetes writes it: in whole seconds."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _value_at(tree: Json, path: tuple[str, ...]) -> Any:
    value: Any = tree
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _put(tree: Json, path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
    tree[path[-1]] = value


def _edit_value(current: Json, patch: Json, path: tuple[str, ...], value: str | None) -> None:
    if _value_at(current, path) != value or _value_at(patch, path) not in (None, value):
        _put(patch, path, value)


def _edit_list(current: Json, patch: Json, path: tuple[str, ...], change: Callable[[list[Any]], list[Any]]) -> None:
    before = _value_at(patch, path)
    if before is None:
        before = _value_at(current, path) or []
    after = change(before)
    if after != before:
        _put(patch, path, after)


def _taints(edit: TaintEdit) -> Callable[[list[Any]], list[Any]]:
    def same(entry: Json) -> bool:
        return (entry.get("key"), entry.get("effect")) == (edit.taint.key, edit.taint.effect)

    def changed(taints: list[Any]) -> list[Any]:
        if isinstance(edit, a.RemoveTaint):
            return [entry for entry in taints if not same(entry)]
        return taints if any(map(same, taints)) else [*taints, _taint(edit.taint)]

    return changed


def _taint(taint: Taint) -> Json:
    fields = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return {name: text for name, text in fields.items() if text}


def _finalizers(edit: a.AddFinalizer | a.RemoveFinalizer) -> Callable[[list[Any]], list[Any]]:
    def changed(finalizers: list[Any]) -> list[Any]:
        if isinstance(edit, a.RemoveFinalizer):
            return [name for name in finalizers if name != edit.finalizer]
        return finalizers if edit.finalizer in finalizers else [*finalizers, edit.finalizer]

    return changed


def _conditions(edit: a.SetClaimCondition | a.ClearClaimCondition, now: datetime) -> Callable[[list[Any]], list[Any]]:
    def changed(conditions: list[Any]) -> list[Any]:
        if isinstance(edit, a.ClearClaimCondition):
            return [entry for entry in conditions if entry.get("type") != edit.type]
        return set_condition(conditions, edit.type, edit.status, edit.reason, edit.message, now)

    return changed


def set_condition(  # noqa: PLR0917
    conditions: list[Any], kind: str, status: str, reason: str, message: str, now: datetime
) -> list[Any]:
    """The conditions with one set; its transition time changes only with its status."""
    current: Json = next((entry for entry in conditions if entry.get("type") == kind), {})
    if (current.get("status"), current.get("reason"), current.get("message")) == (status, reason, message):
        return conditions
    since = current.get("lastTransitionTime") if current.get("status") == status else None
    fields = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since or timestamp(now),
    }
    if not current:
        return [*conditions, fields]
    return [{**entry, **fields} if entry is current else entry for entry in conditions]
