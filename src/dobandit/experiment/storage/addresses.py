"""From what a user writes to a database."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from dobandit.errors import StorageError
from dobandit.experiment.storage.engines import Database
from dobandit.experiment.storage.postgresql import PostgreSQL
from dobandit.experiment.storage.sqlite import SQLiteFile

_FILES = (".db", ".sqlite", ".sqlite3")
_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg", "postgres+psycopg")


def open_database(address: str) -> Database:
    """Connects to nothing yet."""
    if not isinstance(address, str) or not address or "\0" in address:
        raise _refused(repr(address))
    if "://" not in address:
        if not address.lower().endswith(_FILES):
            raise _refused(repr(address))
        return SQLiteFile(address)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise _refused(f"a URL that cannot be read, of the kind {address.partition('://')[0]!r}") from None
    if url.drivername in _SQLITE:
        return _sqlite(url)
    if url.drivername in _POSTGRESQL:
        return PostgreSQL(url)
    raise _refused(f"one of the kind {url.drivername!r}")


def _sqlite(url: URL) -> Database:
    if url.host or url.query or not url.database:
        raise _refused(f"{url.render_as_string(hide_password=True)!r} (mind the three slashes; no options)")
    return SQLiteFile(url.database)


def _refused(came: str) -> StorageError:
    """`came` holds no password: where it could, the URL is not repeated."""
    return StorageError(
        "A storage must be a file that ends with .db, .sqlite or .sqlite3, or a URL such as sqlite:///spring.db, "
        f"sqlite:////absolute/spring.db or postgresql://user@host/database, or memory, but got {came}. "
        "Give it in one of these forms."
    )
