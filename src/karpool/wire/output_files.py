"""Files that are written whole or not at all, packed as their name says."""

import gzip
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from karpool.wire.problems import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ENDINGS: Final = (".json.zst", ".json.gz", ".json")
_LEVEL: Final = 9


def check_writable(file: Path) -> None:
    """Refuse a file that could not be written or read back, before any work is done."""
    if not file.name.endswith(ENDINGS):
        raise InputError.at(str(file), f"must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if not file.parent.is_dir():
        raise InputError.at(str(file), "cannot be written: its directory does not exist")
    if file.is_dir():
        raise InputError.at(str(file), "cannot be written: it is a directory")


def write_whole(file: Path, data: bytes) -> int:
    """Write a file, whole or not at all, readable by its owner only; returns the size."""
    packed = _compressed(file, data)
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
