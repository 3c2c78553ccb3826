"""Arrays that a kernel only borrows: it does not count who uses them.

Every call inside a kernel counts each array of its arguments up and down, with instructions that keep processors in
step. Functions with dozens of arrays spend most of their time on that. The caller in Python keeps its arguments until
the kernel returns, so that nothing has to be counted.
"""

from typing import Any, Protocol, TypeVar, cast

from numba.core import cgutils, types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

_Arrays = TypeVar("_Arrays")


class _Unchanged(Protocol):
    def __call__(self, arrays: _Arrays) -> _Arrays: ...


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    array = make_array(kind)(context, builder, value)  # type: ignore[no-untyped-call]
    null: Any = cgutils.get_null_value
    array.meminfo = null(array.meminfo.type)
    array.parent = null(array.parent.type)
    return array._getvalue()


def _borrow(_typing_context: Any, arrays: Any) -> tuple[Signature, Any]:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        (value,) = arguments
        if isinstance(arrays, types.Array):
            return _without_owner(context, builder, arrays, value)
        for number, kind in enumerate(arrays):
            part = _without_owner(context, builder, kind, builder.extract_value(value, number))
            value = builder.insert_value(value, part, number)
        return value

    return arrays(arrays), generate


borrowed = cast(_Unchanged, intrinsic(cast(Any, _borrow)))
"""The same array, or the same named tuple of arrays, without an owner; for arguments of a `compiled` function."""
