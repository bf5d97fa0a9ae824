"""Experiments in a database. What SQLite and PostgreSQL do differently is in their own modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Executable, Insert, Update
from sqlalchemy.exc import IntegrityError

from dobandit.errors import ConflictError, ExperimentError
from dobandit.rows.stored_trial import CLOSING, PENDING, ClosedTrial, StoredTrial, closed_trial
from dobandit.storage import statements as do
from dobandit.storage.access import AuditLine, Books, KeptAnswer, StoredToken
from dobandit.storage.checksums import Row, check_columns, checksum, closed_from, counters_from, row_from
from dobandit.storage.contract import (
    EVERY,
    Fields,
    Storage,
    StoredExperiment,
    Values,
    Writer,
    Written,
    entered,
    page_of,
)
from dobandit.storage.database import Database, Parameters
from dobandit.storage.sqlite import SQLiteMemory
from dobandit.storage.storage_errors import checked_name, damaged, deleted, missing, not_pending, storable, taken

_PAGE = 2000  # trials in memory at a time
_BATCH = 5000  # trials that enter with one statement
_DEFAULTS = StoredTrial._field_defaults


class SQLStorage(Storage):
    """Any number of threads, processes and machines may use the same database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.url = database.url

    def close(self) -> None:
        self.database.engine.dispose()

    def files(self) -> tuple[str, ...]:
        return self.database.files()

    def backup(self, target: Path) -> None:
        self.database.backup(target)

    def create(
        self, name: str, document: str, created_at: float, trials: Sequence[StoredTrial] = ()
    ) -> StoredExperiment:
        checked_name(name)
        values = {"name": name, "document": document, "created_at": created_at, "trials": 0, "closed": 0}
        with self.database.making() as connection:
            try:
                key = inserted(connection, do.CREATE, values)
            except IntegrityError:
                raise taken(name, self.url) from None
            writer = SQLWriter(connection, self.url, key, 0, 0)
            writer.add(trials)
            writer.finish()
            stored = StoredExperiment(key, name, document, created_at, writer.trials, writer.closed)
            entered(Written(key, writer.written, stored), writer)
        return stored

    def experiments(
        self, after: str | None = None, before: str | None = None, limit: int | None = None
    ) -> Sequence[StoredExperiment]:
        most = EVERY if limit is None else limit
        if not storable((after or "") + (before or "")):  # no database takes such a name, even to compare it
            return page_of(self.experiments(), after, before, limit)
        if before is None:
            return self._rows(StoredExperiment, do.EXPERIMENTS, {"after": after or "", "most": most})
        return self._rows(StoredExperiment, do.EXPERIMENTS_BEFORE, {"before": before, "most": most})[::-1]

    def find(self, name: str) -> StoredExperiment | None:
        return self._first(StoredExperiment, do.FIND, {"of_name": name}) if storable(name) else None

    def by_id(self, experiment: int) -> StoredExperiment | None:
        return self._first(StoredExperiment, do.BY_ID, {"of_experiment": experiment})

    def rename(self, name: str, new: str) -> None:
        checked_name(new)
        with self._named(name) as (connection, stored):
            try:
                connection.execute(do.RENAME, {"of_name": name, "new": new})
            except IntegrityError:
                raise taken(new, self.url) from None
            entered(Written(stored.id, stored=stored), SQLBooks(connection))

    def delete(self, name: str) -> None:
        with self._named(name) as (connection, stored):
            connection.execute(do.DELETE, {"of_name": name})
            entered(Written(stored.id, stored=stored), SQLBooks(connection))

    @contextmanager
    def writing(self, experiment: int) -> Iterator[SQLWriter]:
        if not self.database.opened():
            raise deleted(experiment, self.url)
        with self.database.transaction(do.LOCK, {"of_experiment": experiment}) as (connection, counters):
            if counters is None:
                raise deleted(experiment, self.url)
            writer = SQLWriter(connection, self.url, experiment, *counters_from(counters, self.url))
            yield writer
            writer.finish()
            if writer.written:
                entered(Written(experiment, writer.written), writer)

    # -- the log, read without keeping others out ------------------------------------------------------------------

    def counters(self, experiment: int) -> tuple[int, int]:
        found = self.database.read(do.COUNTERS, {"of_experiment": experiment})
        if not found:
            raise deleted(experiment, self.url)
        return counters_from(found[0], self.url)

    def closed_since(self, experiment: int, position: int, most: int = EVERY) -> Sequence[ClosedTrial]:
        parameters = {"of_experiment": experiment, "since": position, "most": most}
        closed = closed_from(self.database.read(do.CLOSED_SINCE, parameters), self.url)
        if closed and (closed[0].position, closed[-1].position) != (position, position + len(closed) - 1):
            raise damaged(experiment, self.url)
        return closed

    def closed_fields(self, experiment: int, position: int, most: int, fields: Fields) -> Values:
        parameters = {"of_experiment": experiment, "since": position, "most": most}
        names = dict.fromkeys(("position", *fields))
        rows = self.database.read(do.closed_fields(tuple(names)), parameters)
        if not rows:
            return []
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        check_columns(columns, columns.values(), self.url)
        if (rows[0][0], rows[-1][0]) != (position, position + len(rows) - 1):
            raise damaged(experiment, self.url)
        return list(zip(*(columns[name] for name in fields), strict=True))

    def pending(self, experiment: int) -> Sequence[StoredTrial]:
        return self._rows(StoredTrial, do.PENDING_TRIALS, {"of_experiment": experiment})

    def trial(self, experiment: int, number: int) -> StoredTrial | None:
        return self._first(StoredTrial, do.TRIAL, {"of_experiment": experiment, "of_number": number})

    def rows(
        self, experiment: int, after: int = -1, limit: int | None = None, state: str | None = None
    ) -> Iterator[StoredTrial]:
        """Read in pages, so that an iterator left half-way holds neither a lock nor a connection. A trial that is
        closed in the meantime is given as it was; only `issued` and `lease_expires` may be newer."""
        trials, closed = self.counters(experiment)
        return self._pages(experiment, max(after, -1), trials if limit is None else limit, state, trials, closed)

    def _pages(
        self, experiment: int, after: int, left: int, state: str | None, trials: int, closed: int
    ) -> Iterator[StoredTrial]:
        while left > 0 and after < trials - 1:
            most = min(_PAGE, left)
            place = {"of_experiment": experiment, "after": after, "stop": trials, "most": most}
            page = self._rows(StoredTrial, do.PAGE[state], place)
            if state is None and len(page) < min(most, trials - 1 - after):
                self.counters(experiment)  # which raises where it was deleted meanwhile
                raise damaged(experiment, self.url)
            yield from (trial for trial in (_as_of(one, closed) for one in page) if state in (None, trial.state))
            if len(page) < most:
                return
            left -= len(page)
            after = page[-1].number

    def last(self, experiment: int, count: int, state: str | None = None) -> Sequence[StoredTrial]:
        found = self._rows(StoredTrial, do.LAST[state], {"of_experiment": experiment, "most": count})[::-1]
        if not found:
            self.counters(experiment)  # which raises where it was deleted
        return found

    # -- beside the log --------------------------------------------------------------------------------------------

    def tally(self, experiment: int) -> tuple[int, str] | None:
        rows = self.database.read(do.TALLY, {"of_experiment": experiment})
        return (rows[0][0], rows[0][1]) if rows else None

    def keep_tally(self, experiment: int, position: int, sums: str) -> None:
        with self.database.transaction() as (connection, _):
            connection.execute(do.KEEP_TALLY, {"of_experiment": experiment, "reached": position, "sums": sums})

    @contextmanager
    def booking(self) -> Iterator[SQLBooks]:
        with self.database.making() as connection:
            yield SQLBooks(connection)

    def answer(self, owner: str, key: str) -> KeptAnswer | None:
        rows = self.database.read(do.ANSWER, {"of_owner": owner, "of_key": key})
        return KeptAnswer(*rows[0]) if rows else None

    def token(self, token: int) -> StoredToken | None:
        rows = self.database.read(do.TOKEN, {"of_token": token})
        return StoredToken(*rows[0]) if rows else None

    def tokens(self) -> Sequence[StoredToken]:
        return [StoredToken(*row) for row in self.database.read(do.TOKENS)]

    def audit(self, after: int = 0, most: int = 1000, experiment: int | None = None) -> Sequence[AuditLine]:
        statement, whose = do.LINES, {}
        if experiment is not None:
            statement, whose = do.LINES_OF, {"of_experiment": experiment}
        return [AuditLine(*row) for row in self.database.read(statement, {"after": after, "most": most, **whose})]

    def _rows(self, kind: type[Row], statement: Executable, parameters: Parameters) -> list[Row]:
        return [row_from(kind, row, self.url) for row in self.database.read(statement, parameters)]

    def _first(self, kind: type[Row], statement: Executable, parameters: Parameters) -> Row | None:
        rows = self._rows(kind, statement, parameters)
        return rows[0] if rows else None

    @contextmanager
    def _named(self, name: str) -> Iterator[tuple[Connection, StoredExperiment]]:
        """A transaction about an experiment that must be there."""
        if not storable(name) or not self.database.opened():
            raise missing(name, [], self.url)
        with self.database.transaction(do.FIND, {"of_name": name}) as (connection, row):
            if row is None:
                raise missing(name, list(connection.execute(do.NAMES).scalars()), self.url)
            yield connection, row_from(StoredExperiment, row, self.url)


