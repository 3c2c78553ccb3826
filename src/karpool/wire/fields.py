"""Explains decoding errors: which field of an object is wrong, and which value would be right."""

import re
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from karpool.wire.objects import decode_value
from karpool.wire.problems import Flaw, suggestion

_AT: Final = re.compile(r"(?P<what>.*) - at `(?P<path>\$.*)`", re.DOTALL)
_PART: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_EXPECTED: Final = re.compile(r"Expected `(.+?)`, got `(.+?)`")
_MISSING: Final = re.compile(r"Object missing required field `(.+?)`")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_MESSAGE: Final = 300
_MISSING_HERE: Final = "is missing; it is required here"
_WORDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "null",
    "datetime": "a time",
}
_TIME: Final = "expected a time with its zone, such as 2026-01-31T12:00:00Z"

Path = tuple[str | int, ...]


def written_path(path: Path) -> str:
    """A path as text: `spec.containers[0].resources.requests.cpu`."""
    text = ""
    for part in path:
        if isinstance(part, str) and _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part}]"
    return text


class Broken(NamedTuple):
    """A place in a value that cannot be read, or that is missing, and why."""

    path: Path
    flaw: Flaw


def explain(error: Exception, kind: Any, value: Any) -> Flaw:
    """A decoder's error about `value` as a field and a sentence."""
    return _located(error, kind, value).flaw


def _located(error: Exception, kind: Any, value: Any, at: Path = ()) -> Broken:
    text = str(error)
    place = _AT.fullmatch(text)
    what = place["what"] if place else text
    inner, expected = _resolve(place["path"] if place else "$", kind, value)
    path = (*at, *inner)
    missing = _MISSING.fullmatch(what)
    if missing:
        return _missing((*path, missing[1]))
    return Broken(path, Flaw(written_path(path), "InvalidValue", _sentence(what, expected)[:_LONGEST_MESSAGE]))


def _missing(path: Path) -> Broken:
    return Broken(path, Flaw(written_path(path), "MissingField", _MISSING_HERE))


def every_flaw(kind: Any, value: Any, path: Path = ()) -> Iterator[Broken]:
    """Each value inside of a value that cannot be read, in the order in which they are written; at least one."""
    if kind is object:
        return  # nothing is known of it, so that anything will do
    try:
        msgspec.convert(value, kind, dec_hook=decode_value)
    except (ValueError, TypeError) as error:  # msgspec's errors are ValueErrors
        inner = _inner_flaws(kind, value, path)
        first = next(inner, None)
        if first is None:
            yield _located(error, kind, value, path)
        else:
            yield first
            yield from inner


def _inner_flaws(kind: Any, value: Any, path: Path) -> Iterator[Broken]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from every_flaw(step(kind, index), item, (*path, index))
    if not isinstance(value, dict):
        return
    for key, entry in value.items():
        yield from every_flaw(step(kind, key), entry, (*path, key))
    for struct in _members(kind):
        for field in _required(struct):
            if field not in value:
                yield _missing((*path, field))


def _sentence(what: str, expected: Any) -> str:
    options = _options(expected)
    if what.startswith("Invalid enum value") and options:
        return f"{what.removeprefix('Invalid enum value ')[:60]} is not allowed; use one of {', '.join(options)}"
    if "datetime" in what:
        return _TIME
    types_named = _EXPECTED.fullmatch(what)
    if types_named is None:
        return what
    words = " or ".join(_WORDS.get(name, name) for name in types_named[1].split(" | ") if name != "null")
    hint = "; put the value in quotes" if words == "text" and types_named[2] in ("int", "float", "bool") else ""
    return f"expected {words}, got {_WORDS.get(types_named[2], types_named[2])}{hint}"


def _resolve(path: str, kind: Any, value: Any) -> tuple[Path, Any]:
    """The path with every `[...]` replaced by the key it stands for, and the type expected at its end."""
    parts: list[str | int] = []
    for match in _PART.finditer(path):
        part: str | int = match[1] or match[2]
        if match[2]:
            part = _culprit(kind, value) if match[2] == "..." else int(match[2])
        parts.append(part)
        kind = step(kind, part)
        value = _child(value, part)
    return tuple(parts), kind


def _culprit(kind: Any, value: Any) -> str:
    if isinstance(value, dict):
        inner = step(kind, "")
        for key, entry in value.items():
            try:
                msgspec.convert(entry, inner, dec_hook=decode_value)
            except (msgspec.ValidationError, ValueError, TypeError):
                return str(key)
    return "…"


def _child(value: Any, part: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


def step(kind: Any, part: str | int) -> Any:
    """The type of one field, key or item of a type; `object` where nothing is known."""
    for member in _members(kind):
        fields = _fields(member)
        if fields is not None and part in fields:
            return fields[str(part)]
        if get_origin(member) is tuple:
            return get_args(member)[0]
        if get_origin(member) is dict:
            return get_args(member)[1]
    return object


@lru_cache(maxsize=1024)
def _members(kind: Any) -> tuple[Any, ...]:
    """The types of a union, or the type itself; without annotations."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _members(get_args(kind)[0])
    if origin is Union or origin is types.UnionType:
        return tuple(inner for member in get_args(kind) for inner in _members(member))
    return (kind,)


@lru_cache(maxsize=1024)
def _fields(kind: Any) -> dict[str, Any] | None:
    """The fields of a struct by their names on the wire, with their types."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return None
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


def _required(kind: Any) -> tuple[str, ...]:
    """The fields, as on the wire, that a struct cannot do without."""
    if _fields(kind) is None:
        return ()
    return tuple(field.encode_name for field in msgspec.structs.fields(kind) if field.required)


def required_fields(kind: Any) -> tuple[str, ...]:
    """The fields that a value of this type, a struct or a union with one, cannot do without."""
    return tuple(field for member in _members(kind) for field in _required(member))


def _options(kind: Any) -> tuple[str, ...]:
    return tuple(
        str(option)
        for member in _members(kind)
        if get_origin(member) is Literal
        for option in get_args(member)
        if option
    )


def unknown_fields(kind: Any, value: Any, path: Path = ()) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Fields of a value that its type does not have, each with the fields that it does have there."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_fields(step(kind, index), item, (*path, index))
    if not isinstance(value, dict):
        return
    known = next((fields for member in _members(kind) if (fields := _fields(member)) is not None), None)
    for key, entry in value.items():
        if known is not None and key not in known:
            yield (*path, key), tuple(known)
        else:
            yield from unknown_fields(step(kind, key), entry, (*path, key))


def unknown_field(path: Path, known: tuple[str, ...]) -> Flaw:
    hint = suggestion(str(path[-1]), known) or f"; there are {', '.join(known)}"
    return Flaw(written_path(path), "UnknownField", f"is not a known field{hint}")


def without_nulls(value: Any) -> Any:
    """The value without keys whose value is null: to Kubernetes these are absent."""
    if isinstance(value, dict):
        return {key: without_nulls(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
