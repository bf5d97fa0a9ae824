"""What the two databases do differently: connecting, the start of a transaction, and the words for what went wrong."""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from dobandit.errors import StorageError
from dobandit.experiment.forks import remember_storages

PATIENCE = 60.0  # seconds to wait for others who write
NOTHING_STORED = "Nothing of this was stored."

_in_use: weakref.WeakSet[Database] = weakref.WeakSet()
_held: list[threading.RLock] = []


class Database(ABC):
    """One database, and its pooled connections."""

    url: str  # for people: without a password
    engine: Engine
    reader: Engine  # the same connections, where a lone SELECT needs no transaction around it
    alone: threading.RLock | None = None  # where only one connection can write, threads queue here instead of polling

    def keep(self) -> None:
        """Take part in what happens at a fork."""
        _in_use.add(self)

    def present(self) -> bool:
        """Whether there is a database to look into at all. Refuses one that was exchanged since."""
        return True

    def files(self) -> tuple[str, ...]:
        """The files of the database, where it has some of its own here."""
        return ()

    @abstractmethod
    def make(self) -> None:
        """Make an empty database where there is none."""

    @abstractmethod
    def begin(self, connection: Connection) -> None:
        """Start a transaction that will write."""

    @property
    def errors(self) -> type[Exception]:
        """What the driver raises by itself."""
        return self.engine.dialect.loaded_dbapi.Error

    @abstractmethod
    def refuse_triggers(self, connection: Connection) -> None:
        """Raises where whoever made the database would have something run at each of our writes."""

    @abstractmethod
    def keep_out(self, connection: Connection) -> None:
        """Let nobody else make tables until the end of this transaction."""

    @abstractmethod
    def passes(self, error: DBAPIError, attempt: int, seconds: float) -> bool:
        """Whether trouble with the first statement of a transaction is worth another attempt."""

    @abstractmethod
    def explain(self, error: Exception, committing: bool = False) -> StorageError:
        """The error in the user's words."""


# A child must not use its parent's connections. SQLite, moreover, counts its locks by process: a child that inherits
# an open file believes that it holds locks which it does not, and the log beside the file could be removed under it.
# So nothing is open at the moment of a fork, other than what another thread reads just then.


def _before_fork() -> None:
    for database in list(_in_use):
        if database.alone is not None and database.alone.acquire(timeout=PATIENCE):
            _held.append(database.alone)
        database.engine.dispose()


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().release()


def _after_fork_in_child() -> None:
    _held.clear()
    for database in list(_in_use):
        if database.alone is not None:
            database.alone = threading.RLock()
        database.engine.dispose(close=False)


remember_storages(_before_fork, _after_fork_in_parent, _after_fork_in_child)
