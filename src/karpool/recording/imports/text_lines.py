"""Lines of text files that may be large: read one by one, packed or not, and never more of them than fit."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from karpool.wire.expansion import ExpansionError, check_expansion
from karpool.wire.problems import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LONGEST_LINE: Final = 16 * 2**20
"""Bytes; no API server writes an object of more than a few MiB."""
_CHUNK: Final = 2**20
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


class Line(NamedTuple):
    file: str
    number: int
    text: bytes
    complete: bool
    """Whether it ended; the last line of a file that is being written may not have."""

    def refuse(self, message: str) -> InputError:
        return InputError.at(self.file, f"line {self.number} {message}")


def lines_of(path: Path) -> Iterator[Line]:
    """The lines of a file that are not empty, without their ends."""
    try:
        with path.open("rb") as file:
            yield from _lines(path, file)
    except FileNotFoundError as error:
        raise InputError.at(str(path), "does not exist") from error
    except EOFError as error:
        raise InputError.at(str(path), "is cut short; copy it again") from error
    except ExpansionError as error:
        raise InputError.at(str(path), str(error)) from error
    except (gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
        raise InputError.at(str(path), f"is damaged ({error}); create it again") from error
    except OSError as error:
        raise InputError.at(str(path), f"cannot be read: {error.strerror or error}") from error


def _lines(path: Path, file: BinaryIO) -> Iterator[Line]:
    number, rest = 0, b""
    for chunk in _chunks(file):
        *whole, rest = (rest + chunk).split(b"\n")
        for text in whole:
            number += 1
            if text.strip():
                yield Line(str(path), number, text, complete=True)
        if len(rest) > LONGEST_LINE:
            raise InputError.at(str(path), f"line {number + 1} has more than {LONGEST_LINE // 2**20} MiB")
    if rest.strip():
        yield Line(str(path), number + 1, rest, complete=False)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    head = file.peek(4)[:4] if hasattr(file, "peek") else b""
    if not head.startswith((_GZIP, _ZSTD)):
        while chunk := file.read(_CHUNK):
            yield chunk
        return
    unpacked = 0
    with gzip.GzipFile(fileobj=file) if head.startswith(_GZIP) else zstd.ZstdFile(file) as packed:
        while chunk := cast("BinaryIO", packed).read(_CHUNK):
            unpacked += len(chunk)
            check_expansion(file.tell(), unpacked)
            yield chunk
