"""Splits a text into documents, JSON or YAML; each is returned as the JSON bytes of one value."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from karpool.wire.yaml_documents import YamlError, placed_yaml_documents

_SPACE: Final = re.compile(rb"(?:[ \t\r\n]|---[ \t\r]*(?:\n|$))*")
# KYAML looks like JSON, but for keys without quotes, commas before closing brackets, and comments.
_UNQUOTED: Final = re.compile(rb"[\[{][\s\[{]*[A-Za-z#]")
_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
_AT_BYTE: Final = re.compile(r"(?:JSON is malformed: )?(.*) \(byte (\d+)\)")
# Larger texts are written by programs, which do not repeat keys; the check would take longer than everything else.
_LARGEST_WITH_KEY_CHECK: Final = 8 * 2**20


class DocumentError(ValueError):
    """Text that cannot be split into documents; names the document, the line of the text, and what is wrong."""

    def __init__(self, document: int, message: str, line: int) -> None:
        super().__init__(message)
        self.document = document
        self.line = line


class Document(NamedTuple):
    """One value as JSON, and the line of the text where it begins, from 1."""

    data: bytes | memoryview
    line: int


def documents(data: bytes) -> Iterator[bytes | memoryview]:
    """Each document as JSON, one at a time; empty ones are left out."""
    return (document.data for document in placed_documents(data))


def placed_documents(data: bytes) -> Iterator[Document]:
    """Each document with its place, one at a time; empty ones are left out."""
    start = _skip_space(data, 0)
    if start == len(data):
        return
    if data[start : start + 1] not in (b"{", b"[") or _UNQUOTED.match(data, start):
        yield from _from_yaml(data)
    else:
        yield from _json_documents(data, start)


def _from_yaml(data: bytes) -> Iterator[Document]:
    number = 1
    try:
        for value, line in placed_yaml_documents(data):
            if value is not None:
                yield Document(msgspec.json.encode(value), line)
            number += 1
    except YamlError as error:
        raise DocumentError(number, str(error), error.line) from error


def _json_documents(data: bytes, start: int) -> Iterator[Document]:
    view, number = memoryview(data), 1
    line = 1 + data.count(b"\n", 0, start)
    while start < len(data):
        end = start + _end_of_value(data, start, number, line)
        document = data if (start, end) == (0, len(data)) else view[start:end]
        if len(data) <= _LARGEST_WITH_KEY_CHECK:
            _refuse_repeated_keys(document, number, line)
        yield Document(document, line)
        before, start = start, _skip_space(data, end)
        line += data.count(b"\n", before, start)
        number += 1


def _skip_space(data: bytes, start: int) -> int:
    match = _SPACE.match(data, start)
    return start if match is None else match.end()


def _end_of_value(data: bytes, start: int, number: int, line: int) -> int:
    """How many bytes from the start the JSON value takes."""
    try:
        msgspec.json.decode(memoryview(data)[start:], type=msgspec.Raw)
    except RecursionError as error:
        raise DocumentError(number, "is nested too deeply; no manifest is", line) from error
    except msgspec.DecodeError as error:
        trailing = _TRAILING.search(str(error))
        if trailing is None:
            at = _AT_BYTE.fullmatch(str(error))
            line += data.count(b"\n", start, start + int(at[2])) if at else 0
            raise DocumentError(number, _explained(str(error), data, start), line) from error
        return int(trailing[1]) - 1  # the decoder counts the first byte that is too many
    return len(data) - start


def _explained(message: str, data: bytes, start: int) -> str:
    if "truncated" in message:
        return "the JSON is cut short; copy or create the file again"
    place = _AT_BYTE.fullmatch(message)
    if place is None:
        return f"the JSON is malformed: {message}"
    offset = start + int(place[2])
    line = data.count(b"\n", 0, offset) + 1
    column = offset - data.rfind(b"\n", 0, offset)
    return f"line {line}, column {column}: the JSON is malformed: {place[1]}"


def _refuse_repeated_keys(document: bytes | memoryview, number: int, line: int) -> None:
    def unique(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise DocumentError(number, f"the key {twice[:60]!r} appears twice in one object; keep one", line)

    try:
        json.loads(bytes(document), object_pairs_hook=unique, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise DocumentError(number, "is nested too deeply; no manifest is", line) from error
    except json.JSONDecodeError as error:
        at = line + error.lineno - 1
        raise DocumentError(number, f"line {at}: the JSON is malformed: {error.msg}", at) from error
