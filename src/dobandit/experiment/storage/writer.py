"""Writing to one experiment, inside a transaction that holds its lock."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection

from dobandit.experiment.storage import statements as do
from dobandit.experiment.storage.base import PENDING, ClosedTrial, StoredTrial, Writer
from dobandit.experiment.storage.refusals import must_close, not_pending
from dobandit.experiment.storage.sql_books import SQLBooks

_BATCH = 5000


class SQLWriter(SQLBooks, Writer):
    """The counters are read with the lock and written once, at the end."""

    def __init__(self, connection: Connection, experiment: int, trials: int, closed: int) -> None:
        super().__init__(connection)
        self._experiment = {"of_experiment": experiment}
        self._stored = (trials, closed)
        self.trials, self.closed = trials, closed

    def closed_since(self, position: int) -> Sequence[ClosedTrial]:
        if position >= self.closed:
            return []
        rows = self._connection.execute(do.CLOSED_SINCE, {**self._experiment, "since": position})
        return [ClosedTrial._make(row) for row in rows]

    def pending(self) -> Sequence[StoredTrial]:
        if self.trials == self.closed:
            return []
        return [StoredTrial._make(row) for row in self._connection.execute(do.PENDING_TRIALS, self._experiment)]

    def trial(self, number: int) -> StoredTrial | None:
        row = self._connection.execute(do.TRIAL, {**self._experiment, "of_number": number}).first()
        return None if row is None else StoredTrial._make(row)

    def add(self, trials: Sequence[StoredTrial]) -> int:
        first = self.trials
        entering = iter(trials)
        while batch := [self._entering(trial) for trial in islice(entering, _BATCH)]:
            self._connection.execute(do.ADD, batch if len(batch) > 1 else batch[0])
        return first

    def reissue(self, number: int, lease_expires: float | None) -> None:
        self._update(do.REISSUE, number, {"lease_expires": lease_expires})

    def close(self, trial: StoredTrial) -> int:
        if trial.state == PENDING:
            raise must_close(trial)
        position = self.closed
        values = trial._replace(position=position)._asdict()
        self._update(do.CLOSE, trial.number, {name: values[name] for name in do.CLOSED_FIELDS})
        self.closed += 1
        return position

    def finish(self) -> None:
        """Store the counters."""
        if self._stored != (self.trials, self.closed):
            self._connection.execute(do.COUNT, {**self._experiment, "trials": self.trials, "closed": self.closed})

    def _entering(self, trial: StoredTrial) -> dict[str, Any]:
        values = trial._asdict()
        values["experiment"] = self._experiment["of_experiment"]
        values["number"], values["position"] = self.trials, None
        self.trials += 1
        if trial.state != PENDING:
            values["position"] = self.closed
            self.closed += 1
        return values

    def _update(self, statement: Any, number: int, values: dict[str, Any]) -> None:
        changed = self._connection.execute(statement, {**self._experiment, "of_number": number, **values})
        if changed.rowcount != 1:
            raise not_pending(number, self.trial(number))
