"""Whether a kernel runs compiled or as plain Python, and how people learn that something is being compiled.

Compiling takes seconds, once per installation, and pays for much work only. So the experiments say how long a piece of
work would take as plain Python (`work`): while that is short and the kernel has not been compiled before, it runs as
plain Python, from the same source. Everything else is compiled, which is announced.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from dobandit.kernels import Kernel

MOST_SECONDS = 2.0  # of one piece of work as plain Python
MOST_SECONDS_IN_ALL = 10.0  # of a process: then compiling would have cost no more
LOADING = 0.4  # seconds that it takes to load Numba, where compiled code is at hand
# The packages with kernels: an edit elsewhere leaves the compiled ones as they are.
WITH_KERNELS = ("model", "estimation", "oracle", "policy")

# EITHER: plain Python, unless the kernel has been compiled before.  TINY: plain Python in any case.  AHEAD: compiled,
# however little work it is.  PLAIN: within a kernel that runs as plain Python.
COMPILED, EITHER, TINY, AHEAD, PLAIN = "compiled", "either", "tiny", "ahead", "plain"


class Announcement(NamedTuple):
    """What is compiled, how long that takes, and the piece of work that waits; each is announced once."""

    what: str
    duration: str
    work: object = None


_LEARNER = Announcement("the learner", "about 10 s")
_mode: ContextVar[str] = ContextVar("dobandit_compile_mode", default=COMPILED)
_announcement: ContextVar[Announcement] = ContextVar("dobandit_announcement", default=_LEARNER)
_announced: set[Announcement] = set()
_log = logging.getLogger("dobandit")
_compilations: list[str] = []
_spent = [0.0]  # seconds of plain Python in this process
_loaded: set[Any] = set()  # kernels, with the types of their arguments, that have run compiled in this process
# One thread compiles at a time. It is held across a fork, so that the child does not inherit it locked.
compiler_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=compiler_lock.acquire, after_in_parent=compiler_lock.release, after_in_child=compiler_lock.release
    )


# -- the choice --------------------------------------------------------------------------------------------------------


def is_worth_compiling(seconds: float) -> bool:
    """Whether work that takes so long as plain Python should be compiled before anybody waits for it."""
    return seconds > MOST_SECONDS and not _always()


@contextmanager
def work(seconds: float) -> Iterator[None]:
    """A piece of work of an experiment that would take so long as plain Python."""
    if _mode.get() in (AHEAD, PLAIN):
        yield
        return
    so_far = _spent[0] + seconds
    small = seconds <= MOST_SECONDS and so_far <= MOST_SECONDS_IN_ALL and not _always()
    tiny = small and so_far <= LOADING and "numba" not in sys.modules
    mode = TINY if tiny else EITHER if small else COMPILED
    outer = _announcement.get()
    with _setting(_mode, mode), _setting(_announcement, outer if outer.work else _LEARNER._replace(work=object())):
        yield


@contextmanager
def compiling_ahead(what: str, duration: str) -> Iterator[None]:
    """Everything is compiled, however little work it is, and announced in these words, once per process."""
    with _setting(_mode, AHEAD), _setting(_announcement, Announcement(what, duration)):
        yield


@contextmanager
def _setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def call(kernel: Kernel, arguments: tuple[Any, ...]) -> Any:
    """Call a kernel in the form that suits the work at hand. Kernels that a plain one calls are plain, too."""
    mode = _mode.get()
    if mode is PLAIN:
        return kernel.py_func(*arguments)
    kinds: tuple[Any, ...] = (kernel, *map(type, arguments))
    if kinds in _loaded:
        return kernel.compiled(*arguments)
    key = f"{kernel.name} {' '.join(kind.__name__ for kind in kinds[1:])}"
    if mode is TINY or (mode is EITHER and key not in compiled_before()):
        done, result = _plain(kernel.py_func, arguments)
        if done:
            return result
    with compiler_lock:
        if key not in compiled_before():
            _announce(kernel.name)
        result = kernel.compiled(*arguments)
        remember(key)
        _loaded.add(kinds)
    return result


def _plain(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    """Run as plain Python; (False, None), with all arrays as they were, where Python raises an error at a number, such
    as the logarithm of 0, that compiled code goes on with."""
    originals = [(array, array.copy()) for array in _writable_arrays(arguments)]
    start = thread_time()
    try:
        with _setting(_mode, PLAIN), np.errstate(all="ignore"):
            return True, function(*arguments)
    except (ArithmeticError, ValueError):
        for array, original in originals:
            array[...] = original
        return False, None
    finally:
        _spent[0] += thread_time() - start


def _writable_arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray) and value.flags.writeable:
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _writable_arrays(part)


def _always() -> bool:
    """Whether nothing is to run as plain Python, and nothing to be announced."""
    return os.environ.get("DOBANDIT_COMPILE") == "always"


def _announce(name: str) -> None:
    """On the logger "dobandit": without handlers of its own, Python writes that to stderr."""
    _compilations.append(name)
    announcement = _announcement.get()
    if announcement not in _announced:
        _announced.add(announcement)
        level = logging.INFO if _always() else logging.WARNING
        _log.log(level, "compiling %s, once per installation: %s", announcement.what, announcement.duration)


def compilations() -> tuple[str, ...]:
    """The kernels that this process has compiled, in order; loading them from the disk does not count."""
    return tuple(_compilations)


# -- compiled kernels on the disk --------------------------------------------------------------------------------------


@cache
def compiled_before() -> set[str]:
    """What `remember` has kept on this installation: a line for each kernel and kind of arguments.

    Numba looks at the file of a kernel only, not at those of the kernels it calls, so an edit of one file would leave
    its callers running the old code. So the first line tells what the kernels were compiled from, and where that has
    changed, all are removed from the package's folder. Elsewhere there may be kernels of others, and nobody edits ours.
    """
    sources = f"{_source_digest()} {sys.implementation.cache_tag} numba-{version('numba')}"
    file, package = _file(), Path(__file__).parent
    with suppress(OSError):
        first, *keys = file.read_text().split("\n")
        if first == sources:
            return set(keys)
    with suppress(OSError):
        if package in file.parents:
            for pattern in ("*.nbi", "*.nbc"):
                for stale in package.rglob(pattern):
                    stale.unlink(missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{sources}\n")
    return set()


def remember(key: str) -> None:
    """Keep a key for other processes with the same sources."""
    with compiler_lock:
        if key not in compiled_before():
            compiled_before().add(key)
            with suppress(OSError), _file().open("a") as file:
                file.write(f"{key}\n")


def in_turn(compiler: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    """Compile a kernel in one process at a time: others that need it meanwhile wait, and load what that one keeps.

    A kernel is held while those that it calls are compiled. None of these calls it, so that no two processes wait for
    each other.
    """

    def compile_in_turn(types: Any) -> Any:
        with compiler_lock, _turn(zlib.crc32(name.encode())):
            return compiler(types)

    return compile_in_turn


@contextmanager
def _turn(byte: int) -> Iterator[None]:
    """Hold a byte of a file that all processes share, where the system and the disk know of such locks."""
    with suppress(ImportError, OSError):
        from fcntl import LOCK_EX, lockf

        lockf(_shared(), LOCK_EX, 1, byte)
    try:
        yield
    finally:
        with suppress(ImportError, OSError):
            from fcntl import LOCK_UN, lockf

            lockf(_shared(), LOCK_UN, 1, byte)


@cache
def _shared() -> int:
    """It stays open: to close a file gives up all locks that a process has on it."""
    return os.open(_file().with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o666)


def _file() -> Path:
    """Beside the compiled code: where Numba is told to keep it, in the package, or in the user's cache."""
    folder = Path(__file__).parent / "__pycache__"
    if told := os.environ.get("NUMBA_CACHE_DIR"):
        folder = Path(told)
    elif not os.access(folder if folder.exists() else folder.parent, os.W_OK):
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dobandit"
    return folder / "kernels.compiled"


def _source_digest() -> str:
    """Changes whenever a source does that compiled kernels are made from."""
    package, digest = Path(__file__).parent, hashlib.sha256()
    sources = [source for name in WITH_KERNELS for source in (package / name).rglob("*.py")]
    for source in sorted([package / "kernels.py", *sources]):
        status = source.stat()
        digest.update(f"{source.relative_to(package)} {status.st_mtime_ns} {status.st_size}\n".encode())
    return digest.hexdigest()
