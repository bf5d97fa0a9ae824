"""PostgreSQL: the row of an experiment is its lock."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event, func, inspect, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from dobandit.errors import StorageError
from dobandit.storage.database import PATIENCE, Database
from dobandit.storage.fork_safety import remember
from dobandit.storage.storage_errors import NOTHING_STORED

_MAKING_TABLES = 0x0D0BA9D17  # any number, as long as all agree on it
_SECRET = re.compile("pass|pwd|secret|token|key", re.IGNORECASE)  # options whose value nobody should read
_AFTERWARDS = {
    "53100": "Its disk is full: free some space there, then repeat this.",
    "42501": "Ask its owner for the permission.",
    "25006": "It may only be read: connect to the server that may be written.",
    "55P03": f"Another process kept the experiment for more than {PATIENCE:.0f} seconds: repeat this when it is done.",
}


class PostgreSQL(Database):
    """One database on a server."""

    def __init__(self, url: URL) -> None:
        if importlib.util.find_spec("psycopg") is None:
            raise StorageError(
                "PostgreSQL needs the package psycopg, which is not installed. Install it with: "
                "pip install 'dobandit[postgres]'"
            )
        options = [name for name in url.query if _SECRET.search(name)]
        shown = url.set(drivername="postgresql").difference_update_query(options)
        hidden = shown.update_query_dict(dict.fromkeys(options, "***")).render_as_string(hide_password=True)
        self.url = hidden.replace("%2A%2A%2A", "***")
        secrets = (url.password, *(text for name in options for text in url.normalized_query[name]))
        self._secrets = [secret for secret in secrets if secret]
        self.engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            isolation_level="READ COMMITTED",  # after the wait for a lock, see what its last holder did
            connect_args={} if "connect_timeout" in url.query else {"connect_timeout": 10},
            pool_timeout=PATIENCE,
            pool_use_lifo=True,
            use_native_hstore=False,
        )
        self.reader = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        event.listen(self.engine, "connect", _limit_waiting)
        remember(self)

    def keep_out(self, connection: Connection) -> None:
        connection.execute(select(func.pg_advisory_xact_lock(_MAKING_TABLES)))

    def table_names(self, connection: Connection) -> set[str]:
        """Whoever may make triggers on a server owns its tables anyway."""
        return {*inspect(connection).get_table_names()}

    def passes(self, error: DBAPIError, attempt: int, seconds: float) -> bool:
        return error.connection_invalidated and attempt == 0  # the pool drops all connections of that age

    def explain(self, error: Exception, committing: bool = False) -> StorageError:
        if isinstance(error, PoolTimeout):
            return StorageError(
                f"{self.url}: all connections of this process were in use for {PATIENCE:.0f} seconds. "
                f"{NOTHING_STORED} Use fewer threads, or shorter steps."
            )
        lost = isinstance(error, DBAPIError) and error.connection_invalidated
        cause = (error.orig if isinstance(error, DBAPIError) else None) or error
        if lost and committing:
            return StorageError(
                f"{self.url}: the connection broke while this was being stored, so it is not known whether it was. "
                "Look at the experiment's last trials before repeating this."
            )
        way_out = "Check that the server runs and the address is right, then repeat this."
        if state := getattr(cause, "sqlstate", None):
            way_out = _AFTERWARDS.get(state, "Mend what it says, then repeat this.")
        elif 'FATAL:  database "' in str(cause):  # errors of connecting have no state
            way_out = "Create the database first, for example with createdb."
        words = self._words(cause)
        return StorageError(f"{self.url} refused this, or is not there ({words}). {NOTHING_STORED} {way_out}")

    def backup(self, target: Path) -> None:
        raise StorageError(
            f"Only an SQLite file can be backed up here, but got {self.url}. Use PostgreSQL's own tool: pg_dump."
        )

    def _words(self, cause: BaseException) -> str:
        text = " ".join(str(cause).split())
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text[:500]


def _limit_waiting(connection: Any, _: object) -> None:
    """No wait without an end, neither for others nor of others for a client whose machine has died in a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{PATIENCE:.0f}s'; SET idle_in_transaction_session_timeout = '600s'")
    connection.commit()
