"""Reads YAML as `kubectl` does: one plain value per document.

The values are built from parser events, not by a YAML loader: that is faster, bounds depth and alias expansion, refuses
duplicate keys, and leaves timestamps as text. Scalars follow YAML 1.1, as in Kubernetes' own tools: `yes` is a boolean.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

_BOOLEANS: Final = {
    **{word: True for base in ("yes", "true", "on") for word in (base, base.capitalize(), base.upper())},
    **{word: False for base in ("no", "false", "off") for word in (base, base.capitalize(), base.upper())},
}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_NUMBER_START: Final = frozenset("+-.0123456789")
_DECIMAL: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_BASED: Final = re.compile(r"[-+]?0(b[01_]+|o?[0-7_]+|x[0-9a-fA-F_]+)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LONGEST_NUMBER: Final = 40
_DEEPEST: Final = 200
_MOST_EXPANDED: Final = 64 * 2**20
_LONGEST_LINE: Final = 16 * 2**20
_MERGE: Final = "<<"
_STRING_TAG: Final = "tag:yaml.org,2002:str"
_BINARY_TAG: Final = "tag:yaml.org,2002:binary"


class YamlError(ValueError):
    """Text that is not the YAML of a manifest; says the line and what is wrong."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class YamlDocument(NamedTuple):
    """The value of a document, None for an empty one, and the line where it begins, from 1."""

    value: Any
    line: int


class _Anchored(NamedTuple):
    value: Any
    size: int


class _Open:
    """A mapping or a sequence that is still being read."""

    __slots__ = ("anchor", "items", "key", "mapping", "merged", "start")

    def __init__(self, *, mapping: bool, anchor: str | None, start: int) -> None:
        self.mapping: dict[str, Any] | None = {} if mapping else None
        self.items: list[Any] = []
        self.key: str | None = None
        self.merged: list[Any] = []
        self.anchor = anchor
        self.start = start

    @property
    def wants_key(self) -> bool:
        return self.mapping is not None and self.key is None


def yaml_documents(data: bytes) -> Iterator[Any]:
    """The value of each document, one at a time; None for an empty one."""
    return (document.value for document in placed_yaml_documents(data))


def placed_yaml_documents(data: bytes) -> Iterator[YamlDocument]:
    """Each document with its place, one at a time."""
    _refuse_long_lines(data)
    try:
        loader = yaml.CSafeLoader(data)
        try:
            yield from _Reader(loader).documents()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise YamlError(_explained(error), _line(error)) from error
    except yaml.YAMLError as error:
        raise YamlError(f"is not YAML: {' '.join(str(error).split())[:200]}") from error


