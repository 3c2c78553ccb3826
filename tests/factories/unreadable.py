"""Objects with a field that cannot be read, as they come out of the reading of a live cluster."""

from typing import Any, Final, TypeVar

import msgspec

from karpool.kube.resources import Unreadable
from karpool.live.resources import resource_of
from karpool.wire.objects import Object, encode_value

T = TypeVar("T", bound=Object)

SPOILT: Final[dict[str, tuple[str, Any]]] = {
    "Pod": ("spec.containers", "none"),
    "Node": ("status.capacity", "much"),
    "NodeClaim": ("spec.requirements", "none"),
    "NodePool": ("spec.weight", 101),
    "PodDisruptionBudget": ("spec.selector", "all"),
    "DaemonSet": ("spec.template", "none"),
    "PersistentVolumeClaim": ("status", "Bound"),
    "PersistentVolume": ("spec", "large"),
    "StorageClass": ("provisioner", 7),
    "CSINode": ("spec.drivers", "none"),
    "Namespace": ("metadata.finalizers", "none"),
    "VolumeAttachment": ("spec.source", "none"),
}
"""By kind: a field and a value that cannot be read there."""


def unreadable(obj: T, **fields: Any) -> T:
    """What is left of an object with such a field; keywords name others, with `__` for dots: `spec__nodeName=7`."""
    written = msgspec.json.decode(msgspec.json.encode(obj, enc_hook=encode_value))
    kind = type(obj).__name__
    spoilt = {path.replace("__", "."): value for path, value in fields.items()} or dict([SPOILT[kind]])
    for path, value in spoilt.items():
        *above, last = path.split(".")
        place = written
        for part in above:
            place = place.setdefault(part, {})
        place[last] = value
    read = resource_of(type(obj)).read(msgspec.json.encode(written))
    assert isinstance(read, Unreadable), written
    left = read.fallback
    assert isinstance(left, type(obj))
    return left
