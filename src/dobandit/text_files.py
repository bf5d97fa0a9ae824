"""Text files, read within the limit and written at once."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

from dobandit import limits
from dobandit.errors import DobanditError, ParseError, located


def read_text(path: str | os.PathLike[str]) -> str:
    """The file's UTF-8 text; never more of it in memory than the limit. ParseError without the file's name."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(limits.MAX_BYTES + 1) if size <= limits.MAX_BYTES else b""
    except (OSError, ValueError) as error:
        raise ParseError(f"the file cannot be read ({_reason(error)}). Check the path.") from None
    if max(size, len(data)) > limits.MAX_BYTES:
        raise ParseError(f"a file has at most {limits.MAX_BYTES} bytes, but this one has more. Split the graph.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(errors="replace")
        message = f"files are UTF-8 text, but byte 0x{data[error.start]:02x} is none. Save the file as UTF-8."
        raise located(before, len(before), message) from None


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write text or bytes so that at every moment the path holds the old file or the new one, whole."""
    goal = os.path.realpath(path)  # through a link, so that the link stays
    draft = f"{goal}.{secrets.token_hex(4)}.tmp"
    try:
        old = os.stat(goal) if os.path.exists(goal) else None
        if old is not None and not stat.S_ISREG(old.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        data = content.encode() if isinstance(content, str) else content
        try:
            with open(draft, "xb") as file:
                file.write(data)
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
