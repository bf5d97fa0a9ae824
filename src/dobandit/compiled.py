"""How kernels are compiled: once a process, cached on disk, without the interpreter lock.

Numba takes half a second to import, so it is imported when the first kernel is compiled.
With NUMBA_DISABLE_JIT=1 every kernel runs as plain Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS: Any = {"nogil": True, "error_model": "numpy"}
# The packages with kernels: an edit elsewhere leaves the compiled ones as they are.
_WITH_KERNELS = ("graph", "model", "estimation", "oracle", "policy")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """The compiled form of `function`. Division follows NumPy, so hot loops carry no zero checks; kernels allocate
    nothing, so arrays are not reference-counted, which made them five times faster."""
    return cast(Callable[P, R], _compile(function, _nrt=False))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that is merged into its callers: named tuples of many arrays are costly to hand over."""
    return cast(Callable[P, R], _compile(function, _nrt=False, forceinline=True))


def allocating(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that may make lists and arrays of its own; not for hot loops."""
    return cast(Callable[P, R], _compile(function))


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

    options: Any = {**_OPTIONS, "_nrt": False, "forceinline": True}

    @overload(chosen, strict=False, jit_options=options)
    def body(first: Any, *_: Any) -> Any:
        found = bodies.get(getattr(first, "instance_class", None))  # type: ignore[arg-type]
        return getattr(found, "py_func", None)


@cache
def _compile(function: Callable[..., object], **options: Any) -> Callable[..., object]:
    import numba

    _drop_stale_cache()
    options = {**_OPTIONS, **options}
    try:
        compiled: Callable[..., object] = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder where compiled kernels could be kept: compile anew in every process
        compiled = numba.njit(**options)(function)
    return compiled


@cache
def _drop_stale_cache() -> None:
    """Remove compiled kernels that were made from other sources than these.

    Numba looks at the file of a kernel only, not at those of the kernels it calls, so an edit or an update of one file
    would leave its callers running the old code. Where the package's folder cannot be written there is nothing to
    remove: then Numba keeps its files elsewhere, and an installer replaces all of ours at once.
    """
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted([Path(__file__), *(one for name in _WITH_KERNELS for one in (package / name).rglob("*.py"))]):
        status = source.stat()
        digest.update(f"{source.relative_to(package)} {status.st_mtime_ns} {status.st_size}\n".encode())
    stamp, now = package / "__pycache__" / "kernels.stamp", digest.hexdigest()
    try:
        if stamp.exists() and stamp.read_text() == now:
            return
        for pattern in ("*.nbi", "*.nbc"):
            for stale in package.rglob(pattern):
                stale.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(now)
    except OSError:
        return
