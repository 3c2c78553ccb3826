"""Snapshot files: a Kubernetes List of what decisions read."""

from collections.abc import Collection
from typing import Final

import msgspec

from karpool.live.reading import KEPT
from karpool.live.redaction import redacted
from karpool.live.resources import CONFIG_MAPS, collection_of
from karpool.model.objects import Objects
from karpool.wire.objects import encode_value

_ENCODER: Final = msgspec.json.Encoder(enc_hook=encode_value)


def encode_snapshot(objects: Objects, listed: Collection[str] | None = None) -> bytes:
    """The objects as JSON, one to a line; `-f` reads it back, and decisions are the same.

    `listed`: the kinds that were read, if not all were; of those without objects the file says that there are none.
    """
    kept = redacted(objects)
    lines = []
    maps = (*kept.pauses, *kept.autoscaler_statuses)
    contents = [*((resource, getattr(kept, collection_of(resource))) for resource in KEPT), (CONFIG_MAPS, maps)]
    for resource, found in contents:
        head = f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}",'.encode()
        lines += [head + _ENCODER.encode(obj)[1:] for obj in found]
        if not found and resource is not CONFIG_MAPS and (listed is None or resource.kind in listed):
            lines.append(f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}List","items":[]}}'.encode())
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + b",\n".join(lines) + b"\n]}\n"
