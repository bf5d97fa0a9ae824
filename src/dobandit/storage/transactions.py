"""A database that is connected to: whether our tables are there, reading, and transactions that write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from types import MappingProxyType
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dobandit.errors import StorageError
from dobandit.storage.database import NOTHING_STORED, PATIENCE, Database
from dobandit.storage.schema import check_version, make_tables
from dobandit.storage.statements import PING

_BROKEN = (SQLAlchemyError, UnicodeError)  # UnicodeError: text that the driver cannot even send

Parameters = Mapping[str, Any]
Result = TypeVar("Result")


class Transactions:
    """Any number of threads, processes and machines may use the same database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.url = database.url
        self._ready = False  # our tables are there, and of this version

    def close(self) -> None:
        self.database.engine.dispose()

    def files(self) -> tuple[str, ...]:
        return self.database.files()

    def _opened(self) -> bool:
        """Whether our tables are there. A database that is not there yet is looked for again at every call."""
        if not self.database.present():
            return False
        if not self._ready:
            self._ready = self._look(lambda connection: check_version(connection, self.database))
        return self._ready

    def _look(self, at: Callable[[Connection], Result]) -> Result:
        """What there is to see, without keeping others out."""

        def look() -> Result:
            with self.database.reader.connect() as connection:
                return at(connection)

        with self._alone() if self.database.reads_alone else nullcontext():
            return self._first(look)

    def _read(self, statement: Executable, parameters: Parameters) -> Sequence[Any]:
        """All rows of one SELECT, of one moment; none where there is no database yet."""
        if not self._opened():
            return []
        return self._look(lambda connection: connection.execute(statement, parameters).fetchall())

    @contextmanager
    def _transaction(
        self, opening: Executable = PING, parameters: Parameters = MappingProxyType({})
    ) -> Iterator[tuple[Connection, Any]]:
        """Everything or nothing. `opening` is the first statement, and its row comes with the connection."""
        with self._alone():
            connection, row = self._first(lambda: self._begun(opening, parameters))
            with connection:  # which rolls back what is not committed
                try:
                    yield connection, row
                except _BROKEN as error:
                    raise self.database.explain(error) from None
                try:
                    connection.commit()
                except _BROKEN as error:
                    raise self.database.explain(error, committing=True) from None

    @contextmanager
    def _making(self) -> Iterator[Connection]:
        """A transaction in a database that need not be there yet, nor its tables."""
        if not self._opened():
            self.database.make()
        with self._transaction() as (connection, _):
            if not self._ready:
                make_tables(connection, self.database)
            yield connection
        self._ready = True

    def _begun(self, opening: Executable, parameters: Parameters) -> tuple[Connection, Any]:
        connection = self.database.engine.connect()
        try:
            self.database.begin(connection)
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
                if not isinstance(error, DBAPIError) or not self.database.passes(error, attempt, seconds):
                    raise self.database.explain(error) from None
        raise AssertionError

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Threads wait for each other here, where the database lets only one connection write."""
        lock = self.database.alone
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
