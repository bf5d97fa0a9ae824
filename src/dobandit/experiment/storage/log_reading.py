"""Reading the log of one experiment: the table of trials, and between its rows the imports, which are kept in parts.

What is read is of one moment: how many trials there were, how many of them were closed, and which imports. Whatever was
closed by then never changes, so that any number of statements may read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Executable

from dobandit.experiment.storage import statements as do
from dobandit.experiment.storage.base import (
    CLOSING,
    NEWEST,
    TOLD,
    ClosedTrial,
    Fields,
    SingleRounds,
    StoredTrial,
    Values,
)
from dobandit.experiment.storage.parts import MOST, Part, Run, part_sum, run_sum, stretches
from dobandit.experiment.storage.refusals import damaged, deleted, flipped, unreadable
from dobandit.experiment.storage.single_rounds import Read, read_single_rounds
from dobandit.experiment.storage.soundness import closed_from, fields_from, trial_from

_PAGE = 2000
_DEFAULTS = StoredTrial._field_defaults


class Moment(NamedTuple):
    """How far the log was."""

    trials: int
    closed: int
    runs: tuple[Run, ...]  # in their order


NOWHERE = Moment(0, 0, ())  # there is no such experiment


class LogReader:
    """One experiment's log as it is when it is first looked at, by statements that `read` runs."""

    def __init__(self, read: Read, experiment: int, url: str) -> None:
        self._read, self._id, self._url = read, experiment, url
        self._of = {"of_experiment": experiment}

    @cached_property
    def moment(self) -> Moment:
        """How far it is; NOWHERE, without a trial, where there is no such experiment."""
        rows = self._read(do.MOMENT, self._of)
        if not rows:
            return NOWHERE
        found = [row[2:] for row in rows if row[3] is not None]
        if any(type(value) is not int for places in (rows[0][:2], *found) for value in places):
            raise unreadable(self._url, "how many trials there are, or where an import stands, is no whole number")
        runs = tuple(Run(*place) for _, *place in found)
        if any(run_sum(run) != row[0] for run, row in zip(runs, found, strict=True)):
            raise unreadable(self._url, "where an import stands in the log is not what was stored")
        return Moment(rows[0][0], rows[0][1], runs)

    # -- closed trials, by position --------------------------------------------------------------------------------

    def closed_fields(self, position: int, most: int, fields: Fields) -> Values:
        """Those of a ClosedTrial are what is learned from: their checksums are looked at."""
        rows: list[tuple[Any, ...]] = []
        for first, stop, run in self._closed(position, most):
            if run is None and fields == ClosedTrial._fields:
                rows += closed_from(self._stored(do.CLOSED_SINCE, first, stop), self._url)
            elif run is None:
                rows += fields_from(self._stored(do.closed_fields(fields), first, stop), fields, self._url)
            else:
                for part, begin, end in self._parts(run, first - run.position, stop - run.position):
                    rows += zip(*(part.column(field, begin, end) for field in fields), strict=True)
        return rows

    def closed_groups(self, position: int, most: int, fields: Fields) -> Values:
        groups: list[tuple[Any, ...]] = []
        for first, stop, run in self._closed(position, most):
            if run is None:
                found = self._read(do.closed_groups(fields), {**self._of, "first": first, "last": stop - 1})
                kinds = (*fields, "rounds", "closed_at")  # trials are counted by whole numbers, as rounds are
                groups += fields_from(found, kinds, self._url)
                self._require(sum(group[-2] for group in found), stop - first)
            else:
                for part, begin, end in self._parts(run, first - run.position, stop - run.position):
                    groups += part.groups(fields, begin, end)
        return groups

    def imports_like(self, trials: int, rounds: int) -> list[tuple[int, int]]:
        """Of those in parts nobody knows the rounds without reading them: they have as many trials."""
        found = self._read(do.IMPORTS_LIKE, {**self._of, "rounds": rounds, "since": self.moment.closed - NEWEST})
        in_parts = [(run.position, run.size) for run in self.moment.runs if run.size == trials]
        return [*fields_from(found, ("number", "rounds"), self._url), *in_parts]

    def single_rounds(self, position: int, most: int) -> SingleRounds | None:
        stretch = next(self._closed(position, most), None)
        if stretch is None or stretch[:2] != (position, position + most):  # partly of an import, partly not
            return None
        run = stretch[2]
        if run is None:
            return read_single_rounds(self._read, self._id, position, most)
        first = position - run.position
        return _single_rounds(position, self._parts(run, first, first + most))

    def _closed(self, position: int, most: int) -> Iterator[tuple[int, int, Run | None]]:
        return stretches(position, min(position + most, self.moment.closed), self.moment.runs, "position")

    def _stored(self, statement: Executable, first: int, stop: int) -> list[tuple[Any, ...]]:
        """Closed trials with these positions, all of which are rows of their own."""
        rows = self._read(statement, {**self._of, "since": first, "most": stop - first})
        self._require(len(rows), stop - first)
        return rows

    def _require(self, found: int, closed: int) -> None:
        """As many trials as were closed; none, where the experiment was deleted meanwhile."""
        if found < closed and self._still_there():
            raise damaged(self._id, self._url)

    def _still_there(self) -> bool:
        return bool(self._read(do.COUNTERS, self._of))

    # -- whole trials, by number -----------------------------------------------------------------------------------

    def pending(self) -> list[StoredTrial]:
        return self._trials(do.PENDING_TRIALS, {})

    def trial(self, number: int) -> StoredTrial | None:
        found = self._trials(do.TRIAL, {"of_number": number})
        if found:
            return found[0]
        run = next((run for run in self.moment.runs if run.number <= number < run.number + run.size), None)
        return None if run is None else next(self._imported(run, number, number + 1))

    def rows(self, first: int, limit: int | None, state: str | None) -> Iterator[StoredTrial]:
        """Trials with numbers from `first` on, `limit` at most; only those in `state`, where one is given."""
        moment = self.moment
        left = moment.trials if limit is None else limit
        for begin, end, run in stretches(first, moment.trials, self._runs_in(state), "number"):
            if run is not None:
                yield from self._imported(run, begin, min(end, begin + left))
                left -= end - begin
            while run is None and begin < end and left > 0:
                most = min(_PAGE, left)
                page = self._trials(do.PAGE[state], {"after": begin - 1, "stop": end, "most": most})
                if state is None and len(page) < min(most, end - begin):
                    raise damaged(self._id, self._url) if self._still_there() else deleted(self._id, self._url)
                yield from (trial for trial in map(self._as_of_then, page) if state in (None, trial.state))
                left -= len(page)
                begin = page[-1].number + 1 if len(page) == most else end
            if left <= 0:
                return

    def last(self, count: int, state: str | None) -> list[StoredTrial]:
        """The last so many; only those in `state`, where one is given."""
        moment = self.moment
        found = self._trials(do.LAST[state], {"stop": moment.trials, "most": count})[::-1]
        for run in self._runs_in(state):
            stop = run.number + run.size
            found += self._imported(run, max(run.number, stop - count), stop)
        if moment.runs:
            found.sort(key=lambda trial: trial.number)
        return found[max(len(found) - count, 0) :]

    def _runs_in(self, state: str | None) -> tuple[Run, ...]:
        """The imports with trials in a state: whatever came with one was told."""
        return self.moment.runs if state in (None, TOLD) else ()

    def _as_of_then(self, trial: StoredTrial) -> StoredTrial:
        """The trial as it was: one that was closed later was pending."""
        if trial.position is None or trial.position < self.moment.closed:
            return trial
        return trial._replace(**{name: _DEFAULTS[name] for name in CLOSING}, position=None)

    def _trials(self, statement: Executable, parameters: dict[str, int]) -> list[StoredTrial]:
        return [trial_from(row, self._url) for row in self._read(statement, {**self._of, **parameters})]

    def _imported(self, run: Run, first: int, stop: int) -> Iterator[StoredTrial]:
        """Those of an import with the numbers from `first` to `stop` - 1, some thousands in memory at a time."""
        for begin in range(first - run.number, stop - run.number, MOST):
            for part, lo, hi in self._parts(run, begin, min(begin + MOST, stop - run.number)):
                yield from part.trials(lo, hi)

    def _parts(self, run: Run, first: int, stop: int) -> Iterator[tuple[Part, int, int]]:
        """The parts that hold trials `first` to `stop` - 1 of an import, and which of these each holds."""
        parameters = {"of_import": run.key, "behind": first - MOST, "stop": stop}
        for begins, text, total in self._read(do.PARTS, parameters):
            if type(begins) is not int or type(text) is not str or part_sum(run.key, begins, text) != total:
                raise flipped(run.number + first, self._url)
            part = Part(run, begins, text)
            if begins <= first < part.stop:
                end = min(stop, part.stop)
                yield part, first, end
                first = end
        if first < stop:
            raise damaged(self._id, self._url)


def _single_rounds(position: int, parts: Iterator[tuple[Part, int, int]]) -> SingleRounds | None:
    """The distinct rounds of several parts, and which of them each trial is."""
    index: dict[tuple[str, str], int] = {}
    which = []
    for part, first, stop in parts:
        plain = zip(*map(part.distinct, ("state", "counts", "rounds")), strict=True)
        if set(plain) != {(TOLD, None, 1)}:
            return None
        said = zip(part.distinct("do"), part.distinct("observation"), strict=True)
        places = np.array([index.setdefault(one, len(index)) for one in said], dtype=np.int64)
        which.append(places[np.array(part.which[first - part.first : stop - part.first], dtype=np.int64)])
    do, observations = ([one[i] for one in index] for i in (0, 1))
    return SingleRounds(position, do, observations, np.concatenate(which))
