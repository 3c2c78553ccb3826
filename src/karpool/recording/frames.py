"""The file of a recording: Zstandard frames one after the other, each with whole lines of JSON.

Every frame stands alone and ends with a checksum. What a crash leaves behind the last whole frame is a torn tail:
readers stop before it, and the next writer cuts it off. `zstd -dc FILE | jq` reads it, too.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from karpool.wire.expansion import ALLOWANCE, ExpansionError, check_expansion
from karpool.wire.problems import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC: Final = b"\x28\xb5\x2f\xfd"
LARGEST_FRAME: Final = ALLOWANCE
"""Bytes of lines in one frame; a writer ends a frame long before."""
_LEVEL: Final = 12
_CHUNK: Final = 2**18
_HEAD: Final = 2**16


def packed(lines: bytes) -> bytes:
    """A frame with these lines."""
    parameter = zstd.CompressionParameter
    return zstd.compress(lines, options={int(parameter.compression_level): _LEVEL, int(parameter.checksum_flag): 1})


def head_of(path: Path) -> bytes:
    """The first unpacked bytes of a file; nothing if it is packed otherwise, or cannot be read."""
    try:
        with path.open("rb") as file:
            packed_head = file.read(_HEAD)
        return zstd.ZstdDecompressor().decompress(packed_head, max_length=_HEAD)
    except (OSError, zstd.ZstdError):
        return b""


class Frames:
    """The whole frames of a file; after reading, `end` is where the last of them ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end = 0
        self.torn = 0
        """How many bytes there are behind the last whole frame."""

    def __iter__(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                yield from self._read(file.fileno())
        except FileNotFoundError as error:
            raise InputError.at(str(self.path), "does not exist") from error
        except OSError as error:
            raise InputError.at(str(self.path), f"cannot be read: {error.strerror or error}") from error

    def _read(self, file: int) -> Iterator[bytes]:
        size, waiting = os.fstat(file).st_size, b""
        while True:
            frame, taken, waiting = self._frame(file, waiting)
            if frame is None:
                break
            self.end += taken
            yield frame
        self.torn = size - self.end

    def _frame(self, file: int, waiting: bytes) -> tuple[bytes | None, int, bytes]:
        """The next frame, its length in the file, and what was read behind it; None at the end or where it is torn."""
        unpacker, parts, taken, length = zstd.ZstdDecompressor(), [], 0, 0
        chunk = waiting
        while not unpacker.eof:
            if unpacker.needs_input or not taken:
                chunk = chunk or os.read(file, _CHUNK)
                if not chunk:
                    return None, 0, b""
                taken += len(chunk)
            try:
                part = unpacker.decompress(chunk, max_length=_CHUNK * 16)
            except zstd.ZstdError:
                self._refuse_damage(file)
                return None, 0, b""
            chunk = b""
            parts.append(part)
            length += len(part)
            self._check_size(taken, length)
        rest = unpacker.unused_data
        return b"".join(parts), taken - len(rest), rest

    def _check_size(self, taken: int, length: int) -> None:
        try:
            check_expansion(taken, length)
        except ExpansionError as error:
            raise InputError.at(str(self.path), str(error)) from error
        if length > LARGEST_FRAME:
            raise InputError.at(
                str(self.path), f"has a frame of more than {LARGEST_FRAME // 2**20} MiB; no recorder does"
            )

    def _refuse_damage(self, file: int) -> None:
        """A broken frame is a torn tail only if no whole frame follows."""
        rest = os.pread(file, LARGEST_FRAME, self.end + 1)
        at = rest.find(MAGIC)
        while at >= 0:
            follower = zstd.ZstdDecompressor()
            try:
                follower.decompress(rest[at:], max_length=LARGEST_FRAME)
            except zstd.ZstdError:
                pass
            else:
                if follower.eof:
                    raise InputError.at(
                        str(self.path), f"is damaged at byte {self.end}, and goes on behind that; copy it again"
                    )
            at = rest.find(MAGIC, at + 1)
