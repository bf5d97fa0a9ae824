"""Kernels that call others where these stand in memory, instead of holding a copy of their code.

A kernel holds all that it calls (`inner_kernels`). That makes the quickest rounds; but a loop over rounds then holds
choosing and learning once more for every combination of their parts, and takes longer to compile than anything else.
Where a round takes long anyway, the loop is given the places of the two instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils, types

_places: dict[Any, int] = {}
_if_unlikely: Any = cgutils.if_unlikely


def place_of(kernel: Any, *arguments: Any) -> int:
    """Where a kernel's code for arguments such as these stands; it is compiled, or loaded, if it is not there yet."""
    key = kernel, _kind(arguments)
    if key not in _places:
        outer = kernel.for_python
        signature = tuple(outer.typeof_pyval(argument) for argument in arguments)
        outer.compile(signature)
        done = outer.overloads[signature]
        _places[key] = done.library.get_pointer_to_function(done.fndesc.llvm_func_name)
    return _places[key]


def _kind(value: Any) -> Any:
    """What Numba's type of a value depends on. To ask Numba itself takes milliseconds for a hundred arrays."""
    if isinstance(value, tuple):
        return type(value), *map(_kind, value)
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.c_contiguous, value.flags.f_contiguous, value.flags.writeable
    return type(value)


def call_of(returns: Any, *arguments: Any) -> tuple[Any, Any]:
    """For `numba.extending.intrinsic`: signature and code of a call of the kernel whose place comes first, with
    arguments of these types. Nothing checks that it is the place of the kernel for these types."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(returns, arguments)
        callee = builder.inttoptr(values[0], kind.as_pointer())
        status, result = convention.call_function(builder, callee, returns, arguments, values[1:])
        with _if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    return returns(types.int64, *arguments), code
