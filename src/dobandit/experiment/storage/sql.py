"""Experiments in SQLite or PostgreSQL. What the two do differently is in `engines`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import IntegrityError

from dobandit.experiment.storage import book_statements as books
from dobandit.experiment.storage import statements as do
from dobandit.experiment.storage.base import (
    PENDING,
    ClosedColumns,
    ClosedTrial,
    SingleRounds,
    Storage,
    StoredExperiment,
    StoredTrial,
    Within,
)
from dobandit.experiment.storage.books import AuditLine, KeptAnswer, StoredToken
from dobandit.experiment.storage.connected import Connected, Parameters
from dobandit.experiment.storage.refusals import checked_name, damaged, deleted, missing, storable, taken
from dobandit.experiment.storage.single_rounds import read_single_rounds
from dobandit.experiment.storage.soundness import closed_from, experiment_from, fields_from, trial_from
from dobandit.experiment.storage.sql_books import SQLBooks
from dobandit.experiment.storage.versions import make_tables
from dobandit.experiment.storage.writer import EVERY, SQLWriter

_PAGE = 2000


class SQLStorage(Connected, Storage):
    """Any number of threads, processes and machines may use the same database."""

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
            writer = SQLWriter(connection, self.url, key[0] if key else 0, 0, 0)
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
                self.database.refuse_triggers(connection)
                make_tables(connection, self.database)
            yield connection
        self._ready = True

    def experiments(self) -> Sequence[StoredExperiment]:
        return sorted(self._experiments(do.ALL, {}), key=lambda experiment: experiment.name)

    def experiments_page(
        self, after: str | None = None, before: str | None = None, limit: int | None = None
    ) -> Sequence[StoredExperiment]:
        names = {"behind": after, "ahead": before}
        given = {key: name for key, name in names.items() if name is not None}
        if limit is None or not all(map(storable, given.values())):
            return super().experiments_page(after, before, limit)
        found = self._experiments(do.experiments_page(*given), {**given, "most": limit})
        return found if before is None else found[::-1]

    def find(self, name: str) -> StoredExperiment | None:
        rows = self._experiments(do.FIND, {"of_name": name}) if storable(name) else []
        return rows[0] if rows else None

    def by_id(self, experiment: int) -> StoredExperiment | None:
        rows = self._experiments(do.BY_ID, {"of_experiment": experiment})
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
            writer = SQLWriter(connection, self.url, experiment, counters[0], counters[1])
            yield writer
            writer.finish()

    def counters(self, experiment: int) -> tuple[int, int]:
        found = self._read_plainly(do.COUNTERS, {"of_experiment": experiment})
        if not found:
            raise deleted(experiment, self.url)
        return found[0][0], found[0][1]

    def closed_since(self, experiment: int, position: int) -> Sequence[ClosedTrial]:
        return list(self.closed_columns(experiment, position, EVERY).trials())

    def closed_columns(self, experiment: int, position: int, most: int) -> ClosedColumns:
        parameters = {"of_experiment": experiment, "since": position, "most": most}
        return closed_from(self._read_plainly(do.CLOSED_SINCE, parameters), self.url)

    def single_rounds(self, experiment: int, position: int, most: int) -> SingleRounds | None:
        return read_single_rounds(self._read_plainly, experiment, position, most)

    def closed_fields(
        self, experiment: int, position: int, most: int, fields: tuple[str, ...]
    ) -> Sequence[tuple[Any, ...]]:
        parameters = {"of_experiment": experiment, "since": position, "most": most}
        return fields_from(self._read_plainly(do.closed_fields(fields), parameters), fields, self.url)

    def pending(self, experiment: int) -> Sequence[StoredTrial]:
        return self._trials(do.PENDING_TRIALS, {"of_experiment": experiment})

    def trial(self, experiment: int, number: int) -> StoredTrial | None:
        rows = self._trials(do.TRIAL, {"of_experiment": experiment, "of_number": number})
        return rows[0] if rows else None

    def rows(
        self, experiment: int, after: int = -1, limit: int | None = None, state: str | None = None
    ) -> Iterator[StoredTrial]:
        """Read in pages, so that an iterator left half-way holds neither a lock nor a connection. A trial that is
        closed in the meantime is given as it was; only `issued` and `lease_expires` may be newer."""
        moment, after = self.counters(experiment), max(after, -1)
        if state is None:
            return self._pages(experiment, after, limit, moment)
        return self._pages_of(state, experiment, after, limit, moment)

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

    def last(self, experiment: int, count: int, state: str | None = None) -> Sequence[StoredTrial]:
        self.counters(experiment)
        statement = do.LAST if state is None else do.LAST_OF[state]
        return self._trials(statement, {"of_experiment": experiment, "most": count})[::-1]

    def take_turn(self, experiment: int, now: float, until: float) -> bool:
        with self._transaction(do.COUNTERS, {"of_experiment": experiment}) as (connection, there):
            if there is None:
                raise deleted(experiment, self.url)
            changed = connection.execute(do.TAKE_TURN, {"of_experiment": experiment, "now": now, "until": until})
            return bool(changed.rowcount)

    def end_turn(self, experiment: int, until: float) -> None:
        with self._transaction(do.PING, {}) as (connection, _):
            connection.execute(do.END_TURN, {"of_experiment": experiment, "until": until})

    def tally(self, experiment: int) -> tuple[int, str] | None:
        rows = self._read_plainly(do.TALLY, {"of_experiment": experiment})
        return (rows[0][0], rows[0][1]) if rows else None

    def keep_tally(self, experiment: int, position: int, sums: str) -> None:
        with self._transaction(do.LOCK, {"of_experiment": experiment}) as (connection, there):
            if there is None:
                return
            values = {"of_experiment": experiment, "reached": position, "sums": sums}
            if connection.execute(do.TALLY, {"of_experiment": experiment}).first() is None:
                connection.execute(do.FIRST_TALLY, {"experiment": experiment, "position": position, "sums": sums})
            else:
                connection.execute(do.NEXT_TALLY, values)

    def _experiments(self, statement: Executable, parameters: Parameters) -> list[StoredExperiment]:
        return self._read(lambda row: experiment_from(row, self.url), statement, parameters)

    def _trials(self, statement: Executable, parameters: Parameters) -> list[StoredTrial]:
        return self._read(lambda row: trial_from(row, self.url), statement, parameters)

    @contextmanager
    def _named(self, name: str) -> Iterator[tuple[Connection, StoredExperiment]]:
        """A transaction about an experiment that must be there."""
        if not storable(name) or not self._opened():
            raise missing(name, [], self.url)
        with self._transaction(do.FIND, {"of_name": name}) as (connection, row):
            if row is None:
                raise missing(name, list(connection.execute(do.NAMES).scalars()), self.url)
            yield connection, experiment_from(row, self.url)

    def _page(self, statement: Executable, experiment: int, after: int, stop: int, most: int) -> list[StoredTrial]:
        parameters = {"of_experiment": experiment, "after": after, "stop": stop, "most": most}
        return self._trials(statement, parameters)

    def _pages(self, experiment: int, after: int, limit: int | None, moment: tuple[int, int]) -> Iterator[StoredTrial]:
        trials, closed = moment
        stop = trials if limit is None else min(trials, after + 1 + limit)
        for first in range(after + 1, stop, _PAGE):
            most = min(_PAGE, stop - first)
            page = self._page(do.PAGE, experiment, first - 1, stop, most)
            if len(page) < most:
                self.counters(experiment)  # which raises where it was deleted meanwhile
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
