"""Splits a text into documents, JSON or YAML; each is returned as the JSON bytes of one value."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from karpool.wire.yaml_documents import YamlError, yaml_documents

_SPACE: Final = re.compile(rb"(?:[ \t\r\n]|---[ \t\r]*(?:\n|$))*")
# KYAML looks like JSON, but for keys without quotes, commas before closing brackets, and comments.
_UNQUOTED: Final = re.compile(rb"[\[{][\s\[{]*[A-Za-z#]")
_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
_AT_BYTE: Final = re.compile(r"(?:JSON is malformed: )?(.*) \(byte (\d+)\)")
# Larger texts are written by programs, which do not repeat keys; the check would take longer than everything else.
_LARGEST_WITH_KEY_CHECK: Final = 8 * 2**20


class DocumentError(ValueError):
    """Text that cannot be split into documents; names the document and what is wrong."""

    def __init__(self, document: int, message: str) -> None:
        super().__init__(message)
        self.document = document


def documents(data: bytes) -> Iterator[bytes | memoryview]:
    """Each document as JSON, one at a time; empty ones are left out."""
    start = _skip_space(data, 0)
    if start == len(data):
        return
    if data[start : start + 1] not in (b"{", b"[") or _UNQUOTED.match(data, start):
        yield from _from_yaml(data)
    else:
        yield from _json_documents(data, start)


def _from_yaml(data: bytes) -> Iterator[bytes]:
    number = 1
    try:
        for value in yaml_documents(data):
            if value is not None:
                yield msgspec.json.encode(value)
            number += 1
    except YamlError as error:
        raise DocumentError(number, str(error)) from error


def _json_documents(data: bytes, start: int) -> Iterator[bytes | memoryview]:
    view, number = memoryview(data), 1
    while start < len(data):
        end = start + _end_of_value(data, start, number)
        document = data if (start, end) == (0, len(data)) else view[start:end]
        if len(data) <= _LARGEST_WITH_KEY_CHECK:
            _refuse_repeated_keys(document, number)
        yield document
        start = _skip_space(data, end)
        number += 1


def _skip_space(data: bytes, start: int) -> int:
    match = _SPACE.match(data, start)
    return start if match is None else match.end()


def _end_of_value(data: bytes, start: int, number: int) -> int:
    """How many bytes from the start the JSON value takes."""
    try:
        msgspec.json.decode(memoryview(data)[start:], type=msgspec.Raw)
    except RecursionError as error:
        raise DocumentError(number, "is nested too deeply; no manifest is") from error
    except msgspec.DecodeError as error:
        trailing = _TRAILING.search(str(error))
        if trailing is None:
            raise DocumentError(number, _explained(str(error), data, start)) from error
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


def _refuse_repeated_keys(document: bytes | memoryview, number: int) -> None:
    def unique(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise DocumentError(number, f"the key {twice[:60]!r} appears twice in one object; keep one")

    try:
        json.loads(bytes(document), object_pairs_hook=unique, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise DocumentError(number, "is nested too deeply; no manifest is") from error
    except json.JSONDecodeError as error:
        raise DocumentError(number, f"line {error.lineno}: the JSON is malformed: {error.msg}") from error
