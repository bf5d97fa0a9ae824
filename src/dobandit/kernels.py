"""How kernels are compiled: by Numba's public `njit`, once per installation, without the interpreter lock.

A kernel is a plain function on arrays and records. Called from Python it runs compiled, or as plain Python where that
is quicker than to compile (`compile_mode`). Inside compiled code the kernels that it calls are compiled, too: a twin of
the function is compiled, in whose module every kernel is its own twin. Numba is imported when the first kernel is
compiled, since that alone takes a quarter of a second.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from dobandit import compile_mode
from dobandit.compiled import _drop_stale_cache

F = TypeVar("F", bound=Callable[..., Any])
# Division follows NumPy: no checks for zero. A kernel of `compiled` that calls one of these first would pass on that it
# manages no memory, and that it is merged into its callers.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": True, "forceinline": False}


def record(**fields: Any) -> np.dtype[Any]:
    """The type of a record: numbers of eight bytes with names, so that there is no padding between them."""
    return np.dtype(list(fields.items()), align=True)


def kernel(function: F) -> F:
    """The compiled form of `function`; with NUMBA_DISABLE_JIT=1 the function itself."""
    return function if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" else cast(F, Kernel(function))


class Kernel:
    """A function that is compiled when it is first called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func: Any = function
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return compile_mode.call(self, arguments)

    @cached_property
    def for_python(self) -> Any:
        from numba import njit

        _drop_stale_cache()
        code, module = self.py_func.__code__, dict(self.py_func.__globals__)
        for name in code.co_names:
            if isinstance(module.get(name), Kernel):
                module[name] = module[name].for_python
        twin = FunctionType(code, module, self.py_func.__name__, self.py_func.__defaults__)
        twin.__qualname__ = self.py_func.__qualname__
        try:
            return njit(cache=True, **OPTIONS)(twin)
        except RuntimeError:  # no folder where compiled kernels could be kept: compile anew in every process
            return njit(**OPTIONS)(twin)

    @property
    def _numba_type_(self) -> Any:
        return self.for_python._numba_type_
