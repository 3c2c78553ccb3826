"""Merge patches for actions that change an object in place.

They are computed on plain JSON, because a list is written as a whole, and fields that Karpool does not know must stay.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from karpool.disruption.brakes.short_ledgers import with_entry
from karpool.execution import actions as a
from karpool.model.labels import DISRUPTIONS
from karpool.model.nodepool import NODEPOOL_API

Json = dict[str, Any]


def target(edit: a.Edit) -> tuple[a.Kind, str, str]:
    """The kind, the name and the subresource that an edit changes."""
    match edit:
        case a.AddTaint(node=name) | a.RemoveTaint(node=name) | a.SetNodeOwner(node=name):
            return "Node", name, ""
        case a.SetLabel() | a.Annotate() | a.AddFinalizer() | a.RemoveFinalizer():
            return edit.kind, edit.name, ""
        case a.NoteDisruption():
            return "NodePool", edit.pool, ""
        case _:
            return "NodeClaim", edit.claim, "status"


def merge_patch(current: Json, edits: Iterable[a.Edit], now: datetime) -> Json:
    """The merge patch for all edits; empty if nothing changes."""
    patch: Json = {}
    for edit in edits:
        path = _path(edit)
        before = _value_at(patch, path, _value_at(current, path))
        after = _edited(edit, before, now)
        if after != ([] if before is None and isinstance(after, list) else before):
            _put(patch, path, after)
    return patch


def timestamp(moment: datetime) -> str:
    """A time as Kubernetes writes it: in whole seconds."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _path(edit: a.Edit) -> tuple[str, ...]:
    match edit:
        case a.SetLabel():
            return "metadata", "labels", edit.key
        case a.Annotate():
            return "metadata", "annotations", edit.key
        case a.NoteDisruption():
            return "metadata", "annotations", DISRUPTIONS
        case a.AddFinalizer() | a.RemoveFinalizer():
            return "metadata", "finalizers"
        case a.SetNodeOwner():
            return "metadata", "ownerReferences"
        case a.AddTaint() | a.RemoveTaint():
            return "spec", "taints"
        case a.SetClaimNode():
            return "status", "nodeName"
        case a.SetPodEventTime():
            return "status", "lastPodEventTime"
        case _:
            return "status", "conditions"


def _edited(edit: a.Edit, before: Any, now: datetime) -> list[Any] | str | None:
    match edit:
        case a.SetLabel() | a.Annotate():
            return edit.value
        case a.NoteDisruption():
            return with_entry(before, edit.command, edit.entry, now)
        case a.SetClaimNode():
            return edit.node
        case a.SetPodEventTime():
            return timestamp(edit.time)
        case a.AddTaint() | a.RemoveTaint():
            return _taints(edit, before or [])
        case a.AddFinalizer() | a.RemoveFinalizer():
            return _finalizers(edit, before or [])
        case a.SetNodeOwner():
            return _owners(edit, before or [])
        case a.SetClaimCondition():
            return set_condition(before or [], edit.type, edit.status, edit.reason, edit.message, now)
        case a.ClearClaimCondition():
            return [entry for entry in before or [] if entry.get("type") != edit.type]


def _value_at(tree: Json, path: tuple[str, ...], default: Any = None) -> Any:
    value: Any = tree
    for step in path:
        if not isinstance(value, dict) or step not in value:
            return default
        value = value[step]
    return value


def _put(tree: Json, path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
    tree[path[-1]] = value


def _taints(edit: a.TaintEdit, taints: list[Any]) -> list[Any]:
    identity = (edit.taint.key, edit.taint.effect)
    others = [entry for entry in taints if (entry.get("key"), entry.get("effect")) != identity]
    if isinstance(edit, a.RemoveTaint):
        return others
    return taints if len(others) < len(taints) else [*taints, msgspec.to_builtins(edit.taint)]


def _finalizers(edit: a.FinalizerEdit, finalizers: list[Any]) -> list[Any]:
    others = [name for name in finalizers if name != edit.finalizer]
    if isinstance(edit, a.RemoveFinalizer):
        return others
    return finalizers if len(others) < len(finalizers) else [*finalizers, edit.finalizer]


def _owners(edit: a.SetNodeOwner, owners: list[Any]) -> list[Any]:
    if any(entry.get("uid") == edit.uid for entry in owners):
        return owners
    owner = {"apiVersion": NODEPOOL_API, "kind": "NodeClaim", "name": edit.claim, "uid": edit.uid}
    return [*owners, {**owner, "blockOwnerDeletion": True}]


def set_condition(  # noqa: PLR0917
    conditions: list[Any], kind: str, status: str, reason: str, message: str, now: datetime
) -> list[Any]:
    """The conditions with one set; its transition time changes only with its status."""
    current: Json = next((entry for entry in conditions if entry.get("type") == kind), {})
    fields = {"type": kind, "status": status, "reason": reason, "message": message}
    if fields.items() <= current.items():
        return conditions
    since = current.get("lastTransitionTime") if current.get("status") == status else None
    fields["lastTransitionTime"] = since or timestamp(now)
    if not current:
        return [*conditions, fields]
    return [{**entry, **fields} if entry is current else entry for entry in conditions]
