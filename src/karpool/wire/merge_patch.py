"""JSON merge patches (RFC 7396): maps are merged, null removes a field, anything else replaces."""

from collections.abc import Mapping
from typing import Any


def merged(value: Any, patch: Any) -> Any:
    """A value with a patch."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            kept.pop(key, None)
        else:
            kept[key] = merged(kept.get(key), change)
    return kept


def patch_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest patch that makes one map of another; neither may hold null."""
    patch: dict[str, Any] = {}
    for key in {**old, **new}:
        was, now = old.get(key), new.get(key)
        if was != now:
            nested = isinstance(was, Mapping) and isinstance(now, Mapping)
            patch[key] = patch_between(old[key], new[key]) if nested else now
    return patch
