"""Without pytest: a block that must raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def refused(error: type[BaseException]) -> Iterator[None]:
    """The block must raise this error."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"{error.__name__} must be raised here, but nothing was refused.")
