"""An order of rows kept as one whole number a row, so that any of them are sorted without reading their keys.

A row that comes gets a number between those of its neighbours. Where there is none left, all rows are numbered anew.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

import numpy as np

from karpool.cluster.arrays import Array, grown

Key = TypeVar("Key", bound=tuple[object, ...])

# Rows that come one after the other at one place, as pods of one owner do, must not halve the gap there each time.
_STEP: Final = 1 << 20
_GAP: Final = 1 << 40


class Ranking(Generic[Key]):
    """Rows in the order of their keys, of which no two are equal."""

    def __init__(self) -> None:
        self.rank = np.zeros(16, dtype=np.int64)
        self._keys: list[Key] = []
        self._rows: list[int] = []

    def fill(self, keys: Iterable[tuple[Key, int]]) -> None:
        """Rank many rows at once; there were none so far."""
        ordered = sorted(keys)
        self._keys, self._rows = [key for key, _ in ordered], [row for _, row in ordered]
        self.rank = grown(self.rank, (len(ordered),))
        self._renumber()

    def add(self, key: Key, row: int) -> None:
        """Give a row its rank."""
        at = bisect_left(self._keys, key)
        low, high = self._around(at)
        self._keys.insert(at, key)
        self._rows.insert(at, row)
        self.rank = grown(self.rank, (row + 1,))
        if high - low > 1:
            self.rank[row] = low + min(_STEP, (high - low) // 2)
        else:
            self._renumber()

    def _around(self, at: int) -> tuple[int, int]:
        """The numbers between which a row that comes to a place may have its own; there is room at both ends."""
        rank, rows = self.rank, self._rows
        if not rows:
            return 0, 2 * _STEP
        low = int(rank[rows[at - 1]]) if at else int(rank[rows[0]]) - 2 * _STEP
        high = int(rank[rows[at]]) if at < len(rows) else low + 2 * _STEP
        return low, high

    def drop(self, key: Key) -> None:
        """Take a row's rank away."""
        at = bisect_left(self._keys, key)
        del self._keys[at], self._rows[at]

    def _renumber(self) -> None:
        self.rank[self._rows] = np.arange(len(self._rows)) * _GAP

    def order(self, rows: Array) -> Array:
        """The places of rows that put them in order."""
        places: Array = self.rank[rows].argsort(kind="stable")
        return places
