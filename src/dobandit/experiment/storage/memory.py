"""Experiments that live as long as the process: for tests, notebooks and simulations."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from operator import attrgetter

from dobandit.experiment.forks import remember_storage
from dobandit.experiment.storage.base import (
    CLOSING,
    IMPORTED,
    PENDING,
    ClosedTrial,
    Fields,
    Storage,
    StoredExperiment,
    StoredTrial,
    Values,
    Within,
    Writer,
)
from dobandit.experiment.storage.books import AuditLine, Books, KeptAnswer, StoredToken
from dobandit.experiment.storage.memory_books import MemoryBooks, Shelf
from dobandit.experiment.storage.refusals import checked_name, deleted, missing, must_close, not_pending, taken


class _Log:
    """One experiment. `pending` keeps the order of the numbers, because trials enter it in that order.

    The places of trials are kept beside them, so that those of an import enter without being looked at.
    """

    def __init__(self, experiment: StoredExperiment) -> None:
        self.experiment = experiment
        self.trials: list[StoredTrial] = []  # by number; their own number and position say nothing
        self.positions: list[int | None] = []  # by number
        self.closed: list[int] = []  # numbers, by position
        self.pending: dict[int, StoredTrial] = {}
        self.imports: list[tuple[int, int, int]] = []  # position, trials, rounds
        self.lock = threading.RLock()
        self.deleted = False
        self.choosing_until: float | None = None
        self.tally: tuple[int, str] | None = None

    def stored(self) -> StoredExperiment:
        return self.experiment._replace(trials=len(self.trials), closed=len(self.closed))

    def trial(self, number: int) -> StoredTrial:
        return self.trials[number]._replace(number=number, position=self.positions[number])

    def closed_fields(self, first: int, stop: int, fields: Fields) -> Values:
        numbers = self.closed[first:stop]
        places = {"number": numbers, "position": range(first, first + len(numbers))}
        trials = [self.trials[number] for number in numbers]
        columns = [places[field] if field in places else map(attrgetter(field), trials) for field in fields]
        return list(zip(*columns, strict=True))


class _MemoryWriter(MemoryBooks, Writer):
    """Writes at once and remembers what it wrote over, because almost every block ends well."""

    def __init__(self, log: _Log, shelf: Shelf) -> None:
        super().__init__(shelf)
        self._log = log
        self._before: list[StoredTrial] = []
        self.trials = self._first_number = len(log.trials)
        self.closed = self._first_position = len(log.closed)

    def undo(self) -> None:
        """Let the log be as it was."""
        log = self._log
        del log.trials[self._first_number :], log.positions[self._first_number :], log.closed[self._first_position :]
        log.imports = [place for place in log.imports if place[0] < self._first_position]
        for trial in reversed(self._before):
            if trial.number < self._first_number:
                log.trials[trial.number] = log.pending[trial.number] = trial
                log.positions[trial.number] = None
        log.pending = {number: log.pending[number] for number in sorted(log.pending) if number < self._first_number}

    def closed_since(self, position: int) -> Sequence[ClosedTrial]:
        return [*map(ClosedTrial._make, self._log.closed_fields(position, self.closed, ClosedTrial._fields))]

    def pending(self) -> Sequence[StoredTrial]:
        return list(self._log.pending.values())

    def trial(self, number: int) -> StoredTrial | None:
        return self._log.trial(number) if 0 <= number < self.trials else None

    def add(self, trials: Sequence[StoredTrial]) -> int:
        log, first = self._log, self.trials
        log.trials += trials
        if trials and trials[0].source == IMPORTED:
            log.imports.append((self.closed, len(trials), sum(trial.rounds for trial in trials)))
        for number, trial in enumerate(trials, first):
            if trial.state == PENDING:
                log.pending[number] = trial._replace(number=number, position=None)
                log.positions.append(None)
            else:
                log.positions.append(len(log.closed))
                log.closed.append(number)
        self.trials, self.closed = len(log.trials), len(log.closed)
        return first

    def reissue(self, number: int, lease_expires: float | None) -> None:
        trial = self._pending_trial(number)
        again = trial._replace(lease_expires=lease_expires, issued=trial.issued + 1)
        self._log.trials[number] = self._log.pending[number] = again

    def close(self, trial: StoredTrial) -> int:
        if trial.state == PENDING:
            raise must_close(trial)
        log, position, number = self._log, self.closed, trial.number
        old = self._pending_trial(number)
        log.trials[number] = old._replace(**{name: getattr(trial, name) for name in CLOSING})
        del log.pending[number]
        log.positions[number] = position
        log.closed.append(number)
        self.closed = position + 1
        return position

    def _pending_trial(self, number: int) -> StoredTrial:
        """The trial as it was, remembered for an undo."""
        trial = self._log.pending.get(number)
        if trial is None:
            raise not_pending(number, self.trial(number))
        self._before.append(trial)
        return trial


_NONE = _Log(StoredExperiment(0, "", "", 0.0, 0, 0))  # of an experiment that was deleted: nothing is written to it


def _stored(log: _Log | None) -> StoredExperiment | None:
    """The experiment as it is now."""
    if log is None:
        return None
    with log.lock:
        return log.stored()


def _numbered(log: _Log, numbers: Iterable[int], state: str | None) -> Iterator[StoredTrial]:
    """The trials with these numbers, in a state."""
    return (log.trial(number) for number in numbers if state in (None, log.trials[number].state))


class MemoryStorage(Storage):
    """Keeps nothing beyond the process."""

    def __init__(self) -> None:
        self.url = "memory"
        self._lock = threading.Lock()
        self._next = 1
        self._shelf = Shelf()
        self._by_name: dict[str, _Log] = {}
        self._by_id: dict[int, _Log] = {}
        remember_storage(self)

    def locks(self) -> list[threading.RLock | threading.Lock]:
        """In the order in which they are taken. A child gets a copy of all that is in memory: so that no block is half
        done in it, a fork waits until all are over."""
        return [*(log.lock for log in (_NONE, *self._by_id.values())), self._lock]

    def before_fork(self) -> None:
        """There is nothing to let go of."""

    def after_fork(self) -> None:
        """All is there."""

    def create(
        self,
        name: str,
        document: str,
        created_at: float,
        trials: Sequence[StoredTrial] = (),
        within: Within | None = None,
    ) -> StoredExperiment:
        checked_name(name)
        with self._lock:
            if name in self._by_name:
                raise taken(name, self.url)
            log = _Log(StoredExperiment(self._next, name, document, created_at, 0, 0))
            self._next += 1
            with self._writing(log) as writer:
                writer.add(trials)
                if within is not None:
                    within(log.stored(), writer)
            self._by_name[name] = self._by_id[log.experiment.id] = log
            return log.stored()

    def experiments(self) -> Sequence[StoredExperiment]:
        found = map(self.find, sorted(self._by_name))
        return [experiment for experiment in found if experiment is not None]

    def find(self, name: str) -> StoredExperiment | None:
        return _stored(self._by_name.get(name))

    def by_id(self, experiment: int) -> StoredExperiment | None:
        return _stored(self._by_id.get(experiment))

    def rename(self, name: str, new: str, within: Within | None = None) -> None:
        checked_name(new)
        with self._lock, self.booking() as books:
            if name not in self._by_name:
                raise missing(name, list(self._by_name), self.url)
            if new != name and new in self._by_name:
                raise taken(new, self.url)
            if within is not None:
                within(self._by_name[name].stored(), books)
            log = self._by_name.pop(name)
            log.experiment = log.experiment._replace(name=new)
            self._by_name[new] = log

    def delete(self, name: str, within: Within | None = None) -> None:
        log = self._by_name.get(name)
        if log is None:
            raise missing(name, list(self._by_name), self.url)
        with log.lock, self._lock, self.booking() as books:  # in this order everywhere: a block may call the storage
            if self._by_name.get(name) is not log:
                raise missing(name, list(self._by_name), self.url)
            if within is not None:
                within(log.stored(), books)
            log.deleted = True
            del self._by_name[name], self._by_id[log.experiment.id]

    def writing(self, experiment: int) -> AbstractContextManager[Writer]:
        return self._writing(self._there(experiment))

    @contextmanager
    def _writing(self, log: _Log) -> Iterator[Writer]:
        with log.lock:
            if log.deleted:
                raise deleted(log.experiment.id, self.url)
            writer = _MemoryWriter(log, self._shelf)
            try:
                yield writer
            except BaseException:
                writer.undo()
                raise
            writer.put_away()

    def counters(self, experiment: int) -> tuple[int, int]:
        log = self._there(experiment)
        with log.lock:
            return len(log.trials), len(log.closed)

    def closed_fields(self, experiment: int, position: int, most: int, fields: Fields) -> Values:
        log = self._by_id.get(experiment, _NONE)
        with log.lock:
            return log.closed_fields(position, position + most, fields)

    def imports_like(self, experiment: int, trials: int, rounds: int) -> Sequence[tuple[int, int]]:
        log = self._by_id.get(experiment, _NONE)
        with log.lock:
            return [(position, size) for position, size, entered in log.imports if entered == rounds]

    def pending(self, experiment: int) -> Sequence[StoredTrial]:
        log = self._by_id.get(experiment, _NONE)
        with log.lock:
            return list(log.pending.values())

    def take_turn(self, experiment: int, now: float, until: float) -> bool:
        log = self._there(experiment)
        with log.lock:
            free = log.choosing_until is None or log.choosing_until <= now
            if free:
                log.choosing_until = until
            return free

    def end_turn(self, experiment: int, until: float) -> None:
        log = self._by_id.get(experiment, _NONE)
        if log.choosing_until == until:
            log.choosing_until = None

    def tally(self, experiment: int) -> tuple[int, str] | None:
        return self._by_id.get(experiment, _NONE).tally

    def keep_tally(self, experiment: int, position: int, sums: str) -> None:
        log = self._by_id.get(experiment)
        if log is not None:
            with log.lock:
                if log.tally is None or log.tally[0] < position:
                    log.tally = (position, sums)

    def trial(self, experiment: int, number: int) -> StoredTrial | None:
        log = self._by_id.get(experiment, _NONE)
        with log.lock:
            return log.trial(number) if 0 <= number < len(log.trials) else None

    def rows(
        self, experiment: int, after: int = -1, limit: int | None = None, state: str | None = None
    ) -> Iterator[StoredTrial]:
        log = self._there(experiment)
        with log.lock:
            first, stop = max(after, -1) + 1, len(log.trials)
            numbers = (n for n in log.pending if n >= first) if state == PENDING else range(first, stop)
            return iter(list(islice(_numbered(log, numbers, state), limit)))

    def last(self, experiment: int, count: int, state: str | None = None) -> Sequence[StoredTrial]:
        log = self._there(experiment)
        with log.lock:
            every = reversed(log.pending if state == PENDING else range(len(log.trials)))
            return list(islice(_numbered(log, every, state), count))[::-1]

    def _there(self, experiment: int) -> _Log:
        log = self._by_id.get(experiment)
        if log is None:
            raise deleted(experiment, self.url)
        return log

    @contextmanager
    def booking(self) -> Iterator[Books]:
        books = MemoryBooks(self._shelf)
        yield books
        books.put_away()

    def answer(self, owner: str, key: str) -> KeptAnswer | None:
        return self._shelf.answers.get((owner, key))

    def token(self, token: int) -> StoredToken | None:
        return self._shelf.tokens.get(token)

    def tokens(self) -> Sequence[StoredToken]:
        return [self._shelf.tokens[key] for key in sorted(self._shelf.tokens)]

    def audit(self, after: int = 0, most: int = 1000, experiment: int | None = None) -> Sequence[AuditLine]:
        return self._shelf.lines(after, most, experiment)

    def close(self) -> None:
        """Nothing to let go of; the experiments stay."""
