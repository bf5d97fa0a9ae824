"""How kernels are compiled: by Numba's public `njit`, once per installation, without the interpreter lock.

A kernel is a plain function on arrays, records and named tuples of these. Called from Python it runs compiled, or as
plain Python where that is quicker than to compile (`compile_mode`). Inside compiled code the kernels that it calls are
compiled, too: a twin of the function is compiled, in whose module every kernel is its own twin. Numba is imported when
the first kernel is compiled, since that alone takes a quarter of a second.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from dobandit import compile_mode

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
# Division follows NumPy: no checks for zero. A kernel that is merged into its callers does not merge what it calls.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": False, "no_cfunc_wrapper": True}


def record(**fields: Any) -> np.dtype[Any]:
    """The type of a record: numbers of eight bytes with names, so that there is no padding between them."""
    return np.dtype(list(fields.items()), align=True)


def kernel(function: F) -> F:
    """The compiled form of `function`; with NUMBA_DISABLE_JIT=1 the function itself."""
    return function if _DISABLED else cast(F, Kernel(function))


def inlined(function: F) -> F:
    """A kernel that is merged into its callers. In a loop a call costs some 20 ns, most of which is counting references
    to the arrays among its arguments: Numba leaves that out where nothing is called."""
    return function if _DISABLED else cast(F, Kernel(function, forceinline=True))


def borrowed(value: T) -> T:
    """The same arrays, or named tuples of arrays, without counts of references to them, for kernels that run a loop.

    Numba counts references with atomic operations, which takes half of the time of a short round. A kernel keeps its
    arguments alive while it runs, so that it can work on views which nobody counts. It must not return them.
    """
    return value


@cache
def compile_borrowed() -> None:
    """Tell Numba what `borrowed` is inside of compiled code."""
    from numba import carray, njit, types  # type: ignore[attr-defined]
    from numba.extending import overload

    @cache  # it is compiled here and now, which takes a moment: not where all other kernels are loaded from the disk
    def pointer() -> Any:
        return njit([types.voidptr(types.voidptr)])(lambda address: address)

    @overload(borrowed, jit_options={"forceinline": True}, strict=False)
    def borrowed_type(value: Any) -> Any:
        if isinstance(value, types.Array) and value.layout == "C":
            address = pointer()
            return lambda value: carray(address(value.ctypes), value.shape, value.dtype)
        if isinstance(value, (types.NamedTuple, types.NamedUniTuple)):
            module = {"Tuple": value.instance_class, "borrowed": borrowed}
            fields = ", ".join(f"borrowed(value.{name})" for name in value.fields)
            exec(f"def views(value): return Tuple({fields})", module)
            return module["views"]
        return lambda value: value


class Kernel:
    """A function that is compiled when it is first called."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.py_func: Any = function
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.options = {**OPTIONS, **options}
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return compile_mode.call(self, arguments)

    def __reduce__(self) -> str:
        """Copied and pickled by its name, as functions are."""
        return str(self.py_func.__qualname__)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    @cached_property
    def compiled(self) -> Any:
        """What Numba makes of a twin of the function; Python and other kernels call it."""
        from numba import njit

        compile_mode.compiled_before()  # which removes what was compiled from other sources
        compile_borrowed()
        module = dict(self.py_func.__globals__)
        for name in self.py_func.__code__.co_names:
            if isinstance(module.get(name), Kernel):
                module[name] = module[name].compiled
        twin = _renamed(self.py_func, module, self.py_func.__qualname__)
        try:
            compiled = njit(cache=True, **self.options)(twin)
        except RuntimeError:  # no folder where compiled kernels could be kept: compile anew in every process
            return njit(**self.options)(twin)
        compiled.compile = compile_mode.in_turn(compiled.compile, f"{twin.__module__}.{twin.__qualname__}")
        return compiled


@cache
def with_kernels(loop: F, **kernels: Any) -> F:
    """The kernel `loop` with other kernels in the place of names of its module that are in capitals.

        CHOOSE: Any = None  # the rule by which a policy chooses

        @kernel
        def play(values, uniforms):
            for t in range(len(uniforms)):
                arm = CHOOSE(values, uniforms[t])

        play_largest = with_kernels(play, CHOOSE=largest)

    Each combination is a small loop that is compiled by itself; kernels that are `inlined` are merged into it. Why it
    is not one loop for all, which takes kernels as arguments: docs/decisions/0002-compiled-kernels.md.
    """
    function = getattr(loop, "py_func", loop)
    names = [getattr(part, "py_func", part).__qualname__ for part in kernels.values()]
    twin = _renamed(function, {**function.__globals__, **kernels}, "_".join([function.__qualname__, *names]))
    return cast(F, kernel(twin))


def _renamed(function: Any, module: dict[str, Any], name: str) -> FunctionType:
    """A function of the same code, which finds other things in its module."""
    twin = FunctionType(function.__code__, module, function.__name__, function.__defaults__)
    twin.__qualname__, twin.__module__ = name, function.__module__
    return twin
