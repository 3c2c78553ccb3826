"""All arrays of the engine behind one argument.

The kernels use over a hundred arrays. Passed one by one they would cost minutes to compile and more time per call than
the call itself, so kernels get a single table of addresses and shapes, and look at an array through its column:
`c.free(m)[node, column]`. `Memory` is the only writer of that table; it checks type and layout, and keeps the arrays
alive as long as their addresses are listed.
"""

from collections.abc import Mapping
from operator import lt
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from karpool.cluster.arrays import Array
from karpool.packing.kernels import inner

_WORDS = 4
_LAYOUT: dict[str, tuple[int, np.dtype[Any], tuple[str, ...]]] = {}


class LayoutError(Exception):
    """An array is smaller than the kernels, which do not look, take it to be."""

    def __init__(self, name: str, axis: str, *, has: int, needs: int) -> None:
        super().__init__(f"{name} has room for {has} {axis}, but there are {needs}")
        self.name, self.axis, self.has, self.needs = name, axis, has, needs


@intrinsic
def _pointer(_context: Any, address: Any) -> Any:
    """An address as a pointer."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.PointerType(ir.IntType(8)))

    return types.voidptr(address), generate


def column(name: str, dtype: type[np.generic], *axes: str) -> Any:
    """Declare an array by what its axes count; the result looks it up in a memory table, inside kernels."""
    number, dimensions = len(_LAYOUT), len(axes)
    _LAYOUT[name] = (number, np.dtype(dtype), axes)
    at = number * _WORDS
    if dimensions == 1:

        def look(m: Array) -> Any:
            return numba.carray(_pointer(m[at]), (m[at + 1],), dtype)

    elif dimensions == 2:  # noqa: PLR2004 - a matrix

        def look(m: Array) -> Any:
            return numba.carray(_pointer(m[at]), (m[at + 1], m[at + 2]), dtype)

    else:

        def look(m: Array) -> Any:
            return numba.carray(_pointer(m[at]), (m[at + 1], m[at + 2], m[at + 3]), dtype)

    look.__name__ = look.__qualname__ = f"look_at_{name}"
    return inner(look)


class Memory:
    """The table of arrays that kernels are given."""

    def __init__(self) -> None:
        self.table = np.zeros(len(_LAYOUT) * _WORDS, dtype=np.int64)
        self.arrays: dict[str, Array] = {}
        self._checked: dict[str, int] = {}

    def put(self, **arrays: Array) -> None:
        """List arrays under their names, replacing those that were listed before."""
        for name, array in arrays.items():
            if self.arrays.get(name) is array:
                continue
            number, dtype, axes = _LAYOUT[name]
            dimensions = len(axes)
            if array.dtype != dtype or array.ndim != dimensions or not array.flags.c_contiguous:
                message = f"{name} must be {dimensions}-dimensional {dtype}, not {array.ndim}-dimensional {array.dtype}"
                raise TypeError(message)
            at = number * _WORDS
            self.table[at] = array.ctypes.data
            self.table[at + 1 : at + 1 + dimensions] = array.shape
            before = self.arrays.get(name)
            if before is None or any(map(lt, array.shape, before.shape)):
                self._checked = {}
            self.arrays[name] = array

    def check(self, sizes: Mapping[str, int]) -> None:
        """Refuse arrays that are smaller than what they should hold; axes without a size are the writer's business."""
        if self._checked and all(size <= self._checked.get(axis, 0) for axis, size in sizes.items()):
            return
        for name, array in self.arrays.items():
            for axis, has in zip(_LAYOUT[name][2], array.shape, strict=True):
                if has < sizes.get(axis, 0):
                    raise LayoutError(name, axis, has=has, needs=sizes[axis])
        self._checked = dict(sizes)

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]
