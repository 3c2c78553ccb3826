"""Stand-ins for objects that cannot be read: what is certain about them, and the mark that the rest is not known.

An object that is left out counts as if it did not exist, and much would be decided on that. A stand-in keeps its
place: it has the metadata and the few fields that say which nodes it bears on, each only if it can be read by itself.
Decisions keep away from those nodes.
"""

from typing import Any, Final

import msgspec

from karpool.model.reading.kinds import Kind
from karpool.model.reasons import Reason
from karpool.wire.objects import Object

UNREADABLE: Final = "Unreadable"
"""The code of the reason, the same for nodes that stay and for what waits."""
UNKNOWN: Final = "?"
"""Stands for a name that cannot be read; no object of Kubernetes can be called that."""

_METADATA: Final = (
    "uid",
    "resourceVersion",
    "labels",
    "annotations",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "ownerReferences",
)
_PLACES: Final = {
    "Pod": ("spec", "nodeName"),
    "VolumeAttachment": ("spec", "nodeName"),
}
"""Where a kind names the node that it is on."""
_KEPT: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "Pod": (("status", "phase"),),
    "Node": (("spec", "providerID"), ("spec", "taints"), ("status", "conditions")),
    "NodeClaim": (("status", "nodeName"), ("status", "providerID"), ("status", "conditions")),
    "PersistentVolumeClaim": (("spec", "volumeName"), ("spec", "storageClassName")),
    "VolumeAttachment": (("spec", "source"),),
}


def stand_in(kind: Kind, raw: bytes, problem: str) -> Object:
    """An object of a kind with what can be read of it, marked with the problem."""
    written = _written(raw)
    kept: dict[str, Any] = {"metadata": {}}
    names = ("namespace", "name") if kind.namespaced else ("name",)
    for field in names:
        _keep_name(kept, written, kind, ("metadata", field), required=True)
    if kind.name in _PLACES:
        _keep_name(kept, written, kind, _PLACES[kind.name], required=False)
    for path in (*(("metadata", field) for field in _METADATA), *_KEPT.get(kind.name, ())):
        value = _at(written, path)
        if value is not None and _reads(kind, path, value):
            kept.setdefault(path[0], {})[path[1]] = value
    kept["metadata"]["unreadable"] = problem or "it is not an object"
    obj: Object = kind.decoder.decode(msgspec.json.encode(kept))
    return obj


def unreadable_reason(kind: str, obj: Object) -> Reason:
    """Why nothing is decided that depends on an object."""
    return Reason(UNREADABLE, f"cannot be read: {obj.unreadable}", f"{kind} {obj.key}")


def unidentified(obj: Object) -> bool:
    """Whether not even the name of an object is known, so that it may be any."""
    return UNKNOWN in (obj.metadata.name, obj.metadata.namespace)


def _written(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _at(written: Any, path: tuple[str, str]) -> Any:
    part = written.get(path[0]) if isinstance(written, dict) else None
    return part.get(path[1]) if isinstance(part, dict) else None


def _keep_name(kept: dict[str, Any], written: Any, kind: Kind, path: tuple[str, str], *, required: bool) -> None:
    """Keep a name; one that is there and cannot be read, or that has to be there and is not, becomes UNKNOWN."""
    section, value = written.get(path[0]) if isinstance(written, dict) else written, _at(written, path)
    readable = isinstance(written, dict) and (section is None or isinstance(section, dict))
    absent = readable and value is None
    if absent and not required:
        return
    known = readable and isinstance(value, str) and (bool(value) or not required) and _reads(kind, path, value)
    kept.setdefault(path[0], {})[path[1]] = value if known else UNKNOWN


def _reads(kind: Kind, path: tuple[str, str], value: Any) -> bool:
    try:
        kind.decoder.decode(msgspec.json.encode({path[0]: {path[1]: value}}))
    except (msgspec.ValidationError, UnicodeEncodeError):
        return False
    return True
