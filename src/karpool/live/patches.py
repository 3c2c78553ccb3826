"""Actions that change an object in place, as merge patches on what the API server has.

They work on plain JSON: fields that Karpool does not know must survive a list that is written as a whole.
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
    """What an edit is about: kind, name, and the subresource that takes it."""
    match edit:
        case a.AddTaint(node=name) | a.RemoveTaint(node=name):
            return "Node", name, ""
        case a.SetLabel() | a.Annotate() | a.AddFinalizer() | a.RemoveFinalizer():
            return edit.kind, edit.name, ""
        case _:
            return "NodeClaim", edit.claim, "status"


def merge_patch(held: Json, edits: Iterable[Edit], now: datetime) -> Json:
    """The merge patch that brings all edits about; empty if the object is like that already."""
    patch: Json = {}
    for edit in edits:
        match edit:
            case a.AddTaint() | a.RemoveTaint():
                _edit_list(held, patch, ("spec", "taints"), _taints(edit))
            case a.AddFinalizer() | a.RemoveFinalizer():
                _edit_list(held, patch, ("metadata", "finalizers"), _finalizers(edit))
            case a.SetLabel(key=key, value=value):
                _edit_value(held, patch, ("metadata", "labels", key), value)
            case a.Annotate(key=key, value=value):
                _edit_value(held, patch, ("metadata", "annotations", key), value)
            case a.SetClaimNode(node=node):
                _edit_value(held, patch, ("status", "nodeName"), node)
            case a.SetPodEventTime(time=time):
                _edit_value(held, patch, ("status", "lastPodEventTime"), timestamp(time))
            case a.SetClaimCondition() | a.ClearClaimCondition():
                _edit_list(held, patch, ("status", "conditions"), _conditions(edit, now))
    return patch


def timestamp(moment: datetime) -> str:
    """A time as Kubernetes writes it: in whole seconds."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _found(tree: Json, path: tuple[str, ...]) -> Any:
    at: Any = tree
    for step in path:
        at = at.get(step) if isinstance(at, dict) else None
    return at


def _put(tree: Json, path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
    tree[path[-1]] = value


def _edit_value(held: Json, patch: Json, path: tuple[str, ...], value: str | None) -> None:
    if _found(held, path) != value or _found(patch, path) not in (None, value):
        _put(patch, path, value)


def _edit_list(held: Json, patch: Json, path: tuple[str, ...], change: Callable[[list[Any]], list[Any]]) -> None:
    before = _found(patch, path)
    if before is None:
        before = _found(held, path) or []
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
    said = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return {name: text for name, text in said.items() if text}


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
    """Conditions with one written; its transition time moves only with its status."""
    held = next((entry for entry in conditions if entry.get("type") == kind), None)
    if held is not None and (held.get("status"), held.get("reason"), held.get("message")) == (status, reason, message):
        return conditions
    unmoved = held if held is not None and held.get("status") == status else {}
    since = unmoved.get("lastTransitionTime") or timestamp(now)
    written = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if held is None:
        return [*conditions, written]
    return [{**entry, **written} if entry is held else entry for entry in conditions]
