"""Experiments in SQLite or PostgreSQL. What the two do differently is in `engines`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import IntegrityError

from dobandit.experiment.storage import statements as do
from dobandit.experiment.storage.base import (
    Fields,
    SingleRounds,
    Storage,
    StoredExperiment,
    StoredTrial,
    Values,
    Within,
)
from dobandit.experiment.storage.books import AuditLine, KeptAnswer, StoredToken
from dobandit.experiment.storage.connected import Parameters
from dobandit.experiment.storage.log_reading import NOWHERE, LogReader
from dobandit.experiment.storage.refusals import checked_name, deleted, missing, storable, taken
from dobandit.experiment.storage.soundness import experiment_from
from dobandit.experiment.storage.staging import Staging
from dobandit.experiment.storage.versions import make_tables, refuse_foreign
from dobandit.experiment.storage.writer import SQLBooks, SQLWriter, inserted


class SQLStorage(Staging, Storage):
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
                key = inserted(connection, do.CREATE, values)
            except IntegrityError:
                raise taken(name, self.url) from None
            writer = SQLWriter(connection, self.url, key, 0, 0)
            writer.add(trials)
            writer.finish()
            stored = StoredExperiment(key, name, document, created_at, writer.trials, writer.closed)
            if within is not None:
                within(stored, writer)
        return stored

    @contextmanager
    def _making(self) -> Iterator[Connection]:
        """A transaction in a database that need not be there yet, nor its tables."""
        if not self._opened():
            if self.database.present():
                self._look(lambda connection: refuse_foreign(connection, self.database))
            self.database.make()
        with self._transaction() as (connection, _):
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

    @contextmanager
    def booking(self) -> Iterator[SQLBooks]:
        with self._making() as connection:
            yield SQLBooks(connection)

    def answer(self, owner: str, key: str) -> KeptAnswer | None:
        rows = self._read(do.ANSWER, {"of_owner": owner, "of_key": key})
        return KeptAnswer(*rows[0]) if rows else None

    def token(self, token: int) -> StoredToken | None:
        rows = self._read(do.TOKEN, {"of_token": token})
        return StoredToken(*rows[0]) if rows else None

    def tokens(self) -> Sequence[StoredToken]:
        return [StoredToken(*row) for row in self._read(do.TOKENS, {})]

    def audit(self, after: int = 0, most: int = 1000, experiment: int | None = None) -> Sequence[AuditLine]:
        statement, whose = do.LINES, {}
        if experiment is not None:
            statement, whose = do.LINES_OF, {"of_experiment": experiment}
        return [AuditLine(*row) for row in self._read(statement, {"after": after, "most": most, **whose})]

    # -- the log, read without keeping others out ------------------------------------------------------------------

    def counters(self, experiment: int) -> tuple[int, int]:
        found = self._read(do.COUNTERS, {"of_experiment": experiment})
        if not found:
            raise deleted(experiment, self.url)
        return found[0][0], found[0][1]

    def single_rounds(self, experiment: int, position: int, most: int) -> SingleRounds | None:
        return self._log(experiment).single_rounds(position, most)

    def closed_fields(self, experiment: int, position: int, most: int, fields: Fields) -> Values:
        return self._log(experiment).closed_fields(position, most, fields)

    def closed_groups(self, experiment: int, position: int, most: int, fields: Fields) -> Values:
        return self._log(experiment).closed_groups(position, most, fields)

    def imports_like(self, experiment: int, trials: int, rounds: int) -> Sequence[tuple[int, int]]:
        return self._log(experiment).imports_like(trials, rounds)

    def pending(self, experiment: int) -> Sequence[StoredTrial]:
        return self._log(experiment).pending()

    def trial(self, experiment: int, number: int) -> StoredTrial | None:
        return self._log(experiment).trial(number)

    def rows(
        self, experiment: int, after: int = -1, limit: int | None = None, state: str | None = None
    ) -> Iterator[StoredTrial]:
        """Read in pages, so that an iterator left half-way holds neither a lock nor a connection. A trial that is
        closed in the meantime is given as it was; only `issued` and `lease_expires` may be newer."""
        return self._log(experiment, there=True).rows(max(after, -1) + 1, limit, state)

    def last(self, experiment: int, count: int, state: str | None = None) -> Sequence[StoredTrial]:
        return self._log(experiment, there=True).last(count, state)

    def _log(self, experiment: int, there: bool = False) -> LogReader:
        """The log of an experiment, which must be there, or has no trials where it is not."""
        log = LogReader(self._read, experiment, self.url)
        if there and log.moment is NOWHERE:
            raise deleted(experiment, self.url)
        return log

    # -- beside the log --------------------------------------------------------------------------------------------

    def take_turn(self, experiment: int, now: float, until: float) -> bool:
        if self._read(
            do.TURN, {"of_experiment": experiment, "now": now}
        ):  # it is another's: whoever waits keeps nobody from writing
            return False
        with self._transaction() as (connection, _):
            changed = connection.execute(do.TAKE_TURN, {"of_experiment": experiment, "now": now, "until": until})
        if not changed.rowcount:
            self.counters(experiment)  # which raises where it was deleted
        return bool(changed.rowcount)

    def end_turn(self, experiment: int, until: float) -> None:
        with self._transaction() as (connection, _):
            connection.execute(do.END_TURN, {"of_experiment": experiment, "until": until})

    def tally(self, experiment: int) -> tuple[int, str] | None:
        rows = self._read(do.TALLY, {"of_experiment": experiment})
        return (rows[0][0], rows[0][1]) if rows else None

    def keep_tally(self, experiment: int, position: int, sums: str) -> None:
        with self._transaction(do.LOCK, {"of_experiment": experiment}) as (connection, there):
            if there is None:
                return
            if connection.execute(do.TALLY, {"of_experiment": experiment}).first() is None:
                connection.execute(do.FIRST_TALLY, {"experiment": experiment, "position": position, "sums": sums})
            else:
                connection.execute(do.NEXT_TALLY, {"of_experiment": experiment, "reached": position, "sums": sums})

    def _experiments(self, statement: Executable, parameters: Parameters) -> list[StoredExperiment]:
        return [experiment_from(row, self.url) for row in self._read(statement, parameters)]

    @contextmanager
    def _named(self, name: str) -> Iterator[tuple[Connection, StoredExperiment]]:
        """A transaction about an experiment that must be there."""
        if not storable(name) or not self._opened():
            raise missing(name, [], self.url)
        with self._transaction(do.FIND, {"of_name": name}) as (connection, row):
            if row is None:
                raise missing(name, list(connection.execute(do.NAMES).scalars()), self.url)
            yield connection, experiment_from(row, self.url)
