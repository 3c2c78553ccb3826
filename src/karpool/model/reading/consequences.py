"""Which flaws of an object are mistakes of their own, and which only follow from another one.

Whoever reads a list of what is wrong wants each mistake once: neither one by one, as each is mended, nor with what is
said of a field only because the one beside it cannot be read.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from karpool.wire.fields import Path, written_path
from karpool.wire.problems import Flaw

_OF_SEVERAL_FIELDS: Final = frozenset(
    {"CapacityType", "DuplicateTaint", "MinValuesTooMany", "OneNumberRequired", "ScheduleAndDuration", "ValuesRequired"}
)
"""Rules that compare fields of one mapping, or items of one list: no verdict where one of them cannot be read."""


def independent(flaws: Iterable[Flaw], known: Iterable[Flaw]) -> Iterator[Flaw]:
    """The flaws that do not follow from those that are known already."""
    broken = tuple(flaw.field for flaw in known)
    return (flaw for flaw in flaws if not _follows(flaw, broken))


def _follows(flaw: Flaw, broken: tuple[str, ...]) -> bool:
    if any(within(flaw.field, field) for field in broken):
        return True
    around = _parent(flaw.field)
    return flaw.rule in _OF_SEVERAL_FIELDS and any(within(field, around) for field in broken)


def within(field: str, outer: str) -> bool:
    """Whether a path as text is another, or leads on from there."""
    return field == outer or (field.startswith(outer) and field[len(outer)] in ".[")


def _parent(field: str) -> str:
    return field.rpartition("[")[0] if field.endswith("]") else field.rpartition(".")[0]


def as_written(flaws: Iterable[Flaw], written: Any) -> tuple[Flaw, ...]:
    """The flaws in the order in which the fields are written; what is missing comes after what is around it."""
    places = {written_path(path): number for number, path in enumerate(_paths(written))}

    def place(flaw: Flaw) -> tuple[int, bool]:
        field = flaw.field
        while field and field not in places:
            field = _parent(field)
        return places.get(field, -1), field != flaw.field

    return tuple(sorted(flaws, key=place))


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    pairs: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, inner in pairs:
        yield (*path, key)
        yield from _paths(inner, (*path, key))
