"""Reads what `-f` names as UTF-8 bytes: files, directories and standard input, plain or compressed.

Input is not trusted. Reading stops at a size that no cluster reaches, and a compressed file that expands far more than
text does is refused before it fills the memory.
"""

import codecs
import gzip
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from karpool.wire.expansion import ExpansionError, check_expansion
from karpool.wire.problems import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STDIN: Final = "-"
STDIN_NAME: Final = "standard input"
SUFFIXES: Final = (".json", ".yaml", ".yml")
MOST_BYTES: Final = 4 * 2**30
_COMPRESSED_SUFFIXES: Final = tuple(suffix + ending for suffix in SUFFIXES for ending in (".gz", ".zst"))
_CHUNK: Final = 2**20
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class ManifestSource:
    """A file or standard input, and whether it was named itself or found in a directory."""

    name: str
    named: bool = True


def find_sources(arguments: Sequence[str]) -> Iterator[ManifestSource]:
    """The files behind the arguments of `-f`, directories opened up."""
    if arguments.count(STDIN) > 1:
        raise InputError.at(STDIN_NAME, "can be read only once; give -f - a single time")
    for argument in arguments:
        if argument != STDIN and _is_directory(argument):
            yield from _in_directory(argument)
        else:
            yield ManifestSource(argument)


def _is_directory(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:
        return False  # reading it as a file will say what is wrong


def _in_directory(directory: str) -> Iterator[ManifestSource]:
    names = sorted(_manifests(directory))
    if not names:
        endings = ", ".join(SUFFIXES)
        raise InputError.at(directory, f"holds no manifests; files must end in {endings}, or these with .gz or .zst")
    yield from (ManifestSource(name, named=False) for name in names)


def _manifests(directory: str) -> Iterator[str]:
    for folder, folders, files in os.walk(directory, onerror=_cannot_list):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.lower().endswith(SUFFIXES + _COMPRESSED_SUFFIXES):
                yield str(Path(folder, name))


def _cannot_list(error: OSError) -> None:
    raise InputError.at(str(error.filename), f"cannot be listed: {error.strerror}") from error


def read_source(source: ManifestSource, stdin: BinaryIO) -> bytes:
    """The text of a source as UTF-8, decompressed."""
    name = display_name(source)
    try:
        if source.name == STDIN:
            return _text(stdin, name)
        with Path(source.name).open("rb") as file:
            return _text(file, name)
    except FileNotFoundError as error:
        raise InputError.at(name, "does not exist") from error
    except OSError as error:
        raise InputError.at(name, f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError.at(name, f"cannot be read: {error}") from error
    except MemoryError as error:
        raise InputError.at(name, "does not fit into memory; split it into smaller files") from error


def display_name(source: ManifestSource) -> str:
    return STDIN_NAME if source.name == STDIN else source.name


def _text(file: BinaryIO, name: str) -> bytes:
    head = file.read(_CHUNK)
    if head.startswith(_GZIP):
        data = _unpacked(head, file, name, "gzip")
    elif head.startswith(_ZSTD):
        data = _unpacked(head, file, name, "zstd")
    else:
        _refuse_binary(head, name)
        data = _rest(head, file, name)
    return _utf8(data, name)


def _rest(head: bytes, file: BinaryIO, name: str) -> bytes:
    chunks, size = [head], len(head)
    while chunk := file.read(16 * _CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        _refuse_huge(size, name)
    return head if len(chunks) == 1 else b"".join(chunks)


class _Replayed:
    """A file whose first bytes were read already, and how many bytes were taken from it."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head, self._file, self.taken = head, file, 0

    def read(self, size: int = -1) -> bytes:
        if self._head:
            chunk, self._head = (self._head, b"") if size < 0 else (self._head[:size], self._head[size:])
        else:
            chunk = self._file.read(size)
        self.taken += len(chunk)
        return chunk

    def seekable(self) -> bool:
        return False


def _unpacked(head: bytes, file: BinaryIO, name: str, method: str) -> bytes:
    packed = _Replayed(head, file)
    chunks: list[bytes] = []
    size = 0
    stream = cast("BinaryIO", packed)
    try:
        with gzip.GzipFile(fileobj=stream) if method == "gzip" else zstd.ZstdFile(stream) as unpacked:
            while chunk := unpacked.read(_CHUNK):
                if not chunks:
                    _refuse_binary(chunk, name)
                chunks.append(chunk)
                size += len(chunk)
                _refuse_huge(size, name)
                check_expansion(packed.taken, size)
    except ExpansionError as error:
        raise InputError.at(name, f"{error}; if it is meant so, unpack it first") from error
    except EOFError as error:
        raise InputError.at(name, f"the {method} data is cut short; copy or create the file again") from error
    except (gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
        raise InputError.at(name, f"the {method} data is damaged ({error}); create the file again") from error
    return b"".join(chunks)


def _refuse_huge(size: int, name: str) -> None:
    if size > MOST_BYTES:
        raise InputError.at(name, f"is larger than {MOST_BYTES // 2**30} GiB; split it into smaller files")


def _refuse_binary(head: bytes, name: str) -> None:
    if b"\0" in head and not head.startswith(_UTF16):
        raise InputError.at(name, "is a binary file; expected JSON or YAML, plain or packed with gzip or zstd")


def _utf8(data: bytes, name: str) -> bytes:
    """The data without a byte order mark, checked to be UTF-8; UTF-16 (Windows shells write it) becomes UTF-8."""
    if data.startswith(_UTF16):
        try:
            return data.decode("utf-16").encode()
        except UnicodeError as error:
            raise InputError.at(name, "is not valid UTF-16 text; save it as UTF-8") from error
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.isascii():
        _check_utf8(data, name)
    return data


def _check_utf8(data: bytes, name: str) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    for start in range(0, len(data), _CHUNK):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(view[start : start + _CHUNK], final=start + _CHUNK >= len(data))
        except UnicodeDecodeError as error:
            offset = start - pending + error.start
            message = f"is not UTF-8 text (byte {data[offset]:#04x} at offset {offset}); expected JSON or YAML in UTF-8"
            raise InputError.at(name, message) from error
