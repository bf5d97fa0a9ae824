"""The logs in SQLite or PostgreSQL, read without keeping others out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Executable

from dobandit.experiment.storage import statements as do
from dobandit.experiment.storage.base import PENDING, TOLD, ClosedColumns, ClosedTrial, SingleRounds, StoredTrial
from dobandit.experiment.storage.connected import Connected, Parameters
from dobandit.experiment.storage.log_reading import LogReader, Moment
from dobandit.experiment.storage.parts import stretches
from dobandit.experiment.storage.refusals import damaged, deleted
from dobandit.experiment.storage.soundness import trial_from
from dobandit.experiment.storage.writer import EVERY

_PAGE = 2000


class SQLLog(Connected):
    """Any number of threads, processes and machines may use the same database."""

    def counters(self, experiment: int) -> tuple[int, int]:
        found = self._read_plainly(do.COUNTERS, {"of_experiment": experiment})
        if not found:
            raise deleted(experiment, self.url)
        return found[0][0], found[0][1]

    def closed_since(self, experiment: int, position: int) -> Sequence[ClosedTrial]:
        return list(self.closed_columns(experiment, position, EVERY).trials())

    def closed_columns(self, experiment: int, position: int, most: int) -> ClosedColumns:
        log, moment = self._now(experiment)
        return log.closed_columns(moment, position, most)

    def single_rounds(self, experiment: int, position: int, most: int) -> SingleRounds | None:
        log, moment = self._now(experiment)
        return log.single_rounds(moment, position, most)

    def closed_fields(
        self, experiment: int, position: int, most: int, fields: tuple[str, ...]
    ) -> Sequence[tuple[Any, ...]]:
        log, moment = self._now(experiment)
        return log.closed_fields(moment, position, most, fields)

    def closed_groups(
        self, experiment: int, position: int, most: int, fields: tuple[str, ...]
    ) -> Sequence[tuple[Any, ...]]:
        log, moment = self._now(experiment)
        return log.closed_groups(moment, position, most, fields)

    def pending(self, experiment: int) -> Sequence[StoredTrial]:
        return self._trials(do.PENDING_TRIALS, {"of_experiment": experiment})

    def trial(self, experiment: int, number: int) -> StoredTrial | None:
        rows = self._trials(do.TRIAL, {"of_experiment": experiment, "of_number": number})
        if rows:
            return rows[0]
        log, moment = self._now(experiment)
        return log.trial(moment, number)

    def rows(
        self, experiment: int, after: int = -1, limit: int | None = None, state: str | None = None
    ) -> Iterator[StoredTrial]:
        """Read in pages, so that an iterator left half-way holds neither a lock nor a connection. A trial that is
        closed in the meantime is given as it was; only `issued` and `lease_expires` may be newer."""
        log, moment = self._there(experiment)
        first = max(after, -1) + 1
        if state is None:
            stop = moment.trials if limit is None else min(moment.trials, first + limit)
            return self._pages(experiment, log, moment, first, stop)
        return self._pages_of(state, experiment, log, moment, first, moment.trials if limit is None else limit)

    def last(self, experiment: int, count: int, state: str | None = None) -> Sequence[StoredTrial]:
        log, moment = self._there(experiment)
        statement = do.LAST if state is None else do.LAST_OF[state]
        found = self._trials(statement, {"of_experiment": experiment, "stop": moment.trials, "most": count})[::-1]
        for run in moment.runs if state in (None, TOLD) else ():
            stop = run.number + run.size
            found += log.trials(run, max(run.number, stop - count), stop)
        if moment.runs:
            found.sort(key=lambda trial: trial.number)
        return found[max(len(found) - count, 0) :]

    def _now(self, experiment: int) -> tuple[LogReader, Moment]:
        """The log, and how far it is; a log without trials where there is no such experiment."""
        log = LogReader(self._read_plainly, experiment, self.url)
        return log, log.moment() or Moment(0, 0, ())

    def _there(self, experiment: int) -> tuple[LogReader, Moment]:
        """The log of an experiment that must be there."""
        log = LogReader(self._read_plainly, experiment, self.url)
        moment = log.moment()
        if moment is None:
            raise deleted(experiment, self.url)
        return log, moment

    def _trials(self, statement: Executable, parameters: Parameters) -> list[StoredTrial]:
        return self._read(lambda row: trial_from(row, self.url), statement, parameters)

    def _page(self, statement: Executable, experiment: int, first: int, stop: int, most: int) -> list[StoredTrial]:
        parameters = {"of_experiment": experiment, "after": first - 1, "stop": stop, "most": most}
        return self._trials(statement, parameters)

    def _pages(self, experiment: int, log: LogReader, moment: Moment, first: int, stop: int) -> Iterator[StoredTrial]:
        for begin, end, run in stretches(first, stop, moment.runs, "number"):
            if run is not None:
                yield from log.trials(run, begin, end)
                continue
            for start in range(begin, end, _PAGE):
                most = min(_PAGE, end - start)
                page = self._page(do.PAGE, experiment, start, end, most)
                if len(page) < most:
                    self.counters(experiment)  # which raises where it was deleted meanwhile
                    raise damaged(experiment, self.url)
                yield from (_as_of(trial, moment) for trial in page)

    def _pages_of(
        self, state: str, experiment: int, log: LogReader, moment: Moment, first: int, left: int
    ) -> Iterator[StoredTrial]:
        """Only trials in this state, of which nobody knows how many there are; `left` at most."""
        runs = moment.runs if state == TOLD else ()  # whatever came with an import was told
        for begin, end, run in stretches(first, moment.trials, runs, "number"):
            if run is not None:
                yield from log.trials(run, begin, min(end, begin + left))
                left -= end - begin
            while run is None and left > 0:
                most = min(_PAGE, left)
                page = self._page(do.PAGE_OF[state], experiment, begin, end, most)
                yield from (trial for trial in page if trial.position is None or trial.position < moment.closed)
                left -= len(page)
                if len(page) < most:
                    break
                begin = page[-1].number + 1
            if left <= 0:
                return


def _as_of(trial: StoredTrial, moment: Moment) -> StoredTrial:
    """The trial as it was then: one that was closed later was pending."""
    if trial.position is None or trial.position < moment.closed:
        return trial
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
