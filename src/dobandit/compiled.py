"""How kernels are compiled: once a process, cached on disk, without the interpreter lock.

Numba takes half a second to import, so it is imported when the first kernel is compiled.
Small work of experiments runs as plain Python instead (`compile_mode`); with NUMBA_DISABLE_JIT=1 everything does.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from dobandit import compile_mode

F = TypeVar("F", bound=Callable[..., Any])
# Unless it is said not to be, whatever a kernel calls that is merged into its callers is merged into them, too.
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True, "forceinline": False}
# The packages with kernels: an edit elsewhere leaves the compiled ones as they are.
WITH_KERNELS = ("model", "estimation", "oracle", "policy")


def kernel(function: F) -> F:
    """The compiled form of `function`. Division follows NumPy, so hot loops carry no zero checks; kernels allocate
    nothing, so arrays are not reference-counted, which made them five times faster."""
    return _compiled(function)


def inlined(function: F) -> F:
    """A kernel that is merged into its callers: named tuples of many arrays are costly to hand over."""
    return _compiled(function, forceinline=True)


def _compiled(function: F, **options: Any) -> F:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return function
    return cast(F, _one_kernel(function, tuple(options.items())))


@cache
def _one_kernel(function: Callable[..., Any], options: tuple[tuple[str, Any], ...]) -> Kernel:
    """One for each function: whoever makes a kernel where it is called loads its compiled form once."""
    return Kernel(function, {**_OPTIONS, **dict(options)})


class Kernel:
    """A function that is compiled when it is first called: for Python, or within other kernels (`inner_kernels`)."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self.options = function, options
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return compile_mode.call(self, arguments)

    @property
    def name(self) -> str:
        return f"{self.py_func.__module__}.{self.py_func.__qualname__}"

    @property
    def compiled(self) -> Any:
        return self.for_python

    @cached_property
    def for_python(self) -> Any:
        from dobandit.inner_kernels import outer_form

        compiled = outer_form(self.py_func, self.options)
        try:
            compiled.enable_caching()
        except RuntimeError:  # no folder where compiled kernels could be kept: compile anew in every process
            compile_mode.about_to_compile(f"{self.py_func.__module__}.{self.py_func.__qualname__}")
        return compiled

    @cached_property
    def for_kernels(self) -> Any:
        from dobandit.inner_kernels import inner_form

        return inner_form(self.py_func, self.options)

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes this for where a kernel calls it."""
        return self.for_kernels._numba_type_


class ByType(Protocol):
    """What `by_type` makes."""

    def __call__(self, first: Any, *rest: Any) -> Any: ...

    def of(self, kind: type) -> Callable[[F], F]:
        """Above a function: the body for first arguments of this kind."""


def by_type(stub: Callable[..., Any]) -> ByType:
    """A function that runs another body for each type of its first argument, a named tuple: inside kernels the body is
    chosen when they are compiled, so that parts can be combined freely and cost nothing to combine.

    `@stub.of(Kind)` above a function makes it the body for `Kind`.
    """
    bodies: dict[type, Callable[..., Any]] = {}

    def chosen(first: Any, *rest: Any) -> Any:
        return bodies[type(first)](first, *rest)

    def of(kind: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(body: Callable[..., Any]) -> Callable[..., Any]:
            compiled = bodies[kind] = inlined(body)
            return compiled

        return register

    chosen.__doc__, chosen.__name__, chosen.of = stub.__doc__, stub.__name__, of  # type: ignore[attr-defined]
    _choose_when_compiled(chosen, bodies)
    return cast(ByType, chosen)


def _choose_when_compiled(chosen: Callable[..., Any], bodies: dict[type, Callable[..., Any]]) -> None:
    from numba.extending import overload

    from dobandit.inner_kernels import INNER

    options: Any = {**_OPTIONS, **INNER, "forceinline": True}

    @overload(chosen, strict=False, jit_options=options)  # type: ignore[untyped-decorator]
    def body(first: Any, *_: Any) -> Any:
        found = bodies.get(getattr(first, "instance_class", None))  # type: ignore[arg-type]
        return getattr(found, "py_func", None)


@cache
def _drop_stale_cache() -> None:
    """Remove compiled kernels that were made from other sources than these.

    Numba looks at the file of a kernel only, not at those of the kernels it calls, so an edit or an update of one file
    would leave its callers running the old code. Where the package's folder cannot be written there is nothing to
    remove: then Numba keeps its files elsewhere, and an installer replaces all of ours at once.
    """
    package, now = Path(__file__).parent, source_digest()
    stamp = package / "__pycache__" / "kernels.stamp"
    try:
        if stamp.exists() and stamp.read_text() == now:
            return
        for pattern in ("*.nbi", "*.nbc", "kernels.*.compiled"):
            for stale in package.rglob(pattern):
                stale.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(now)
    except OSError:
        return


@cache
def source_digest() -> str:
    """Changes whenever a source does that compiled kernels are made from."""
    package, digest = Path(__file__).parent, hashlib.sha256()
    own = [package / f"{name}.py" for name in ("compiled", "inner_kernels", "kernel_parts")]
    for source in sorted([*own, *(one for name in WITH_KERNELS for one in (package / name).rglob("*.py"))]):
        status = source.stat()
        digest.update(f"{source.relative_to(package)} {status.st_mtime_ns} {status.st_size}\n".encode())
    return digest.hexdigest()
