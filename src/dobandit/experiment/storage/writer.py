"""Writing inside a transaction: to the books, and to one experiment whose lock it holds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Insert
from sqlalchemy.exc import IntegrityError

from dobandit.experiment.storage import plainly
from dobandit.experiment.storage import statements as do
from dobandit.experiment.storage.base import CLOSING, EVERY, PENDING, Arrival, ClosedTrial, StoredTrial, Writer
from dobandit.experiment.storage.books import AuditLine, Books, KeptAnswer, StoredToken
from dobandit.experiment.storage.checksums import checksum
from dobandit.experiment.storage.log_reading import LogReader
from dobandit.experiment.storage.parts import Run, run_sum
from dobandit.experiment.storage.refusals import key_in_use, lost, must_close, not_pending
from dobandit.experiment.storage.soundness import closed_from

_BATCH = 5000
_POSITION = StoredTrial._fields.index("position")
_COLUMNS = ("experiment", *StoredTrial._fields, "checksum")


@cache
def insert_text(style: str) -> str:
    """The INSERT of a trial in the driver's own words: SQLAlchemy's would take longer than the database."""
    names = ",".join(f'"{name}"' for name in _COLUMNS)  # do is a word of SQL
    return f"INSERT INTO trials ({names}) VALUES ({','.join(['?' if style == 'qmark' else '%s'] * len(_COLUMNS))})"


def inserted(connection: Connection, statement: Insert, values: dict[str, Any]) -> int:
    """The key that the database gave to a new row."""
    key = connection.execute(statement, values).inserted_primary_key
    assert key is not None
    return int(key[0])


class SQLBooks(Books):
    """The books, on the connection of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def answered(self, owner: str, key: str) -> KeptAnswer | None:
        row = plainly.first(self._connection, do.ANSWER, {"of_owner": owner, "of_key": key})
        return None if row is None else KeptAnswer._make(row)

    def keep_answer(self, answer: KeptAnswer) -> None:
        try:
            plainly.execute(self._connection, do.KEEP_ANSWER, answer._asdict())
        except IntegrityError:
            raise key_in_use(answer.key) from None

    def forget_answers(self, before: float) -> int:
        return self._connection.execute(do.FORGET_ANSWERS, {"before": before}).rowcount

    def note(self, line: AuditLine) -> None:
        plainly.execute(self._connection, do.NOTE, _without_key(line))

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
        self._url = url
        self._experiment, self._key = {"of_experiment": experiment}, (experiment,)
        self._looked_at: StoredTrial | None = None
        self._stored = (trials, closed)
        self.trials, self.closed = trials, closed

    def closed_since(self, position: int) -> Sequence[ClosedTrial]:
        if position >= self.closed:
            return []
        parameters = {**self._experiment, "since": position, "most": EVERY}
        closed = closed_from(plainly.rows(self._connection, do.CLOSED_SINCE, parameters), self._url)
        if len(closed) < self.closed - position:  # some came with an import
            log = self._log()
            log.moment = log.moment._replace(closed=self.closed)  # with what is not stored yet
            return [*map(ClosedTrial._make, log.closed_fields(position, EVERY, ClosedTrial._fields))]
        return closed

    def pending(self) -> Sequence[StoredTrial]:
        return [] if self.trials == self.closed else self._log().pending()

    def trial(self, number: int) -> StoredTrial | None:
        self._looked_at = self._log().trial(number) if 0 <= number < self.trials else None
        return self._looked_at

    def add(self, trials: Sequence[StoredTrial]) -> int:
        first = self.trials
        entering = map(self._entering, trials)
        style = self._connection.dialect.paramstyle
        while batch := list(islice(entering, _BATCH)):
            if len(batch) > 1:
                self._connection.exec_driver_sql(insert_text(style), batch)
            else:
                plainly.execute(self._connection, insert_text(style), batch[0])
        return first

    def reissue(self, number: int, lease_expires: float | None) -> None:
        self._update(do.REISSUE, number, {"lease_expires": lease_expires})

    def close(self, trial: StoredTrial) -> int:
        if trial.state == PENDING:
            raise must_close(trial)
        position, number = self.closed, trial.number
        before = self._looked_at if self._looked_at and self._looked_at.number == number else self.trial(number)
        if before is None:
            raise not_pending(number, None)
        total = checksum(number, position, trial.state, before.do, trial.observation, trial.counts, trial.rounds)
        changed = {name: getattr(trial, name) for name in CLOSING}
        self._update(do.CLOSE, number, {**changed, "position": position, "checksum": total})
        self.closed += 1
        return position

    def publish(self, arrival: Arrival) -> int:
        if arrival.key is None:
            return self.add(arrival.trials)
        run = Run(arrival.key, self.trials, self.closed, len(arrival.trials))
        place = {"of_import": run.key, "at_number": run.number, "at_position": run.position, "total": run_sum(run)}
        if self._connection.execute(do.PUBLISH, place).rowcount != 1:
            raise lost(self._url)
        self.trials, self.closed = self.trials + run.size, self.closed + run.size
        return run.number

    def finish(self) -> None:
        """Store the counters."""
        if self._stored != (self.trials, self.closed):
            counters = {**self._experiment, "trials": self.trials, "closed": self.closed}
            plainly.execute(self._connection, do.COUNT, counters)

    def _entering(self, trial: StoredTrial) -> tuple[Any, ...]:
        """The row of a trial, with the next number, and the next position where it is closed."""
        number, position, total = self.trials, None, None
        self.trials = number + 1
        if trial.state != PENDING:
            position = self.closed
            self.closed = position + 1
            total = checksum(number, position, trial.state, trial.do, trial.observation, trial.counts, trial.rounds)
        return (*self._key, number, *trial[1:_POSITION], position, *trial[_POSITION + 1 :], total)

    def _log(self) -> LogReader:
        """The log as this transaction sees it."""
        return LogReader(partial(plainly.rows, self._connection), *self._key, self._url)

    def _update(self, statement: Any, number: int, values: dict[str, Any]) -> None:
        changed = plainly.execute(self._connection, statement, {**self._experiment, "of_number": number, **values})
        if changed.rowcount != 1:
            raise not_pending(number, self.trial(number))
