"""Snapshot files: a Kubernetes List of what decisions read, compressed as the file's name says."""

import gzip
import os
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

import msgspec

from karpool.live.reading import KEPT
from karpool.live.redaction import redacted
from karpool.live.resources import CONFIG_MAPS, collection_of
from karpool.model.objects import Objects
from karpool.wire.objects import encode_value
from karpool.wire.problems import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ENDINGS: Final = (".json.zst", ".json.gz", ".json")
_LEVEL: Final = 9
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


def check_writable(file: Path) -> None:
    """Refuse a file that could not be written or read back, before any work is done."""
    if not file.name.endswith(ENDINGS):
        raise InputError.at(str(file), f"must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if not file.parent.is_dir():
        raise InputError.at(str(file), "cannot be written: its directory does not exist")
    if file.is_dir():
        raise InputError.at(str(file), "cannot be written: it is a directory")


def write_snapshot(file: Path, snapshot: bytes) -> int:
    """Write a snapshot, whole or not at all, readable by its owner only; returns the size."""
    packed = _compressed(file, snapshot)
    handle, name = tempfile.mkstemp(prefix=".karpool-", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as temporary:
            temporary.write(packed)
            temporary.flush()
            os.fsync(temporary.fileno())
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return len(packed)


def _compressed(file: Path, data: bytes) -> bytes:
    if file.name.endswith(".zst"):
        return zstd.compress(data, level=_LEVEL)
    return gzip.compress(data, mtime=0) if file.name.endswith(".gz") else data
