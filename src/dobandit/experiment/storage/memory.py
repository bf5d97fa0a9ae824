"""Experiments that live as long as the process: for tests, notebooks and simulations."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import attrgetter

from dobandit.experiment.forks import remember
from dobandit.experiment.storage.base import (
    CLOSING,
    EVERY,
    PENDING,
    ClosedTrial,
    Fields,
    Storage,
    StoredExperiment,
    StoredTrial,
    Values,
    Within,
    Writer,
    page_of,
)
from dobandit.experiment.storage.books import AuditLine, Books, KeptAnswer, StoredToken
from dobandit.experiment.storage.errors import (
    checked_name,
    deleted,
    key_in_use,
    missing,
    must_close,
    not_pending,
    taken,
)


class _Log:
    """One experiment. `pending` keeps the order of the numbers, because trials enter it in that order."""

    def __init__(self, experiment: StoredExperiment) -> None:
        self.experiment = experiment
        self.trials: list[StoredTrial] = []  # by number
        self.closed: list[int] = []  # numbers, by position
        self.pending: dict[int, StoredTrial] = {}
        self.tally: tuple[int, str] | None = None

    def stored(self) -> StoredExperiment:
        return self.experiment._replace(trials=len(self.trials), closed=len(self.closed))

    def closed_fields(self, first: int, stop: int, fields: Fields) -> Values:
        trials = [self.trials[number] for number in self.closed[first:stop]]
        return list(zip(*(map(attrgetter(field), trials) for field in fields), strict=True))

    def closed_since(self, first: int, stop: int) -> list[ClosedTrial]:
        return [*map(ClosedTrial._make, self.closed_fields(first, stop, ClosedTrial._fields))]

    def some(self, numbers: Iterable[int], state: str | None) -> Iterator[StoredTrial]:
        """The trials with these numbers, in a state."""
        trials = map(self.trials.__getitem__, numbers)
        return (trial for trial in trials if state in (None, trial.state))


class _MemoryBooks(Books):
    """Gathers what is entered, until the block has ended well."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage
        self._answers: dict[tuple[str, str], KeptAnswer] = {}
        self._lines: list[AuditLine] = []
        self._tokens: dict[int, StoredToken] = {}

    def enter(self) -> None:
        """Store what was gathered."""
        kept = self._storage
        kept.answers |= self._answers
        kept.lines += [line._replace(number=len(kept.lines) + i) for i, line in enumerate(self._lines, 1)]
        kept.known_tokens |= self._tokens

    def answered(self, owner: str, key: str) -> KeptAnswer | None:
        return self._answers.get((owner, key)) or self._storage.answer(owner, key)

    def keep_answer(self, answer: KeptAnswer) -> None:
        if self.answered(answer.owner, answer.key) is not None:
            raise key_in_use(answer.key)
        self._answers[answer.owner, answer.key] = answer

    def forget_answers(self, before: float) -> int:
        kept = self._storage.answers
        self._storage.answers = {key: one for key, one in kept.items() if one.at >= before}
        return len(kept) - len(self._storage.answers)

    def note(self, line: AuditLine) -> None:
        self._lines.append(line)

    def add_token(self, token: StoredToken) -> int:
        number = len(self._storage.known_tokens) + len(self._tokens) + 1  # none is ever removed
        self._tokens[number] = token._replace(id=number)
        return number

    def revoke_token(self, token: int, at: float) -> bool:
        found = self._tokens.get(token) or self._storage.token(token)
        if found is None or found.revoked_at is not None:
            return False
        self._tokens[token] = found._replace(revoked_at=at)
        return True


class _MemoryWriter(_MemoryBooks, Writer):
    """Writes at once and remembers what it wrote over, because almost every block ends well."""

    def __init__(self, storage: MemoryStorage, log: _Log) -> None:
        super().__init__(storage)
        self._log = log
        self._before: list[StoredTrial] = []
        self.trials = self._first_number = len(log.trials)
        self.closed = self._first_position = len(log.closed)

    def undo(self) -> None:
        """Let the log be as it was."""
        log = self._log
        del log.trials[self._first_number :], log.closed[self._first_position :]
        for trial in reversed(self._before):
            if trial.number < self._first_number:
                log.trials[trial.number] = log.pending[trial.number] = trial
        log.pending = {number: log.pending[number] for number in sorted(log.pending) if number < self._first_number}

    def closed_since(self, position: int) -> Sequence[ClosedTrial]:
        return self._log.closed_since(position, self.closed)

    def pending(self) -> Sequence[StoredTrial]:
        return list(self._log.pending.values())

    def trial(self, number: int) -> StoredTrial | None:
        return self._log.trials[number] if 0 <= number < self.trials else None

    def add(self, trials: Sequence[StoredTrial]) -> int:
        log, first = self._log, self.trials
        for number, trial in enumerate(trials, first):
            position = None if trial.state == PENDING else len(log.closed)
            log.trials.append(trial._replace(number=number, position=position))
            if position is None:
                log.pending[number] = log.trials[number]
            else:
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
        changed = {name: getattr(trial, name) for name in CLOSING}
        log.trials[number] = old._replace(**changed, position=position)
        del log.pending[number]
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


