"""Reading the log of one experiment: the table of trials, and between its rows the imports, which are kept in parts.

What is read is of one moment: how many trials there were, how many of them were closed, and which imports. Whatever was
closed by then never changes, so that any number of statements may read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Executable

from dobandit.experiment.storage import import_statements, statements
from dobandit.experiment.storage.base import TOLD, ClosedColumns, ClosedTrial, SingleRounds, StoredTrial
from dobandit.experiment.storage.connected import Parameters
from dobandit.experiment.storage.parts import MOST, Part, Run, part_sum, run_sum, stretches
from dobandit.experiment.storage.refusals import damaged, flipped, unreadable
from dobandit.experiment.storage.single_rounds import read_single_rounds
from dobandit.experiment.storage.soundness import closed_from, fields_from

Read = Callable[[Executable, Parameters], list[tuple[Any, ...]]]


class Moment(NamedTuple):
    """How far the log was."""

    trials: int
    closed: int
    runs: tuple[Run, ...]  # in their order

    def run_with(self, number: int) -> Run | None:
        """The import that trial `number` came with."""
        return next((run for run in self.runs if run.number <= number < run.number + run.size), None)


class LogReader:
    """One experiment's log, by statements that `read` runs."""

    def __init__(self, read: Read, experiment: int, url: str) -> None:
        self._read, self._id, self._url = read, experiment, url
        self._of = {"of_experiment": experiment}

    def moment(self) -> Moment | None:
        """Now; None where there is no such experiment."""
        rows = self._read(import_statements.MOMENT, self._of)
        if not rows:
            return None
        found = [row[2:] for row in rows if row[3] is not None]
        if any(type(value) is not int for places in (rows[0][:2], *found) for value in places):
            raise unreadable(self._url, "how many trials there are, or where an import stands, is no whole number")
        runs = tuple(Run(*place) for _, *place in found)
        if any(run_sum(run) != row[0] for run, row in zip(runs, found, strict=True)):
            raise unreadable(self._url, "where an import stands in the log is not what was stored")
        return Moment(rows[0][0], rows[0][1], runs)

    # -- closed trials, by position --------------------------------------------------------------------------------

    def closed_columns(self, moment: Moment, position: int, most: int) -> ClosedColumns:
        pieces = [
            closed_from(self._stored(statements.CLOSED_SINCE, first, stop), self._url)
            if run is None
            else _part_columns(self._parts(run, first - run.position, stop - run.position))
            for first, stop, run in self._closed(moment, position, most)
        ]
        return pieces[0] if len(pieces) == 1 else _joined(pieces)

    def closed_fields(
        self, moment: Moment, position: int, most: int, fields: tuple[str, ...]
    ) -> Sequence[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for first, stop, run in self._closed(moment, position, most):
            if run is None:
                rows += fields_from(self._stored(statements.closed_fields(fields), first, stop), fields, self._url)
            else:
                for part, begin, end in self._parts(run, first - run.position, stop - run.position):
                    rows += zip(*(part.column(field, begin, end) for field in fields), strict=True)
        return rows

    def closed_groups(
        self, moment: Moment, position: int, most: int, fields: tuple[str, ...]
    ) -> Sequence[tuple[Any, ...]]:
        groups: list[tuple[Any, ...]] = []
        for first, stop, run in self._closed(moment, position, most):
            if run is None:
                found = self._read(statements.closed_groups(fields), {**self._of, "first": first, "last": stop - 1})
                kinds = (*fields, "rounds", "closed_at")  # trials are counted by whole numbers, as rounds are
                groups += fields_from(found, kinds, self._url)
                self._require(sum(group[-2] for group in found), stop - first)
            else:
                for part, begin, end in self._parts(run, first - run.position, stop - run.position):
                    groups += part.groups(fields, begin, end)
        return groups

    def single_rounds(self, moment: Moment, position: int, most: int) -> SingleRounds | None:
        stretch = next(self._closed(moment, position, most), None)
        if stretch is None or stretch[:2] != (position, position + most):  # partly of an import, partly not
            return None
        run = stretch[2]
        if run is None:
            return read_single_rounds(self._read, self._id, position, most)
        first = position - run.position
        return _single_rounds(position, self._parts(run, first, first + most))

    def _closed(self, moment: Moment, position: int, most: int) -> Iterator[tuple[int, int, Run | None]]:
        return stretches(position, min(position + most, moment.closed), moment.runs, "position")

    def _stored(self, statement: Executable, first: int, stop: int) -> list[tuple[Any, ...]]:
        """Closed trials with these positions, all of which are rows of their own."""
        rows = self._read(statement, {**self._of, "since": first, "most": stop - first})
        self._require(len(rows), stop - first)
        return rows

    def _require(self, found: int, closed: int) -> None:
        """As many trials as were closed; none, where the experiment was deleted meanwhile."""
        if found < closed and self.moment() is not None:
            raise damaged(self._id, self._url)

    # -- whole trials, by number -----------------------------------------------------------------------------------

    def trial(self, moment: Moment, number: int) -> StoredTrial | None:
        """One that came with an import."""
        run = moment.run_with(number)
        return None if run is None else next(self.trials(run, number, number + 1))

    def trials(self, run: Run, first: int, stop: int) -> Iterator[StoredTrial]:
        """Those of an import with the numbers from `first` to `stop` - 1, some thousands in memory at a time."""
        for begin in range(first - run.number, stop - run.number, MOST):
            for part, lo, hi in self._parts(run, begin, min(begin + MOST, stop - run.number)):
                yield from part.trials(lo, hi)

    def _parts(self, run: Run, first: int, stop: int) -> Iterator[tuple[Part, int, int]]:
        """The parts that hold trials `first` to `stop` - 1 of an import, and which of these each holds."""
        parameters = {"of_import": run.key, "behind": first - MOST, "stop": stop}
        for begins, text, total in self._read(import_statements.PARTS, parameters):
            if type(begins) is not int or type(text) is not str or part_sum(run.key, begins, text) != total:
                raise flipped(run.number + first, self._url)
            part = Part(run, begins, text)
            if begins <= first < part.stop:
                end = min(stop, part.stop)
                yield part, first, end
                first = end
        if first < stop:
            raise damaged(self._id, self._url)


def _joined(pieces: Sequence[ClosedColumns]) -> ClosedColumns:
    columns: list[list[Any]] = [[] for _ in ClosedTrial._fields]
    for piece in pieces:
        for column, values in zip(columns, piece, strict=True):
            column.extend(values)
    return ClosedColumns(*columns)


def _part_columns(parts: Iterator[tuple[Part, int, int]]) -> ClosedColumns:
    return _joined(
        [
            ClosedColumns(*(part.column(field, first, stop) for field in ClosedTrial._fields))
            for part, first, stop in parts
        ]
    )


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
