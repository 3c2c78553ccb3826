"""Arrays that grow: columns are made with room to spare, so that an update costs no copy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import ge
from typing import Any, ClassVar, Final, get_type_hints

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def grown(array: Array, shape: tuple[int, ...], fill: int = 0) -> Array:
    """The same array if it is large enough in every direction, else a copy with at least half as much room again."""
    if all(map(ge, array.shape, shape)):
        return array
    size = tuple(
        have if have >= want else max(want, have + have // 2 + 4) for have, want in zip(array.shape, shape, strict=True)
    )
    larger = np.full(size, fill, dtype=array.dtype)
    larger[tuple(slice(0, have) for have in array.shape)] = array
    return larger


@dataclass(frozen=True, slots=True)
class Column:
    """The declaration of an array: its type, what each axis counts, and what a new entry contains."""

    dtype: type[np.generic]
    axes: tuple[str, ...]
    fill: int


def column(dtype: type[np.generic], *axes: str, fill: int = 0) -> Column:
    """Declare a column of a table, in the annotation of its attribute."""
    return Column(dtype, axes, fill)


class ColumnTable:
    """A table whose arrays are allocated and grown as the annotations of its class declare them."""

    declared_columns: ClassVar[Mapping[str, Column]] = {}
    _SMALLEST: Final = {"resources": 4, "keys": 4, "filters": 4, "domains": 8}

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True)
        marks = {name: getattr(hint, "__metadata__", (None,))[0] for name, hint in hints.items()}
        cls.declared_columns = {name: mark for name, mark in marks.items() if isinstance(mark, Column)}

    def __init__(self) -> None:
        self._axis_room: dict[str, int] = {}
        for name, declared in self.declared_columns.items():
            shape = tuple(self._SMALLEST.get(axis, 16) for axis in declared.axes)
            setattr(self, name, np.full(shape, declared.fill, dtype=declared.dtype))
            self._axis_room.update(zip(declared.axes, shape, strict=True))

    def fit(self, **extents: int) -> None:
        """Make every column at least this long on these axes."""
        room = self._axis_room
        for axis, size in extents.items():
            if size > room[axis]:
                room[axis] = max(size, room[axis] + room[axis] // 2 + 4)
                self._lengthen(axis)

    def _lengthen(self, axis: str) -> None:
        for name, declared in self.declared_columns.items():
            if axis in declared.axes:
                shape = tuple(self._axis_room[other] for other in declared.axes)
                setattr(self, name, grown(getattr(self, name), shape, declared.fill))


class Ragged:
    """Rows of whole numbers of any length in one array; a row that changes is written anew at the end."""

    def __init__(self) -> None:
        self.start = np.zeros(16, dtype=np.int32)
        self.length = np.zeros(16, dtype=np.int32)
        self.items = np.zeros(64, dtype=np.int32)
        self.rows = 0
        self.used = 0

    def append(self, values: Sequence[int]) -> int:
        """Add a row and return its index."""
        row = self.rows
        self.rows += 1
        if self.rows > len(self.start):
            self.start = grown(self.start, (self.rows,))
            self.length = grown(self.length, (self.rows,))
        self.put(row, values)
        return row

    def put(self, row: int, values: Sequence[int]) -> None:
        """Replace a row."""
        if values:
            self.items = grown(self.items, (self.used + len(values),))
            self.items[self.used : self.used + len(values)] = values
        self.start[row], self.length[row] = self.used, len(values)
        self.used += len(values)

    def row(self, row: int) -> list[int]:
        """The values of a row."""
        begin = int(self.start[row])
        values: list[int] = self.items[begin : begin + int(self.length[row])].tolist()
        return values
