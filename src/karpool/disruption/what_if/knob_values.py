"""What knobs may be given, in words, for those who have written something else."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.question import KnobError
from karpool.wire.duration import parse_duration
from karpool.wire.objects import decode_value
from karpool.wire.problems import suggestion

_LONGEST = 40


def refusal_of(knobs: Sequence[object], kinds: Mapping[str, type[Knob]]) -> KnobError | None:
    """What is wrong with the first of these that is no knob, in one sentence."""
    for entry in knobs:
        refused = _refusal(entry, kinds)
        if refused is not None:
            return refused
    return None


def _refusal(entry: object, kinds: Mapping[str, type[Knob]]) -> KnobError | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("knob"), str):
        return KnobError("knobs", "each must be an object whose field `knob` says what it is")
    name = entry["knob"]
    kind = kinds.get(name)
    if kind is None:
        return KnobError("knob", f"there is no knob {name[:_LONGEST]!r}{suggestion(name, kinds)}")
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for field in entry:
        if field != "knob" and field not in fields:
            has = ", ".join(fields) or "none"
            return KnobError(name, f"it has no field {field[:_LONGEST]!r}; its fields are {has}")
    for field, about in fields.items():
        if field not in entry:
            if about.required:
                return KnobError(_place(name, field), f"it is missing; {allowed(kind, field)}")
            continue
        try:
            msgspec.convert(entry[field], type=about.type, dec_hook=decode_value)
        except msgspec.ValidationError:
            return KnobError(_place(name, field), not_allowed(kind, field, entry[field]))
    return None


def _place(name: str, field: str) -> str:
    return name if field == "value" else f"{name}.{field}"


def not_allowed(kind: type[Knob], field: str, value: object) -> str:
    """A sentence about a value that has not the type of its field."""
    if _is_duration(_type_of(kind, field)):
        try:
            parse_duration(str(value))
        except ValueError as error:
            return str(error)
    written = repr(value[:_LONGEST]) if isinstance(value, str) else msgspec.json.encode(value).decode()[:_LONGEST]
    return f"{written} is not allowed; {allowed(kind, field)}"


def allowed(kind: type[Knob], field: str) -> str:
    """What to write there instead."""
    match _type_of(kind, field):
        case msgspec.inspect.LiteralType() as expected:
            return f"use one of {', '.join(map(str, expected.values))}"
        case msgspec.inspect.BoolType():
            return "write true or false"
        case msgspec.inspect.IntType() as expected:
            return f"write a whole number from {_number(expected.ge)} to {_number(expected.le)}"
        case msgspec.inspect.FloatType() as expected:
            return f"write a number from {_number(expected.ge)} to {_number(expected.le)}"
        case msgspec.inspect.VarTupleType() as expected:
            return f"name at most {expected.max_length} instance types or patterns such as m5.*"
        case msgspec.inspect.StrType() as expected:
            return f"write at most {expected.max_length} characters" if expected.max_length else "write a text"
        case _:
            return "write a duration such as 5m, or Never"


def _type_of(kind: type[Knob], field: str) -> Any:
    """The type of a field; of one that may be left out, that of its value."""
    about: Any = msgspec.inspect.type_info(kind)
    found = next(one.type for one in about.fields if field in (one.name, one.encode_name))
    if isinstance(found, msgspec.inspect.UnionType):
        return next(one for one in found.types if not isinstance(one, msgspec.inspect.NoneType))
    return found


def _is_duration(expected: object) -> bool:
    return isinstance(expected, msgspec.inspect.CustomType)


def _number(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"