def _as_of(trial: StoredTrial, closed: int) -> StoredTrial:
    """The trial as it was when so many were closed: one that was closed later was pending."""
    if trial.position is None or trial.position < closed:
        return trial
    values: dict[str, Any] = {name: _DEFAULTS[name] for name in CLOSING}
    return trial._replace(**values, position=None)


class MemoryStorage(SQLStorage):
    """A database in memory, which no other process sees and which lives as long as this one: for tests, notebooks and
    simulations."""

    def __init__(self) -> None:
        super().__init__(SQLiteMemory())

    def close(self) -> None:
        """Whoever closes an experiment may open it again."""


# -- inside a transaction ----------------------------------------------------------------------------------------------


def inserted(connection: Connection, statement: Insert, values: dict[str, Any]) -> int:
    """The key that the database gave to a new row."""
    key = connection.execute(statement, values).inserted_primary_key
    assert key is not None
    return int(key[0])


class SQLBooks(Books):
    """Tokens, answers and the audit, on the connection of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def keep_answer(self, answer: KeptAnswer) -> None:
        try:
            self._connection.execute(do.KEEP_ANSWER, answer._asdict())
        except IntegrityError:
            raise ConflictError(
                f"A key belongs to one request, but {answer.key!r} was used by another one at the same time. Repeat "
                "this to get its answer."
            ) from None

    def forget_answers(self, before: float) -> int:
        return self._connection.execute(do.FORGET_ANSWERS, {"before": before}).rowcount

    def note(self, line: AuditLine) -> None:
        self._connection.execute(do.NOTE, _without_key(line))

    def add_token(self, token: StoredToken) -> int:
        return inserted(self._connection, do.ADD_TOKEN, _without_key(token))

    def revoke_token(self, token: int, at: float) -> bool:
        return self._connection.execute(do.REVOKE, {"of_token": token, "at": at}).rowcount == 1


def _without_key(row: AuditLine | StoredToken) -> dict[str, Any]:
    """The values of a row whose first one is given by the database."""
    return dict(islice(row._asdict().items(), 1, None))


class SQLWriter(SQLBooks, Writer):
    """The counters are read with the lock and written once, at the end."""

    def __init__(self, connection: Connection, url: str, experiment: int, trials: int, closed: int) -> None:
        super().__init__(connection)
        self._url, self._id = url, experiment
        self._looked_at: StoredTrial | None = None
        self._stored = (trials, closed)
        self.trials, self.closed = trials, closed
        self.written: list[StoredTrial] = []

    def closed_since(self, position: int) -> Sequence[ClosedTrial]:
        if position >= self.closed:
            return []
        closed = closed_from(self._rows(do.CLOSED_SINCE, since=position, most=EVERY), self._url)
        if len(closed) != self.closed - position or closed[0].position != position:
            raise damaged(self._id, self._url)
        return closed

    def pending(self) -> Sequence[StoredTrial]:
        if self.trials == self.closed:
            return []
        return [row_from(StoredTrial, row, self._url) for row in self._rows(do.PENDING_TRIALS)]

    def trial(self, number: int) -> StoredTrial | None:
        rows = self._rows(do.TRIAL, of_number=number) if 0 <= number < self.trials else []
        self._looked_at = row_from(StoredTrial, rows[0], self._url) if rows else None
        return self._looked_at

    def add(self, trials: Sequence[StoredTrial]) -> int:
        first = self.trials
        self.written += [trial._replace(number=number) for number, trial in enumerate(trials, first)]
        rows = map(self._entering, trials)
        while batch := list(islice(rows, _BATCH)):
            self._connection.execute(do.ADD, batch)
        return first

    def reissue(self, number: int, lease_expires: float | None) -> None:
        self._update(do.REISSUE, number, {"lease_expires": lease_expires})
        trial = self.trial(number)
        if trial is not None:
            self.written.append(trial)

    def close(self, trial: StoredTrial) -> int:
        if trial.state == PENDING:
            raise ExperimentError(
                f"Closing needs the state told, failed or abandoned, but trial {trial.number} came as {trial.state}. "
                "Set its state first."
            )
        position, number = self.closed, trial.number
        before = self._looked_at if self._looked_at and self._looked_at.number == number else self.trial(number)
        if before is None:
            raise not_pending(number, None)
        changed = {name: getattr(trial, name) for name in CLOSING}
        total = _checksum(trial._replace(do=before.do), number, position)
        self._update(do.CLOSE, number, {**changed, "position": position, "checksum": total})
        self.closed += 1
        self.written.append(trial)
        return position

    def finish(self) -> None:
        """Store the counters."""
        if self._stored != (self.trials, self.closed):
            counters = {"of_experiment": self._id, "trials": self.trials, "closed": self.closed}
            self._connection.execute(do.COUNT, counters)

    def _entering(self, trial: StoredTrial) -> dict[str, Any]:
        """The row of a trial, with the next number, and the next position where it is closed."""
        number, position = self.trials, None if trial.state == PENDING else self.closed
        self.trials += 1
        self.closed += trial.state != PENDING
        places = {"number": number, "position": position, "checksum": _checksum(trial, number, position)}
        return {"experiment": self._id, **trial._asdict(), **places}

    def _rows(self, statement: Any, **parameters: int) -> Sequence[Any]:
        return self._connection.execute(statement, {"of_experiment": self._id, **parameters}).fetchall()

    def _update(self, statement: Update, number: int, values: dict[str, Any]) -> None:
        changed = self._connection.execute(statement, {"of_experiment": self._id, "of_number": number, **values})
        if changed.rowcount != 1:
            raise not_pending(number, self.trial(number))


def _checksum(trial: StoredTrial, number: int, position: int | None) -> int | None:
    """Of a trial at its place in the log; None where it is pending."""
    return None if position is None else checksum(closed_trial(trial, number, position))
