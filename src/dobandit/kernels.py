"""How kernels are compiled: by Numba's public `njit`, once per installation, without the interpreter lock.

A kernel is a plain function on arrays and records. Called from Python it runs compiled, or as plain Python where that
is quicker than to compile (`compile_mode`). Inside compiled code the kernels that it calls are compiled, too: a twin of
the function is compiled, in whose module every kernel is its own twin. Numba is imported when the first kernel is
compiled, since that alone takes a quarter of a second.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, partial, update_wrapper
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from dobandit import compile_mode
from dobandit.compiled import _drop_stale_cache

F = TypeVar("F", bound=Callable[..., Any])
_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
# Division follows NumPy: no checks for zero. What a kernel calls that is merged into its callers is not merged as well.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": False}

i8, f8 = np.int64, np.float64


def record(**fields: Any) -> np.dtype[Any]:
    """The type of a record: numbers of eight bytes (i8, f8) with names, so that there is no padding between them."""
    return np.dtype(list(fields.items()), align=True)


def kernel(function: F) -> F:
    """The compiled form of `function`; with NUMBA_DISABLE_JIT=1 the function itself."""
    return function if _DISABLED else cast(F, Kernel(function))


def inlined(function: F) -> F:
    """A kernel that is merged into its callers. In a loop a call costs some 20 ns, most of which is counting references
    to the arrays among its arguments: Numba leaves that out where nothing is called."""
    return function if _DISABLED else cast(F, Kernel(function, forceinline=True))


class Kernel:
    """A function that is compiled when it is first called."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.py_func, self.options = function, {**OPTIONS, **options}
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return compile_mode.call(self, arguments)

    def __reduce__(self) -> str:
        """Copied and pickled by its name, as functions are."""
        return str(self.py_func.__qualname__)

    @cached_property
    def for_kernels(self) -> Any:
        from numba import njit

        return self.compiled_by(njit)

    @property
    def for_python(self) -> Any:
        return self.for_kernels

    def compiled_by(self, compiler: Callable[..., Any], *signature: Any) -> Any:
        """A twin of the function, compiled by one of Numba's decorators."""
        _drop_stale_cache()
        code, module = self.py_func.__code__, dict(self.py_func.__globals__)
        for name in code.co_names:
            if isinstance(module.get(name), Kernel):
                module[name] = module[name].for_kernels
        twin = FunctionType(code, module, self.py_func.__name__, self.py_func.__defaults__)
        twin.__qualname__ = self.py_func.__qualname__
        try:
            return compiler(*signature, cache=True, **self.options)(twin)
        except RuntimeError:  # no folder where compiled kernels could be kept: compile anew in every process
            return compiler(*signature, **self.options)(twin)

    @property
    def _numba_type_(self) -> Any:
        return self.for_kernels._numba_type_


# -- kernels that are arguments of other kernels ---------------------------------------------------------------------


class Signature(NamedTuple):
    """What kernels that can stand for each other return and take, by examples: 0, 0.0, False, a tuple of these, None,
    or an array, of which the type and the number of dimensions count."""

    result: Any
    arguments: tuple[Any, ...]


def typed_kernel(signature: Signature) -> Callable[[F], F]:
    """Above a function that other kernels take as an argument, such as the rule by which a loop over rounds chooses.

        CHOOSE = Signature(0, (np.zeros(0), 0.0))  # takes an array of numbers and a number, returns a whole number

        @typed_kernel(CHOOSE)
        def largest(values, uniform): ...

        @kernel
        def play(choose, values, uniforms):
            for t in range(len(uniforms)):
                arm = choose(values, uniforms[t])

        play(largest, values, uniforms)

    The loop is compiled once for all rules with this signature: to Numba its argument is a function of that type, which
    is called by its address. That costs 7 ns a call and 2 ns for each array among its arguments, and 4 us where Python
    calls the loop. Another process finds both in the cache. As plain Python the rule is the function itself. Python can
    call a rule, too, and so can kernels by its name: then it is a part of them as any other kernel.
    """

    def typed(function: F) -> F:
        return function if _DISABLED else cast(F, TypedKernel(function, signature))

    return typed


class TypedKernel(Kernel):
    """A kernel with one explicit signature, which has an address."""

    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        super().__init__(function)
        self.signature = signature

    @cached_property
    def _numba_type_(self) -> Any:
        from numba import typeof, types

        return types.FunctionType(typeof(self.signature.result)(*map(typeof, self.signature.arguments)))

    @cached_property
    def for_loops(self) -> Any:
        from numba import cfunc

        return self.compiled_by(cfunc, self._numba_type_.signature)

    def __wrapper_address__(self) -> int:
        """Numba's protocol of functions that are arguments."""
        return int(self.for_loops.address)

    @cached_property
    def for_python(self) -> Any:
        return partial(cast(Kernel, call).for_kernels, self)


@kernel
def call(function: Any, *arguments: Any) -> Any:
    """So that Python runs the form of a typed kernel that is compiled for loops, not another one for itself."""
    return function(*arguments)
