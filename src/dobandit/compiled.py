"""How kernels are compiled: once, cached on disk, without the interpreter lock.

Importing this module loads Numba (about half a second), so modules that need it are imported on first use.
With NUMBA_DISABLE_JIT=1 every kernel runs as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function`; division follows NumPy (no ZeroDivisionError branches in hot loops)."""
    compiled: Callable[P, R] = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled
