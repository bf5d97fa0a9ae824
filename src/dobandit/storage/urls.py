"""From what a user writes to a database."""

from __future__ import annotations

import re

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from dobandit.checks import shown
from dobandit.errors import StorageError
from dobandit.storage.database import Database
from dobandit.storage.postgresql import PostgreSQL
from dobandit.storage.sqlite import SQLiteFile

# No path looks like this: user:password@host, an option with a password, or a kind of database with : or //.
_MISTYPED = re.compile(r":.*@|(pass|pwd)\w*\s*=|^(\w*sql\w*|postgres)(\+\w+)?(:|//)", re.IGNORECASE | re.DOTALL)
_FILES = (".db", ".sqlite", ".sqlite3")
_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg", "postgres+psycopg")


def open_database(address: str) -> Database:
    """Connects to nothing yet."""
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
