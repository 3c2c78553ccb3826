"""A value without what cannot be read of it, so that the rest can be checked; never used for a decision.

What may be left out is left out. What has to be there, because a field is required or because it has a place in a list,
is replaced by the emptiest value of its type.
"""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Final

import msgspec

from karpool.wire.fields import Path, required_fields, step
from karpool.wire.objects import decode_value

_EMPTIEST: Final[tuple[Any, ...]] = ("", [], {}, 0, False, "0", "0s", "1970-01-01T00:00:00Z")


def mended(kind: Any, value: Any, broken: Iterable[Path]) -> Any:
    """A copy of a value without what is broken at these paths; None if that is all of it, or cannot be done."""
    copy = deepcopy(value)
    for path in broken:
        if not (path and _mend(kind, copy, path)):
            return None
    return copy


def _mend(kind: Any, value: Any, path: Path) -> bool:
    *way, last = path
    for part in way:
        value = _child(value, part)
        kind = step(kind, part)
    inner = step(kind, last)
    if isinstance(value, dict):
        if str(last) not in required_fields(kind):
            value.pop(last, None)
            return True
        value[last] = _emptiest(inner)
        return True
    if isinstance(value, list) and isinstance(last, int) and last < len(value):
        value[last] = _emptiest(inner)
        return True
    return False


def _child(value: Any, part: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


def _emptiest(kind: Any) -> Any:
    """The first value that the type takes: nothing, where a type takes that."""
    if fields := required_fields(kind):
        return {field: _emptiest(step(kind, field)) for field in fields}
    for candidate in _EMPTIEST:
        try:
            msgspec.convert(candidate, kind, dec_hook=decode_value)
        except (ValueError, TypeError):  # msgspec's errors are ValueErrors
            continue
        return deepcopy(candidate)
    return None
