"""How kernels are compiled: once a process, cached on disk, without the interpreter lock.

Numba takes half a second to import, so it is imported when the first kernel is compiled.
With NUMBA_DISABLE_JIT=1 every kernel runs as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """The compiled form of `function`; division follows NumPy, so hot loops carry no zero checks."""
    return cast(Callable[P, R], _compile(function, False))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that is merged into its callers: named tuples of arrays are costly to hand over in a hot loop."""
    return cast(Callable[P, R], _compile(function, True))


@cache
def _compile(function: Callable[..., object], inline: bool) -> Callable[..., object]:
    import numba

    compiled: Callable[..., object] = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=inline)(
        function
    )
    return compiled
