"""Whether a kernel runs compiled or as plain Python, and how people learn that something is being compiled.

Compiling takes seconds, once per installation, and pays for much work only. So the experiments say how long a piece of
work would take as plain Python (`work`): while that is short and the kernel has not been compiled before, it runs as
plain Python, from the same source. Everything else is compiled, and the first compilation of a process is announced.

Which kernels have been compiled is kept in a file beside the compiled code, a line for each kernel and kind of
arguments; its name holds a digest of the sources, so that an edit or an update makes it void.

Whatever compiles a kernel calls `about_to_compile` first: this is all that this module knows of compilers.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from time import thread_time
from typing import Any, Protocol

import numpy as np

VARIABLE = "DOBANDIT_COMPILE"  # "always": nothing runs as plain Python, and nothing is announced
MOST_SECONDS = 2.0  # of one piece of work as plain Python
MOST_SECONDS_IN_ALL = 10.0  # of a process: then compiling would have cost no more
LOADING = 0.4  # seconds that it takes to load Numba, where compiled code is at hand

# EITHER: plain Python, unless the kernel has been compiled before.  TINY: plain Python in any case.  AHEAD: compiled,
# however little work it is.  PLAIN: within a kernel that runs as plain Python.
COMPILED, EITHER, TINY, AHEAD, PLAIN = "compiled", "either", "tiny", "ahead", "plain"
_mode: ContextVar[str] = ContextVar("dobandit_compile_mode", default=COMPILED)
_purpose: ContextVar[tuple[str, str]] = ContextVar("dobandit_compile_purpose", default=("the learner", "about 10 s"))
_log = logging.getLogger("dobandit")
_lock = threading.Lock()
_compilations: list[str] = []
_spent = [0.0]  # seconds of plain Python in this process
_announced: set[str] = set()
_loaded: set[Any] = set()  # kernels, with the types of their arguments, that have run compiled in this process
# One thread compiles at a time. It is held across a fork, so that the child does not inherit it locked.
compiler_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=compiler_lock.acquire, after_in_parent=compiler_lock.release, after_in_child=compiler_lock.release
    )


class AnyKernel(Protocol):
    """A kernel with both of its forms."""

    @property
    def name(self) -> str: ...

    @property
    def py_func(self) -> Callable[..., Any]: ...

    @property
    def compiled(self) -> Callable[..., Any]: ...


# -- the choice ------------------------------------------------------------------------------------------------------


@contextmanager
def work(seconds: float) -> Iterator[None]:
    """A piece of work of an experiment that would take so long as plain Python."""
    before = _mode.get()
    if before in (AHEAD, PLAIN):
        yield
        return
    small = seconds <= MOST_SECONDS and _spent[0] + seconds <= MOST_SECONDS_IN_ALL and not _always()
    tiny = small and _spent[0] + seconds <= LOADING and "numba" not in sys.modules
    token = _mode.set(TINY if tiny else EITHER if small else COMPILED)
    try:
        yield
    finally:
        _mode.reset(token)


@contextmanager
def compiling_ahead() -> Iterator[None]:
    """Everything is compiled, however little work it is."""
    token = _mode.set(AHEAD)
    try:
        yield
    finally:
        _mode.reset(token)


def call(kernel: AnyKernel, arguments: tuple[Any, ...]) -> Any:
    """Call a kernel in the form that suits the work at hand. Kernels that a plain one calls are plain, too."""
    mode = _mode.get()
    if mode is PLAIN:
        return kernel.py_func(*arguments)
    kinds: tuple[Any, ...] = (kernel, *map(type, arguments))
    if kinds in _loaded:
        return kernel.compiled(*arguments)
    key = f"{kernel.name} {' '.join(kind.__name__ for kind in kinds[1:])}"
    if mode is TINY or (mode is EITHER and key not in _known()):
        done, result = _plain(kernel, arguments)
        if done:
            return result
    with compiler_lock:
        if key not in _known():
            about_to_compile(kernel.name)
        result = kernel.compiled(*arguments)
        _remember(key)
        _loaded.add(kinds)
    return result


def _plain(kernel: AnyKernel, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    """Run as plain Python; (False, None), with all arrays as they were, where Python raises an error at a number, such
    as the logarithm of 0, that compiled code goes on with."""
    kept = [(array, array.copy()) for array in _arrays(arguments)]
    start, token = thread_time(), _mode.set(PLAIN)
    try:
        with np.errstate(all="ignore"):
            return True, kernel.py_func(*arguments)
    except (ArithmeticError, ValueError):
        for array, before in kept:
            array[...] = before
        return False, None
    finally:
        _mode.reset(token)
        _spent[0] += thread_time() - start


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)


def _always() -> bool:
    return os.environ.get(VARIABLE, "") == "always"


# -- announcements ---------------------------------------------------------------------------------------------------


def about_to_compile(name: str) -> None:
    """To be called before a kernel is compiled. Says so once per process, on the logger "dobandit": without handlers
    of its own, Python writes that to stderr."""
    with _lock:
        _compilations.append(name)
    what, duration = _purpose.get()
    announce(what, duration)


def announce(what: str, duration: str) -> None:
    """One line, once per process: what is being compiled, and how long that takes."""
    with _lock:
        first = not _announced
        _announced.add(what)
    if first:
        level = logging.INFO if _always() else logging.WARNING
        _log.log(level, "compiling %s, once per installation: %s", what, duration)


@contextmanager
def announced_as(what: str, duration: str) -> Iterator[None]:
    """What is compiled meanwhile is announced in these words."""
    token = _purpose.set((what, duration))
    try:
        yield
    finally:
        _purpose.reset(token)


def compilations() -> tuple[str, ...]:
    """The kernels that this process has compiled, in order; loading them from the disk does not count."""
    with _lock:
        return tuple(_compilations)


# -- the file ----------------------------------------------------------------------------------------------------------


def is_remembered(key: str) -> bool:
    """Whether `remember` was called with this key on this installation, with these sources."""
    return key in _known()


def remember(key: str) -> None:
    """Keep a key for other processes."""
    _remember(key)


@cache
def _known() -> set[str]:
    with suppress(OSError):
        return set(_file().read_text().split("\n"))
    return set()


def _remember(key: str) -> None:
    known = _known()
    with _lock:
        if key in known:
            return
        known.add(key)
        with suppress(OSError):
            _file().parent.mkdir(parents=True, exist_ok=True)
            with _file().open("a") as file:
                file.write(f"{key}\n")


@cache
def _file() -> Path:
    """Beside the compiled code: where Numba is told to keep it, in the package, or in the user's cache."""
    from numba import __version__ as numba

    from dobandit import kernels

    name = f"kernels.{kernels.source_digest()[:16]}.{sys.implementation.cache_tag}.numba-{numba}.compiled"
    own = Path(__file__).parent / "__pycache__"
    if told := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(told) / name
    if os.access(own if own.exists() else own.parent, os.W_OK):
        return own / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dobandit" / name
