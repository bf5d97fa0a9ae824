"""A database: its connections and transactions, and in what SQLite and PostgreSQL differ."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dobandit.errors import StorageError
from dobandit.storage.schema import has_tables, make_tables
from dobandit.storage.statements import PING
from dobandit.storage.storage_errors import NOTHING_STORED

PATIENCE = 60.0  # seconds to wait for others who write
_BROKEN = (SQLAlchemyError, UnicodeError)  # UnicodeError: text that the driver cannot even send

Parameters = Mapping[str, Any]
Result = TypeVar("Result")


class Database(ABC):
    """One database, and its pooled connections. Any number of threads, processes and machines may use it."""

    url: str  # for people: without a password
    engine: Engine
    reader: Engine  # the same connections, where a lone SELECT needs no transaction around it
    alone: threading.RLock | None = None  # where only one connection can write, threads queue here instead of polling
    reads_alone: bool = False  # whether whoever reads has to queue there too

    _ready = False  # our tables are there, and of this version

    # -- in what they differ -------------------------------------------------------------------------------------

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

    @abstractmethod
    def backup(self, target: Path) -> None:
        """Copy the database, as it is at one moment, into a new file."""

    # -- forks ---------------------------------------------------------------------------------------------------

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

    # -- reading and writing -------------------------------------------------------------------------------------

    def opened(self) -> bool:
        """Whether our tables are there. A database that is not there yet is looked for again at every call."""
        if not self.present():
            return False
        if not self._ready:
            self._ready = self._look(lambda connection: has_tables(self.table_names(connection), connection, self.url))
        return self._ready

    def read(self, statement: Executable, parameters: Parameters = MappingProxyType({})) -> Sequence[Any]:
        """All rows of one SELECT, of one moment, without keeping others out; none where there is no database yet."""
        if not self.opened():
            return []
        return self._look(lambda connection: connection.execute(statement, parameters).fetchall())

    @contextmanager
    def transaction(
        self, opening: Executable = PING, parameters: Parameters = MappingProxyType({})
    ) -> Iterator[tuple[Connection, Any]]:
        """Everything or nothing. `opening` is the first statement, and its row comes with the connection."""
        with self._alone():
            connection, row = self._first(lambda: self._begun(opening, parameters))
            with connection:  # which rolls back what is not committed
                try:
                    yield connection, row
                except _BROKEN as error:
                    raise self.explain(error) from None
                try:
                    connection.commit()
                except _BROKEN as error:
                    raise self.explain(error, committing=True) from None

    @contextmanager
    def making(self) -> Iterator[Connection]:
        """A transaction in a database that need not be there yet, nor its tables."""
        if not self.opened():
            self.make()
        with self.transaction() as (connection, _):
            if not self._ready:
                self.keep_out(connection)
                if not has_tables(self.table_names(connection), connection, self.url):
                    make_tables(connection)
            yield connection
        self._ready = True

    def _look(self, at: Callable[[Connection], Result]) -> Result:
        def look() -> Result:
            with self.reader.connect() as connection:
                return at(connection)

        with self._alone() if self.reads_alone else nullcontext():
            return self._first(look)

    def _begun(self, opening: Executable, parameters: Parameters) -> tuple[Connection, Any]:
        connection = self.engine.connect()
        try:
            self.begin(connection)
            return connection, connection.execute(opening, parameters).first()
        except BaseException:
            connection.close()
            raise

    def _first(self, run: Callable[[], Result]) -> Result:
        """Run what comes first in a transaction. Nothing was sent before it, so that it may be repeated."""
        started = time.monotonic()
        for attempt in count():
            try:
                return run()
            except _BROKEN as error:
                seconds = time.monotonic() - started
                if not isinstance(error, DBAPIError) or not self.passes(error, attempt, seconds):
                    raise self.explain(error) from None
        raise AssertionError

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Threads wait for each other here, where the database lets only one connection write."""
        lock = self.alone
        if lock is None:
            yield
        elif lock.acquire(timeout=PATIENCE):
            try:
                yield
            finally:
                lock.release()
        else:
            raise StorageError(
                f"{self.url} was kept by another thread for more than {PATIENCE:.0f} seconds. {NOTHING_STORED} "
                "Repeat this when it is done."
            )
