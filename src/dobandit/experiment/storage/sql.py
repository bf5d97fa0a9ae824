"""Experiments in SQLite or PostgreSQL. What the two do differently is in `engines`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from dobandit.errors import StorageError
from dobandit.experiment.storage import book_statements as books
from dobandit.experiment.storage import schema
from dobandit.experiment.storage import statements as do
from dobandit.experiment.storage.base import PENDING, ClosedTrial, Storage, StoredExperiment, StoredTrial, Within
from dobandit.experiment.storage.books import AuditLine, KeptAnswer, StoredToken
from dobandit.experiment.storage.engines import NOTHING_STORED, PATIENCE, Database
from dobandit.experiment.storage.refusals import checked_name, damaged, deleted, missing, storable, taken
from dobandit.experiment.storage.sql_books import SQLBooks
from dobandit.experiment.storage.versions import check_version, make_tables, refuse_foreign, stored_version
from dobandit.experiment.storage.writer import SQLWriter

_PAGE = 2000
_BROKEN = (SQLAlchemyError, UnicodeError)  # UnicodeError: text that the driver cannot even send

Parameters = Mapping[str, Any]
Result = TypeVar("Result")


class SQLStorage(Storage):
    """Any number of threads, processes and machines may use the same database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.url = database.url
        self._ready = False  # our tables are there, and of this version

    def create(
        self,
        name: str,
        document: str,
        created_at: float,
        trials: Sequence[StoredTrial] = (),
        within: Within | None = None,
    ) -> StoredExperiment:
        checked_name(name)
        values = {"name": name, "document": document, "created_at": created_at, "trials": 0, "closed": 0}
        with self._making() as connection:
            try:
                key = connection.execute(do.CREATE, values).inserted_primary_key
            except IntegrityError:
                raise taken(name, self.url) from None
            writer = SQLWriter(connection, key[0] if key else 0, 0, 0)
            writer.add(trials)
            writer.finish()
            stored = StoredExperiment(key[0] if key else 0, name, document, created_at, writer.trials, writer.closed)
            if within is not None:
                within(stored, writer)
        return stored

    @contextmanager
    def _making(self) -> Iterator[Connection]:
        """A transaction in a database that need not be there yet, nor its tables."""
        if not self._opened():
            if self.database.present():
                self._first(self._refuse_foreign)
            self.database.make()
        with self._transaction(do.PING, {}) as (connection, _):
            if not self._ready:
                make_tables(connection, self.database)
            yield connection
        self._ready = True

    def experiments(self) -> Sequence[StoredExperiment]:
        return sorted(self._read(StoredExperiment._make, do.ALL, {}), key=lambda experiment: experiment.name)

    def find(self, name: str) -> StoredExperiment | None:
        rows = self._read(StoredExperiment._make, do.FIND, {"of_name": name}) if storable(name) else []
        return rows[0] if rows else None

    def by_id(self, experiment: int) -> StoredExperiment | None:
        rows = self._read(StoredExperiment._make, do.BY_ID, {"of_experiment": experiment})
        return rows[0] if rows else None

    def rename(self, name: str, new: str, within: Within | None = None) -> None:
        checked_name(new)
        with self._named(name) as (connection, stored):
            try:
                connection.execute(do.RENAME, {"of_name": name, "new": new})
            except IntegrityError:
                raise taken(new, self.url) from None
            if within is not None:
                within(stored, SQLBooks(connection))

    def delete(self, name: str, within: Within | None = None) -> None:
        with self._named(name) as (connection, stored):
            connection.execute(do.DELETE, {"of_name": name})
            if within is not None:
                within(stored, SQLBooks(connection))

    @contextmanager
    def writing(self, experiment: int) -> Iterator[SQLWriter]:
        if not self._opened():
            raise deleted(experiment, self.url)
        with self._transaction(do.LOCK, {"of_experiment": experiment}) as (connection, counters):
            if counters is None:
                raise deleted(experiment, self.url)
            writer = SQLWriter(connection, experiment, counters[0], counters[1])
            yield writer
            writer.finish()

    def closed_since(self, experiment: int, position: int) -> Sequence[ClosedTrial]:
        return self._read(ClosedTrial._make, do.CLOSED_SINCE, {"of_experiment": experiment, "since": position})

    def trial(self, experiment: int, number: int) -> StoredTrial | None:
        rows = self._read(StoredTrial._make, do.TRIAL, {"of_experiment": experiment, "of_number": number})
        return rows[0] if rows else None

    def rows(
        self, experiment: int, after: int = -1, limit: int | None = None, state: str | None = None
    ) -> Iterator[StoredTrial]:
        """Read in pages, so that an iterator left half-way holds neither a lock nor a connection. A trial that is
        closed in the meantime is given as it was; only `issued` and `lease_expires` may be newer."""
        moment, after = self._counters(experiment), max(after, -1)
        if state is None:
            return self._pages(experiment, after, limit, moment)
        return self._pages_of(state, experiment, after, limit, moment)

    def last(self, experiment: int, count: int, state: str | None = None) -> Sequence[StoredTrial]:
        self._counters(experiment)
        statement = do.LAST if state is None else do.LAST_OF[state]
        return self._read(StoredTrial._make, statement, {"of_experiment": experiment, "most": count})[::-1]

    @contextmanager
    def booking(self) -> Iterator[SQLBooks]:
        with self._making() as connection:
            yield SQLBooks(connection)

    def answer(self, owner: str, key: str) -> KeptAnswer | None:
        rows = self._read(KeptAnswer._make, books.ANSWER, {"of_owner": owner, "of_key": key})
        return rows[0] if rows else None

    def token(self, token: int) -> StoredToken | None:
        rows = self._read(StoredToken._make, books.TOKEN, {"of_token": token})
        return rows[0] if rows else None

    def tokens(self) -> Sequence[StoredToken]:
        return self._read(StoredToken._make, books.TOKENS, {})

    def audit(self, after: int = 0, most: int = 1000, experiment: int | None = None) -> Sequence[AuditLine]:
        limits = {"after": after, "most": most}
        if experiment is None:
            return self._read(AuditLine._make, books.LINES, limits)
        return self._read(AuditLine._make, books.LINES_OF, {**limits, "of_experiment": experiment})

    def close(self) -> None:
        self.database.engine.dispose()

    def _counters(self, experiment: int) -> tuple[int, int]:
        """How many trials there are, and how many are closed."""
        counters = self._read(tuple, do.COUNTERS, {"of_experiment": experiment})
        if not counters:
            raise deleted(experiment, self.url)
        return counters[0][0], counters[0][1]

    def _page(self, statement: Executable, experiment: int, after: int, stop: int, most: int) -> list[StoredTrial]:
        parameters = {"of_experiment": experiment, "after": after, "stop": stop, "most": most}
        return self._read(StoredTrial._make, statement, parameters)

    def _pages(self, experiment: int, after: int, limit: int | None, moment: tuple[int, int]) -> Iterator[StoredTrial]:
        trials, closed = moment
        stop = trials if limit is None else min(trials, after + 1 + limit)
        for first in range(after + 1, stop, _PAGE):
            most = min(_PAGE, stop - first)
            page = self._page(do.PAGE, experiment, first - 1, stop, most)
            if len(page) < most:
                self._counters(experiment)  # which raises where it was deleted meanwhile
                raise damaged(experiment, self.url)
            for trial in page:
                yield trial if trial.position is None or trial.position < closed else _reopened(trial)

    def _pages_of(
        self, state: str, experiment: int, after: int, limit: int | None, moment: tuple[int, int]
    ) -> Iterator[StoredTrial]:
        """Only trials in this state, of which nobody knows how many there are."""
        trials, closed = moment
        left = trials if limit is None else limit
        while left > 0:
            most = min(_PAGE, left)
            page = self._page(do.PAGE_OF[state], experiment, after, trials, most)
            yield from (trial for trial in page if trial.position is None or trial.position < closed)
            if len(page) < most:
                return
            left, after = left - most, page[-1].number

    def _opened(self) -> bool:
        """Whether our tables are there. A database that is not there yet is looked for again at every call."""
        if not self.database.present():
            return False
        if not self._ready:
            version = self._first(self._version)
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

    def _refuse_foreign(self) -> None:
        with self.database.reader.connect() as connection:
            refuse_foreign(connection, self.database)

    def _version(self) -> str | None:
        with self.database.reader.connect() as connection:
            return stored_version(connection)

    def _read(
        self, make: Callable[[Iterable[Any]], Result], statement: Executable, parameters: Parameters
    ) -> list[Result]:
        """One SELECT, of one moment; nothing where there is no database yet."""

        def read() -> list[Result]:
            with self.database.reader.connect() as connection:
                return [make(row) for row in connection.execute(statement, parameters)]

        return self._first(read) if self._opened() else []

    @contextmanager
    def _named(self, name: str) -> Iterator[tuple[Connection, StoredExperiment]]:
        """A transaction about an experiment that must be there."""
        if not storable(name) or not self._opened():
            raise missing(name, [], self.url)
        with self._transaction(do.FIND, {"of_name": name}) as (connection, row):
            if row is None:
                raise missing(name, list(connection.execute(do.NAMES).scalars()), self.url)
            yield connection, StoredExperiment._make(row)

    @contextmanager
    def _transaction(
        self, opening: Executable, parameters: Parameters
    ) -> Iterator[tuple[Connection, Sequence[Any] | None]]:
        """Everything or nothing. `opening` is the first statement, and its row comes with the connection."""
        with self._turn():
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


def _reopened(trial: StoredTrial) -> StoredTrial:
    """The trial as it was before it was closed."""
    return trial._replace(
        state=PENDING,
        position=None,
        observation=None,
        counts=None,
        rounds=1,
        closed_at=None,
        late=False,
        partial=False,
        reason=None,
    )
