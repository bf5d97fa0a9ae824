"""What a thread does together: one transaction, and one wait for the disk, for many who write at the same time.

    with storage.together():
        experiment.tell(3, ...)
        experiment.tell(4, ...)

Each of them is done, or undone where it raises, by itself; all that was done is stored at the end of the block, or
nothing is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dobandit.errors import StorageError


class TakesLongError(Exception):
    """This would keep others waiting who are stored together with it. It was not done; do it by itself."""


class Shared:
    """What a thread does together in one storage.

    afterwards  what is done once all of it is stored
    connection  of the transaction, where a database has begun one
    broken      why nothing of it can be stored
    """

    def __init__(self, storage: object) -> None:
        self.storage = storage
        self.afterwards: list[Callable[[], None]] = []
        self.connection: Any = None
        self.broken: StorageError | None = None


_threads = threading.local()


def shared_in(storage: object) -> Shared | None:
    """What this thread does together in a storage; None where it does each thing by itself."""
    shared: Shared | None = getattr(_threads, "shared", None)
    return shared if shared is not None and shared.storage is storage else None


@contextmanager
def sharing(storage: object) -> Iterator[Shared]:
    """Until the end of the block this thread does things together. Blocks are not put into each other."""
    assert getattr(_threads, "shared", None) is None
    _threads.shared = shared = Shared(storage)
    try:
        yield shared
    finally:
        _threads.shared = None