class MemoryStorage(Storage):
    """Keeps nothing beyond the process. One thread at a time reads or writes."""

    def __init__(self) -> None:
        self.url = "memory"
        self._lock = threading.RLock()
        self._next = 1
        self._by_id: dict[int, _Log] = {}
        self.known_tokens: dict[int, StoredToken] = {}
        self.answers: dict[tuple[str, str], KeptAnswer] = {}
        self.lines: list[AuditLine] = []
        remember(self)

    def before_fork(self) -> None:
        """A child gets a copy of all that is in memory: no block is half done in it."""
        self._lock.acquire()

    def after_fork(self, child: bool) -> None:
        self._lock.release()

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
            if self.find(name) is not None:
                raise taken(name, self.url)
            log = _Log(StoredExperiment(self._next, name, document, created_at, 0, 0))
            self._next += 1
            with self._block(log) as writer:
                writer.add(trials)
                if within is not None:
                    within(log.stored(), writer)
            self._by_id[log.experiment.id] = log
            return log.stored()

    def experiments(
        self, after: str | None = None, before: str | None = None, limit: int | None = None
    ) -> Sequence[StoredExperiment]:
        with self._lock:
            found = sorted((log.stored() for log in self._by_id.values()), key=attrgetter("name"))
        return page_of(found, after, before, limit)

    def find(self, name: str) -> StoredExperiment | None:
        return next((one for one in self.experiments() if one.name == name), None)

    def by_id(self, experiment: int) -> StoredExperiment | None:
        with self._lock:
            log = self._by_id.get(experiment)
            return None if log is None else log.stored()

    def rename(self, name: str, new: str, within: Within | None = None) -> None:
        checked_name(new)
        with self._named(name, within) as log:
            if new != name and self.find(new) is not None:
                raise taken(new, self.url)
            log.experiment = log.experiment._replace(name=new)

    def delete(self, name: str, within: Within | None = None) -> None:
        with self._named(name, within) as log:
            del self._by_id[log.experiment.id]

    @contextmanager
    def writing(self, experiment: int) -> Iterator[Writer]:
        with self._lock, self._block(self._log(experiment)) as writer:
            yield writer

    @contextmanager
    def _block(self, log: _Log) -> Iterator[Writer]:
        writer = _MemoryWriter(self, log)
        try:
            yield writer
        except BaseException:
            writer.undo()
            raise
        writer.enter()

    def counters(self, experiment: int) -> tuple[int, int]:
        with self._lock:
            log = self._log(experiment)
            return len(log.trials), len(log.closed)

    def closed_since(self, experiment: int, position: int, most: int = EVERY) -> Sequence[ClosedTrial]:
        with self._lock:
            return self._log_or_none(experiment).closed_since(position, position + most)

    def closed_fields(self, experiment: int, position: int, most: int, fields: Fields) -> Values:
        with self._lock:
            return self._log_or_none(experiment).closed_fields(position, position + most, fields)

    def pending(self, experiment: int) -> Sequence[StoredTrial]:
        with self._lock:
            return list(self._log_or_none(experiment).pending.values())

    def trial(self, experiment: int, number: int) -> StoredTrial | None:
        with self._lock:
            trials = self._log_or_none(experiment).trials
            return trials[number] if 0 <= number < len(trials) else None

    def rows(
        self, experiment: int, after: int = -1, limit: int | None = None, state: str | None = None
    ) -> Iterator[StoredTrial]:
        with self._lock:
            log, first = self._log(experiment), max(after, -1) + 1
            numbers: Iterable[int] = range(first, len(log.trials))
            if state == PENDING:
                numbers = (number for number in log.pending if number >= first)
            return iter(list(islice(log.some(numbers, state), limit)))

    def last(self, experiment: int, count: int, state: str | None = None) -> Sequence[StoredTrial]:
        with self._lock:
            log = self._log(experiment)
            every = reversed(log.pending if state == PENDING else range(len(log.trials)))
            return list(islice(log.some(every, state), count))[::-1]

    def tally(self, experiment: int) -> tuple[int, str] | None:
        return self._log_or_none(experiment).tally

    def keep_tally(self, experiment: int, position: int, sums: str) -> None:
        with self._lock:
            log = self._log_or_none(experiment)
            if log.tally is None or log.tally[0] < position:
                log.tally = (position, sums)

    def _log(self, experiment: int) -> _Log:
        if experiment not in self._by_id:
            raise deleted(experiment, self.url)
        return self._by_id[experiment]

    def _log_or_none(self, experiment: int) -> _Log:
        """The log of an experiment; an empty one where it was deleted."""
        return self._by_id.get(experiment) or _Log(StoredExperiment(experiment, "", "", 0.0, 0, 0))

    @contextmanager
    def _named(self, name: str, within: Within | None) -> Iterator[_Log]:
        """A block about an experiment that must be there."""
        with self._lock, self.booking() as books:
            found = self.find(name)
            if found is None:
                raise missing(name, [one.name for one in self.experiments()], self.url)
            if within is not None:
                within(found, books)
            yield self._by_id[found.id]

    @contextmanager
    def booking(self) -> Iterator[Books]:
        with self._lock:
            books = _MemoryBooks(self)
            yield books
            books.enter()

    def answer(self, owner: str, key: str) -> KeptAnswer | None:
        return self.answers.get((owner, key))

    def token(self, token: int) -> StoredToken | None:
        return self.known_tokens.get(token)

    def tokens(self) -> Sequence[StoredToken]:
        return [*self.known_tokens.values()]

    def audit(self, after: int = 0, most: int = 1000, experiment: int | None = None) -> Sequence[AuditLine]:
        later = self.lines[max(after, 0) :]  # lines are numbered from 1
        return [line for line in later if experiment is None or line.experiment == experiment][:most]

    def close(self) -> None:
        """Nothing to let go of; the experiments stay."""
