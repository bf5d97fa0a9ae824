"""A database that is connected to: whether our tables are there, reading, and transactions that write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from types import MappingProxyType
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dobandit.errors import StorageError
from dobandit.experiment.storage import plainly, schema
from dobandit.experiment.storage.engines import NOTHING_STORED, PATIENCE, Database
from dobandit.experiment.storage.statements import PING
from dobandit.experiment.storage.together import Shared, shared_in, sharing
from dobandit.experiment.storage.versions import check_version, stored_version

_BROKEN = (SQLAlchemyError, UnicodeError)  # UnicodeError: text that the driver cannot even send

Parameters = Mapping[str, Any]
Result = TypeVar("Result")


class Connected:
    """Any number of threads, processes and machines may use the same database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.url = database.url
        self._ready = False  # our tables are there, and of this version

    def close(self) -> None:
        self.database.engine.dispose()

    def _opened(self) -> bool:
        """Whether our tables are there. A database that is not there yet is looked for again at every call."""
        if not self.database.present():
            return False
        if not self._ready:
            version = self._look(stored_version)
            self._look(self.database.refuse_triggers)
            if version in schema.ADDED_TO:
                self._bring_up_to_date(version)
            elif version is not None:
                check_version(version, self.url)
            self._ready = version is not None
        return self._ready

    def files(self) -> tuple[str, ...]:
        return self.database.files()

    def _bring_up_to_date(self, version: str) -> None:
        """Add what older tables lack. All or nothing, and one process alone does it."""
        from dobandit.experiment.storage.upgrade import bring_up_to_date  # Alembic, which is needed once

        with self._turn():
            try:
                bring_up_to_date(self.database)
            except StorageError as error:
                raise StorageError(
                    f"{error} (Its tables are of version {version}, and are brought to version {schema.VERSIONS[-1]} "
                    "before they are read.)"
                ) from None

    def _look(self, at: Callable[[Connection], Result]) -> Result:
        """What there is to see, without keeping others out."""

        def look() -> Result:
            with self.database.reader.connect() as connection:
                try:
                    return at(connection)
                except self.database.errors as error:  # of rows, which are read as the driver gives them
                    raise self.database.explain(error) from None

        return self._first(look)

    def _read(self, statement: Executable, parameters: Parameters) -> list[tuple[Any, ...]]:
        """One SELECT, of one moment; nothing where there is no database yet."""
        return self._look(lambda connection: plainly.rows(connection, statement, parameters)) if self._opened() else []

    @contextmanager
    def _transaction(
        self, opening: Executable = PING, parameters: Parameters = MappingProxyType({})
    ) -> Iterator[tuple[Connection, Sequence[Any] | None]]:
        """Everything or nothing. `opening` is the first statement, and its row comes with the connection."""
        shared = shared_in(self)
        if shared is not None and shared.connection is not None:
            with self._part(shared, shared.connection, opening, parameters) as row:
                yield shared.connection, row
            return
        with self._turn(), ExitStack() as undoing:
            connection, row = self._first(lambda: self._begun(opening, parameters))
            undoing.enter_context(connection)  # which rolls back what is not committed
            try:
                yield connection, row
            except (*_BROKEN, self.database.errors) as error:  # some rows are read as the driver gives them
                raise self.database.explain(error) from None
            if shared is None:
                self._commit(connection)
            else:  # it stays open for the next
                shared.connection = connection
                undoing.pop_all()

    def _commit(self, connection: Connection) -> None:
        try:
            connection.commit()
        except _BROKEN as error:
            raise self.database.explain(error, committing=True) from None

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._turn(), sharing(self) as shared, ExitStack() as undoing:
            try:
                yield
            finally:
                if shared.connection is not None:
                    undoing.enter_context(shared.connection)
            if shared.broken is not None:
                raise shared.broken
            if shared.connection is not None:
                self._commit(shared.connection)
        for act in shared.afterwards:
            act()

    @contextmanager
    def _part(
        self, shared: Shared, connection: Connection, opening: Executable, parameters: Parameters
    ) -> Iterator[Sequence[Any] | None]:
        """Everything or nothing, inside of a transaction that goes on. Where a part cannot be undone by itself, the
        database has given up the whole transaction: then nothing of it is stored."""
        if shared.broken is not None:
            raise shared.broken
        try:
            plainly.execute(connection, "SAVEPOINT part")
            yield plainly.first(connection, opening, parameters)
            plainly.execute(connection, "RELEASE part")
        except BaseException as error:
            try:
                plainly.execute(connection, "ROLLBACK TO part")
                plainly.execute(connection, "RELEASE part")
            except _BROKEN as worse:
                shared.broken = self.database.explain(worse)
            if isinstance(error, (*_BROKEN, self.database.errors)):
                raise self.database.explain(error) from None
            raise

    def _begun(self, opening: Executable, parameters: Parameters) -> tuple[Connection, Sequence[Any] | None]:
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
    def _turn(self) -> Iterator[None]:
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
