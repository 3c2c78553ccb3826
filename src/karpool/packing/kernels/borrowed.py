"""Arrays that a kernel only borrows: it does not count who uses them.

Every call inside a kernel counts each array of its arguments up and down, with instructions that keep processors in
step. Functions with dozens of arrays spend most of their time on that. The caller in Python keeps its arguments until
the kernel returns, so that nothing has to be counted.
"""

from typing import Any

from numba.core import cgutils, types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


@intrinsic  # type: ignore[untyped-decorator]
def borrowed(_typing_context: Any, arrays: Any) -> tuple[Signature, Any]:
    """The same array, or the same named tuple of arrays, without an owner; for arguments of a `compiled` function."""

    def of_array(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        array = make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        (value,) = arguments
        if isinstance(arrays, types.Array):
            return of_array(context, builder, arrays, value)
        for number, kind in enumerate(arrays):
            part = of_array(context, builder, kind, builder.extract_value(value, number))
            value = builder.insert_value(value, part, number)
        return value

    return arrays(arrays), generate
