"""Writing inside a transaction: tokens, answers and the audit, and one experiment whose lock it holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Insert, Update
from sqlalchemy.exc import IntegrityError

from dobandit.experiment.storage import statements as do
from dobandit.experiment.storage.base import CLOSING, EVERY, PENDING, ClosedTrial, StoredTrial, Writer
from dobandit.experiment.storage.books import AuditLine, Books, KeptAnswer, StoredToken
from dobandit.experiment.storage.checksums import checksum, closed_from, trial_from
from dobandit.experiment.storage.errors import damaged, key_in_use, must_close, not_pending

_BATCH = 5000


def inserted(connection: Connection, statement: Insert, values: dict[str, Any]) -> int:
    """The key that the database gave to a new row."""
    key = connection.execute(statement, values).inserted_primary_key
    assert key is not None
    return int(key[0])


class SQLBooks(Books):
    """Tokens, answers and the audit, on the connection of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def answered(self, owner: str, key: str) -> KeptAnswer | None:
        row = self._connection.execute(do.ANSWER, {"of_owner": owner, "of_key": key}).first()
        return None if row is None else KeptAnswer._make(row)

    def keep_answer(self, answer: KeptAnswer) -> None:
        try:
            self._connection.execute(do.KEEP_ANSWER, answer._asdict())
        except IntegrityError:
            raise key_in_use(answer.key) from None

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
        return [trial_from(row, self._url) for row in self._rows(do.PENDING_TRIALS)]

    def trial(self, number: int) -> StoredTrial | None:
        rows = self._rows(do.TRIAL, of_number=number) if 0 <= number < self.trials else []
        self._looked_at = trial_from(rows[0], self._url) if rows else None
        return self._looked_at

    def add(self, trials: Sequence[StoredTrial]) -> int:
        first = self.trials
        entering = map(self._entering, trials)
        while batch := list(islice(entering, _BATCH)):
            self._connection.execute(do.ADD, batch)
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

    def finish(self) -> None:
        """Store the counters."""
        if self._stored != (self.trials, self.closed):
            counters = {"of_experiment": self._id, "trials": self.trials, "closed": self.closed}
            self._connection.execute(do.COUNT, counters)

    def _entering(self, trial: StoredTrial) -> dict[str, Any]:
        """The row of a trial, with the next number, and the next position where it is closed."""
        number, position, total = self.trials, None, None
        self.trials = number + 1
        if trial.state != PENDING:
            position = self.closed
            self.closed = position + 1
            total = checksum(number, position, trial.state, trial.do, trial.observation, trial.counts, trial.rounds)
        places = {"experiment": self._id, "number": number, "position": position, "checksum": total}
        return {**trial._asdict(), **places}

    def _rows(self, statement: Any, **parameters: int) -> Sequence[Any]:
        return self._connection.execute(statement, {"of_experiment": self._id, **parameters}).fetchall()

    def _update(self, statement: Update, number: int, values: dict[str, Any]) -> None:
        changed = self._connection.execute(statement, {"of_experiment": self._id, "of_number": number, **values})
        if changed.rowcount != 1:
            raise not_pending(number, self.trial(number))
