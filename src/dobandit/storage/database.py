"""How the two databases differ: connecting, the start of a transaction, and the messages of errors."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from dobandit.errors import StorageError

PATIENCE = 60.0  # seconds to wait for others who write
NOTHING_STORED = "Nothing of this was stored."


class Database(ABC):
    """One database, and its pooled connections."""

    url: str  # for people: without a password
    engine: Engine
    reader: Engine  # the same connections, where a lone SELECT needs no transaction around it
    alone: threading.RLock | None = None  # where only one connection can write, threads queue here instead of polling
    reads_alone: bool = False  # whether whoever reads has to queue there too

    # A child must not use its parent's connections. SQLite, moreover, counts its locks by process: a child that
    # inherits an open file believes that it holds locks which it does not, and the log beside the file could be removed
    # under it. So nothing is open at the moment of a fork, other than what another thread reads just then.
    _held = False

    def before_fork(self) -> None:
        self._held = self.alone is not None and self.alone.acquire(timeout=PATIENCE)
        self.engine.dispose()

    def after_fork(self, child: bool) -> None:
        if self.alone is not None and self._held:
            self.alone.release()
        if child:
            self.alone = None if self.alone is None else threading.RLock()
            self.engine.dispose(close=False)

    def present(self) -> bool:
        """Whether there is a database to look into at all. Refuses one that was exchanged since."""
        return True

    def files(self) -> tuple[str, ...]:
        """The files of the database, where it has some of its own here."""
        return ()

    def make(self) -> None:  # noqa: B027
        """Make an empty database where there is none; a server's databases are made by its owner."""

    def begin(self, connection: Connection) -> None:  # noqa: B027
        """Start a transaction that will write, where the driver does not do so with the first statement."""

    def keep_out(self, connection: Connection) -> None:  # noqa: B027
        """Let nobody else make tables until the end of this transaction, where whoever writes is not alone already."""

    @abstractmethod
    def table_names(self, connection: Connection) -> set[str]:
        """The tables that there are, of whatever program. Raises StorageError where whoever made the database would
        have something run at each of our writes."""

    @abstractmethod
    def passes(self, error: DBAPIError, attempt: int, seconds: float) -> bool:
        """Whether trouble with the first statement of a transaction is worth another attempt."""

    @abstractmethod
    def explain(self, error: Exception, committing: bool = False) -> StorageError:
        """The error in the user's words."""
