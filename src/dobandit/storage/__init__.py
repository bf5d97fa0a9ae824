"""Where experiments are kept: an SQLite file, a PostgreSQL database, or memory.

SQLAlchemy is slow to import, and imported only where it is used.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from dobandit.checks import is_one_of, shown
from dobandit.errors import StorageError
from dobandit.storage.contract import Storage

if TYPE_CHECKING:
    from dobandit.storage.database import Database
    from dobandit.storage.sql import MemoryStorage

__all__ = ["DEFAULT_STORAGE", "MemoryStorage", "Storage", "open_database", "open_storage"]

DEFAULT_STORAGE = "sqlite:///dobandit.db"
_MEMORY = ("memory", "sqlite://", "sqlite:///:memory:")
# No path looks like this: user:password@host, an option with a password, or a kind of database with : or //.
_MISTYPED = re.compile(r":.*@|(pass|pwd)\w*\s*=|^(\w*sql\w*|postgres)(\+\w+)?(:|//)", re.IGNORECASE | re.DOTALL)
_FILES = (".db", ".sqlite", ".sqlite3")
_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg", "postgres+psycopg")


def open_storage(storage: str | Storage | None) -> Storage:
    """Connects to nothing and makes nothing yet."""
    if isinstance(storage, Storage):
        return storage
    if storage is None:
        storage = DEFAULT_STORAGE
    if is_one_of(storage, _MEMORY):
        return _memory_of_this_process()
    from dobandit.storage.sql import SQLStorage

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


def open_database(address: str) -> Database:
    """The database at an address. Connects to nothing yet."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    from dobandit.storage.postgresql import PostgreSQL
    from dobandit.storage.sqlite import SQLiteFile

    if not isinstance(address, str) or not address or "\0" in address:
        raise _refused(shown(address))
    scheme = re.match(r"[a-z+]{1,20}(?=:)", address, re.IGNORECASE)
    kind = f", of the kind {scheme[0]!r}" if scheme else ""
    if "://" not in address:
        if _MISTYPED.search(address):
            raise _refused(f"what looks like a URL without ://{kind}")
        if not address.lower().endswith(_FILES):
            raise _refused(shown(address))
        return SQLiteFile(address)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise _refused(f"a URL that cannot be read{kind}") from None
    if url.drivername in _SQLITE:
        if url.host or url.username or url.query or not url.database:
            raise _refused("one with a host or options: mind the three slashes, and leave options out")
        return SQLiteFile(url.database)
    if url.drivername in _POSTGRESQL:
        if "@" in f"{url.host}{url.database}":
            raise _refused("one with an @ too many. Within a password or a name, @ is written %40, and / is %2F")
        if re.search(r"[;\s]", address.partition("?")[0]):  # user;password@host would show as the name of a user
            raise _refused("one with a ; or a blank. Within a password or a name, these are written %3B and %20")
        return PostgreSQL(url)
    raise _refused(f"one of the kind {url.drivername[:20]!r}")


def _refused(came: str) -> StorageError:
    """`came` holds no password: what could hold one is not repeated."""
    return StorageError(
        "A storage must be a file that ends with .db, .sqlite or .sqlite3, or a URL such as sqlite:///spring.db, "
        f"sqlite:////absolute/spring.db or postgresql://user@host/database, or memory, but got {came}. "
        "Give it in one of these forms."
    )
