"""A copy of an SQLite database, of one moment, while others write to it."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from dobandit.errors import StorageError
from dobandit.storage.contract import Storage
from dobandit.storage.sql import MemoryStorage, SQLStorage
from dobandit.storage.sqlite import SQLiteFile, connect
from dobandit.storage.urls import open_database


def backup(storage: str | Storage, destination: str | os.PathLike[str]) -> Path:
    """The file appears when it is complete, and never takes the place of another."""
    source, target = _file_of(storage), Path(destination)
    if not source.present():
        raise StorageError(f"{source.url} must exist to be backed up, but is not there. Check the path.")
    _refuse_existing(target)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
    except OSError as error:
        raise StorageError(
            f"A backup needs a folder that can be written, but: {error.strerror} ({target.parent}). Choose another one."
        ) from None
    try:
        # In one step, which holds a read transaction: that keeps nobody from writing.
        with closing(connect(source.path)) as reading, closing(sqlite3.connect(name)) as writing:
            reading.backup(writing)
        with open(name, "rb+") as file:
            os.fsync(file.fileno())
        _refuse_existing(target)
        os.replace(name, target)
    except sqlite3.Error as error:
        raise source.explain(error) from None
    except OSError as error:
        raise StorageError(f"The backup {target} could not be written ({error.strerror}); there is none.") from None
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            Path(name + ending).unlink(missing_ok=True)
    return target


def _file_of(storage: str | Storage) -> SQLiteFile:
    if isinstance(storage, MemoryStorage):
        raise StorageError("Only an SQLite file can be backed up, but this storage is in memory. Export its trials.")
    database = storage.database if isinstance(storage, SQLStorage) else open_database(str(storage))
    if isinstance(database, SQLiteFile):
        return database
    raise StorageError(
        f"Only an SQLite file can be backed up here, but got {database.url}. Use PostgreSQL's own tool: pg_dump."
    )


def _refuse_existing(target: Path) -> None:
    if target.exists():
        raise StorageError(f"A backup never replaces a file, but {target} exists. Choose another name, or remove it.")
