"""All arrays of the engine behind one argument.

The kernels use over a hundred arrays. As arguments they would take minutes to compile, and each call would take longer
than the kernel. So kernels get a single table of addresses and shapes, and look at an array through its column:
`c.free(m)[node, column]`. Only `Memory` writes that table; it checks type and layout, and keeps arrays alive while
their addresses are listed.
"""

from collections.abc import Mapping
from functools import partial
from operator import lt
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from karpool.cluster.arrays import Array, Ragged, grown
from karpool.packing.kernels import inner

_WORDS: Final = 4


class LayoutError(Exception):
    """An array is smaller than the kernels, which do not check bounds, take it to be."""

    def __init__(self, name: str, axis: str, *, has: int, needs: int) -> None:
        super().__init__(f"{name} has room for {has} {axis}, but there are {needs}")


@intrinsic
def _pointer(_context: Any, address: Any) -> Any:
    """An address as a pointer."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.PointerType(ir.IntType(8)))

    return types.voidptr(address), generate


class KernelColumn(NamedTuple):
    """A declared array: its place in the table, its type, what its axes count, and what a new entry contains."""

    number: int
    dtype: np.dtype[Any]
    axes: tuple[str, ...]
    fill: int
    family: str

    def fitted(self, sizes: Mapping[str, int], array: Array | None = None) -> Array:
        """A new array of these sizes, or one that has grown to them."""
        shape = tuple(max(1, sizes[axis]) for axis in self.axes)
        return np.full(shape, self.fill, dtype=self.dtype) if array is None else grown(array, shape, self.fill)


COLUMNS: Final[dict[str, KernelColumn]] = {}


def family(name: str) -> dict[str, KernelColumn]:
    """The columns that were declared as one family, by name."""
    return {key: column for key, column in COLUMNS.items() if column.family == name}


def column(name: str, dtype: type[np.generic], *axes: str, fill: int = 0, family: str = "given") -> Any:
    """Declare an array; the result looks it up in a memory table, inside kernels."""
    number, dimensions = len(COLUMNS), len(axes)
    COLUMNS[name] = KernelColumn(number, np.dtype(dtype), axes, fill, family)
    at = number * _WORDS
    if dimensions == 1:

        def view(m: Array) -> Any:
            return numba.carray(_pointer(m[at]), (m[at + 1],), dtype)

    elif dimensions == 2:  # noqa: PLR2004 - a matrix

        def view(m: Array) -> Any:
            return numba.carray(_pointer(m[at]), (m[at + 1], m[at + 2]), dtype)

    else:

        def view(m: Array) -> Any:
            return numba.carray(_pointer(m[at]), (m[at + 1], m[at + 2], m[at + 3]), dtype)

    view.__name__ = view.__qualname__ = f"column_{name}"
    return inner(view)


def ragged(name: str, rows: str) -> tuple[Any, Any, Any]:
    """Declare rows of whole numbers of any length: where each begins, how long it is, and the numbers."""
    return (
        column(f"{name}_start", np.int32, rows),
        column(f"{name}_length", np.int32, rows),
        column(name, np.int32, "items"),
    )


def ragged_arrays(**rows: Ragged) -> dict[str, Array]:
    """The arrays of ragged columns, by name."""
    arrays: dict[str, Array] = {}
    for name, row in rows.items():
        arrays |= {f"{name}_start": row.start, f"{name}_length": row.length, name: row.items}
    return arrays


growing = partial(column, family="growing")
"""Declare a table that grows while kernels run."""

scratch = partial(column, family="scratch")
"""Declare an array that only runs write to."""


class Memory:
    """The table of arrays that kernels are given."""

    def __init__(self) -> None:
        self.table = np.zeros(len(COLUMNS) * _WORDS, dtype=np.int64)
        self.arrays: dict[str, Array] = {}
        self._checked: dict[str, int] = {}

    def put(self, **arrays: Array) -> None:
        """List arrays under their names, replacing those that were listed before."""
        for name, array in arrays.items():
            if self.arrays.get(name) is array:
                continue
            column = COLUMNS[name]
            dtype, dimensions = column.dtype, len(column.axes)
            if array.dtype != dtype or array.ndim != dimensions or not array.flags.c_contiguous:
                message = f"{name} must be {dimensions}-dimensional {dtype}, not {array.ndim}-dimensional {array.dtype}"
                raise TypeError(message)
            at = column.number * _WORDS
            self.table[at] = array.ctypes.data
            self.table[at + 1 : at + 1 + dimensions] = array.shape
            before = self.arrays.get(name)
            if before is None or any(map(lt, array.shape, before.shape)):
                self._checked = {}
            self.arrays[name] = array

    def check(self, sizes: Mapping[str, int]) -> None:
        """Refuse arrays that are smaller than what they should hold; axes without a size are not checked."""
        if self._checked and all(size <= self._checked.get(axis, 0) for axis, size in sizes.items()):
            return
        for name, array in self.arrays.items():
            for axis, has in zip(COLUMNS[name].axes, array.shape, strict=True):
                if has < sizes.get(axis, 0):
                    raise LayoutError(name, axis, has=has, needs=sizes[axis])
        self._checked = dict(sizes)

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]
