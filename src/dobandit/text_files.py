"""Text files, read within the limit and written at once; compressed ones (.gz) are like any other."""

from __future__ import annotations

import errno
import gzip
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, cast

from dobandit import limits
from dobandit.checks import shown
from dobandit.errors import DobanditError, GraphError, ModelError, ParseError, located

_GZIP = b"\x1f\x8b"  # what a compressed file begins with; no UTF-8 text does


def read_text(path: str | os.PathLike[str], too_large: str = "Split the graph.") -> str:
    """The file's UTF-8 text, unpacked where it is compressed; never more of it in memory than the limit. ParseError
    without the file's name.

    too_large  the way out where there is more
    """
    name = path_of(path)
    try:
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(limits.MAX_BYTES + 1) if size <= limits.MAX_BYTES else b""
            if data.startswith(_GZIP):
                file.seek(0)
                with gzip.GzipFile(fileobj=file) as packed:
                    data = packed.read(limits.MAX_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ParseError(f"the compressed file is damaged ({error}). Compress it again.") from None
    except (OSError, ValueError) as error:
        raise ParseError(f"the file cannot be read ({_reason(error)}). Check the path.") from None
    if max(size, len(data)) > limits.MAX_BYTES:
        raise ParseError(f"a file has at most {limits.MAX_BYTES} bytes, but this one has more. {too_large}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(errors="replace")
        message = f"files are UTF-8 text, but byte 0x{data[error.start]:02x} is none. Save the file as UTF-8."
        raise located(before, len(before), message) from None


def path_of(path: object) -> str:
    """A path as text. A number would be somebody else's open file, and is refused."""
    name = path if isinstance(path, str) else os.fspath(path) if isinstance(path, os.PathLike) else None
    if not isinstance(name, str):
        raise ParseError(f"a file is given by its path, but got {shown(path)}. Write the path as text.")
    return name


@contextmanager
def in_file(path: object) -> Iterator[None]:
    """What is wrong with what is read from a file is said with its path."""
    name = path_of(path)
    try:
        yield
    except ParseError as error:
        raise error if error.source else error.in_source(name) from None
    except (GraphError, ModelError) as error:
        raise type(error)(f"{name}: {error.marked}") from None


def without_gz(path: str | os.PathLike[str]) -> Path:
    """The path without the ending of a compressed file: what is left tells what is in it."""
    whole = Path(path)
    return whole.with_suffix("") if whole.suffix.lower() == ".gz" else whole


def write_atomically(path: str | os.PathLike[str], content: str | bytes | Callable[[BinaryIO], None]) -> None:
    """Write text or bytes so that at every moment the path holds the old file or the new one, whole; compressed where
    the path ends in .gz.

    content  or a function that writes to a file bit by bit, for what should not be in memory as a whole
    """
    goal = os.path.realpath(path_of(path))  # through a link, so that the link stays
    draft = f"{goal}.{secrets.token_hex(4)}.tmp"
    try:
        old = os.stat(goal) if os.path.exists(goal) else None
        if old is not None and not stat.S_ISREG(old.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        try:
            with open(draft, "xb") as file:
                packed = Path(path).suffix.lower() == ".gz"  # no date: equal contents are equal files
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) if packed else nullcontext(file) as out:
                    if callable(content):
                        content(cast(BinaryIO, out))
                    else:
                        out.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            if old is not None:
                os.chmod(draft, stat.S_IMODE(old.st_mode))
            os.replace(draft, goal)
        finally:
            Path(draft).unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise DobanditError(
            f"{os.fspath(path)}: the file cannot be written ({_reason(error)}). Choose another path."
        ) from None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