class _Reader:
    """Builds values from the events of one YAML stream."""

    def __init__(self, loader: yaml.CSafeLoader) -> None:
        self._loader = loader
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._size = 0
        self._expanded = 0
        self._finished: Any = None
        self._first_line = 0
        self._mark: Any = None

    def documents(self) -> Iterator[YamlDocument]:
        while True:
            event: Any = self._loader.get_event()
            self._mark = event.start_mark
            self._first_line = self._first_line or self._mark.line + 1
            match type(event):
                case yaml.ScalarEvent:
                    self._scalar(event)
                case yaml.MappingStartEvent:
                    self._start(event.anchor, mapping=True)
                case yaml.SequenceStartEvent:
                    self._start(event.anchor, mapping=False)
                case yaml.MappingEndEvent | yaml.SequenceEndEvent:
                    self._end()
                case yaml.AliasEvent:
                    self._alias(event.anchor)
                case yaml.DocumentStartEvent:
                    self._anchors.clear()
                    self._finished = None
                    self._first_line = 0  # `---` and comments before the value do not count
                case yaml.DocumentEndEvent:
                    yield YamlDocument(self._finished, self._first_line)
                case yaml.StreamEndEvent:
                    return

    def _scalar(self, event: Any) -> None:
        self._size += len(event.value) + 1
        holder = self._open[-1] if self._open else None
        if holder is not None and holder.mapping is not None and holder.key is None:
            holder.key = self._key(holder.mapping, event)
            return
        value = self._resolved(event)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, len(event.value) + 1)
        self._add(value)

    def _key(self, mapping: dict[str, Any], event: Any) -> str:
        key: str = event.value
        if key == _MERGE and event.implicit[0]:
            return key
        if self._resolved(event) is None:
            raise self._error("a key is empty or null; give it a name")
        if key in mapping:
            raise self._error(f"the key {key[:60]!r} appears twice in one mapping; keep one")
        return key

    def _resolved(self, event: Any) -> Any:
        if event.tag == _BINARY_TAG:
            raise self._error("binary values have no place in a manifest")
        if event.implicit[0] or (event.tag and event.tag not in (_STRING_TAG, "!")):
            return _plain(event.value)
        return event.value

    def _start(self, anchor: str | None, *, mapping: bool) -> None:
        if len(self._open) >= _DEEPEST:
            raise self._error(f"is nested more than {_DEEPEST} levels deep; no manifest is")
        if self._open and self._open[-1].wants_key:
            raise self._error("a key is a mapping or a list; keys must be plain text")
        self._size += 2
        self._open.append(_Open(mapping=mapping, anchor=anchor, start=self._size))

    def _end(self) -> None:
        closed = self._open.pop()
        value: Any = closed.items if closed.mapping is None else self._merged(closed.mapping, closed.merged)
        if closed.anchor:
            self._anchors[closed.anchor] = _Anchored(value, self._size - closed.start + 2)
        self._add(value)

    def _merged(self, mapping: dict[str, Any], merged: list[Any]) -> dict[str, Any]:
        for other in merged:
            if not isinstance(other, dict):
                raise self._error("<< needs a mapping to merge")
            for key, value in other.items():
                mapping.setdefault(key, value)
        return mapping

    def _alias(self, anchor: str) -> None:
        anchored = self._anchors.get(anchor)
        if anchored is None:
            raise self._error(f"the alias *{anchor[:60]} refers to no anchor before it")
        self._size += anchored.size
        self._expanded += anchored.size
        if self._expanded > _MOST_EXPANDED:
            limit = _MOST_EXPANDED // 2**20
            raise self._error(f"aliases expand to more than {limit} MiB; write values out instead of nesting aliases")
        self._add(anchored.value)

    def _add(self, value: Any) -> None:
        if not self._open:
            self._finished = value
            return
        holder = self._open[-1]
        if holder.mapping is None:
            holder.items.append(value)
        elif holder.key is None:
            raise self._error("a key is an alias; keys must be plain text")
        elif holder.key == _MERGE:
            holder.merged.extend(value if isinstance(value, list) else [value])
        else:
            holder.mapping[holder.key] = value
        holder.key = None

    def _error(self, message: str) -> YamlError:
        line = self._mark.line + 1
        return YamlError(f"line {line}: {message}", line)


def _plain(text: str) -> Any:
    """What an unquoted scalar means."""
    if text in _NULLS:
        return None
    if text[0] in _NUMBER_START:
        return _number(text)
    return _BOOLEANS.get(text, text)


def _number(text: str) -> Any:
    if len(text) > _LONGEST_NUMBER:
        return text
    if _DECIMAL.fullmatch(text):
        return int(text.replace("_", ""))
    if _BASED.fullmatch(text):
        digits = text.replace("_", "").lower()
        return int(digits, 0) if re.match("[-+]?0[box]", digits) else int(digits, 8)
    if _FLOAT.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else text
    return text


def _refuse_long_lines(data: bytes) -> None:
    position, line = 0, 1
    while len(data) - position > _LONGEST_LINE:
        end = data.rfind(b"\n", position, position + _LONGEST_LINE)
        if end < 0:
            line += data.count(b"\n", 0, position)
            limit = _LONGEST_LINE // 2**20
            raise YamlError(f"line {line} is longer than {limit} MiB; this is neither JSON nor YAML", line)
        position = end + 1


def _line(error: yaml.MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else 1


def _explained(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = (error.problem or error.context or "is not YAML").strip()
    hint = _HINTS.get(problem, "")
    return f"{place}{problem}{hint}"


_INDENT: Final = "; check the indentation: keys of one mapping start in one column"
_HINTS: Final = {
    "found character that cannot start any token": "; indent with spaces, not tabs, and quote a leading @ or %",
    "found a tab character that violates indentation": "; indent with spaces, not tabs",
    "mapping values are not allowed in this context": _INDENT,
    "did not find expected key": _INDENT,
    "did not find expected '-' indicator": "; check the indentation: items of one list start in one column",
    "could not find expected ':'": "; write `key: value`",
}
