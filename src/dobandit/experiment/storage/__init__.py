"""Where experiments are kept: an SQLite file, a PostgreSQL database, or memory."""

from __future__ import annotations

from dobandit.checks import is_one_of
from dobandit.experiment.storage.base import Storage
from dobandit.experiment.storage.memory import MemoryStorage

__all__ = ["DEFAULT_STORAGE", "MemoryStorage", "Storage", "open_storage"]

DEFAULT_STORAGE = "sqlite:///dobandit.db"
_THIS_PROCESS = MemoryStorage()
_MEMORY = ("memory", "sqlite://", "sqlite:///:memory:")


def open_storage(storage: str | Storage | None) -> Storage:
    """Connects to nothing and makes nothing yet. SQLAlchemy is slow to import, and imported only where it is used."""
    if isinstance(storage, Storage):
        return storage
    if storage is None:
        storage = DEFAULT_STORAGE
    if is_one_of(storage, _MEMORY):
        return _THIS_PROCESS
    from dobandit.experiment.storage.addresses import open_database
    from dobandit.experiment.storage.sql import SQLStorage

    return SQLStorage(open_database(storage))
