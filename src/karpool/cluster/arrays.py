"""Arrays that grow: columns are made with room to spare, so that an update costs no copy."""

from collections.abc import Sequence
from operator import ge
from typing import Any

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
        found: list[int] = self.items[begin : begin + int(self.length[row])].tolist()
        return found
