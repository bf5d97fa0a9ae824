"""Where experiments are kept: an SQLite file, a PostgreSQL database, or memory.

SQLAlchemy is slow to import, and imported only where it is used.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from dobandit.checks import is_one_of
from dobandit.storage.contract import Storage

if TYPE_CHECKING:
    from dobandit.storage.sql import MemoryStorage

__all__ = ["DEFAULT_STORAGE", "MemoryStorage", "Storage", "open_storage"]

DEFAULT_STORAGE = "sqlite:///dobandit.db"
_MEMORY = ("memory", "sqlite://", "sqlite:///:memory:")


def open_storage(storage: str | Storage | None) -> Storage:
    """Connects to nothing and makes nothing yet."""
    if isinstance(storage, Storage):
        return storage
    if storage is None:
        storage = DEFAULT_STORAGE
    if is_one_of(storage, _MEMORY):
        return _memory_of_this_process()
    from dobandit.storage.sql import SQLStorage
    from dobandit.storage.urls import open_database

    return SQLStorage(open_database(storage))


@cache
def _memory_of_this_process() -> MemoryStorage:
    from dobandit.storage.sql import MemoryStorage

    return MemoryStorage()


def __getattr__(name: str) -> object:
    if name == "MemoryStorage":
        from dobandit.storage.sql import MemoryStorage

        return MemoryStorage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
