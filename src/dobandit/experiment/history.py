"""Rounds that happened elsewhere, from a file, a table or rows: all are checked before one is taken in.

A table has a column per variable, a column do:NAME for a variable that was set in some rounds (its value where it was,
empty where not) or a column that names what was set, and perhaps a column `count` (see `tables`).

Which rows of a source are one trial: learners that weigh a round by what was predicted before it spread the rounds of
one trial evenly (see `policy.unordered`). Rows that were summed up have lost their order: taken as a trial each, they
would be five hundred equal rounds of one outcome, then twenty of the next. So what was told together stays together,
and what was summed up is taken as told together.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from dobandit.errors import DobanditWarning, ExperimentError, ParseError
from dobandit.experiment.columnar import is_frame
from dobandit.experiment.rounds import Columns
from dobandit.experiment.row_texts import Row
from dobandit.experiment.tables import (
    MOST_ROUNDS,
    Rows,
    Spoken,
    is_file,
    named,
    numbered_rows,
    plain_row,
    read_each,
)


class Round(NamedTuple):
    """What was set and what was seen, in columns.

    times  how often just this happened
    trial  what all rows of its trial have in common: the trial's number in the source, or an object of its own where
           the rows came as one list; None: the source does not say
    """

    do: Row
    observation: Row
    times: int = 1
    trial: object = None


Rounds = tuple[Round, ...]  # of one row of a source, or of one trial


def read_history(source: Any, columns: Columns) -> list[Rounds]:
    """The trials of `source`, each its rounds, or ParseError with the first problems, and where they are.

    source  the path of a CSV file (or .csv.gz, or Parquet), an open text file with CSV, a frame, or rows: pairs (do,
            observation), mappings {"do": ..., "observation": ...}, or flat mappings {"X2": 1, "Y": 0, "do:X3": 1}.
            Lines are counted from 1, rows from 0.

    Equal rows that are a trial each are one object. Which rows are one trial together: see `_as_trials`.
    """
    with named(source):
        return _as_trials(_read(source, columns, None), columns)


def read_summed(source: Any, columns: Columns, passed: list[str]) -> list[Round]:
    """The distinct rounds of `source`, each with its count: a hundred thousand rows of 0 and 1 are few.

    passed  where columns that are passed over are listed: they are no variables, and like none
    """
    with named(source):
        rows = _read(source, columns, passed)
    distinct, times = dict(zip(map(id, rows), rows, strict=True)), Counter(map(id, rows))
    return [one._replace(times=one.times * times[key]) for key, row in distinct.items() for one in row]


def _read(source: Any, columns: Columns, passed: list[str] | None) -> list[Rounds]:
    """The rounds of each row."""
    iterable = isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes))
    if not iterable and not is_file(source) and not is_frame(source):
        raise ExperimentError(
            "rounds come as the path of a CSV or Parquet file, an open text file, a DataFrame or a list of rows, but "
            f"got {type(source).__name__}."
        )
    numbered = numbered_rows(source, columns, passed)
    rows = [row for row in read_each(numbered, lambda row: _rounds_of(numbered.spoken(row), columns)) if row]
    if not rows:
        raise ParseError("the data have at least one round that was told, but there is none. Check the source.")
    return rows


def _rounds_of(said: Spoken | None, columns: Columns) -> Rounds:
    """One round per row; several where the row is a trial of many rounds, as `Experiment.trials` gives it; none where
    it is to be passed over."""
    if said is None:
        return ()
    do = columns.do_row(said.do)
    if not isinstance(said.observation, list):
        seen = columns.observation_row(said.observation, do)
        return (Round(do, seen, said.times, said.trial),) if said.times else ()
    reader, trial = Rows(columns), object()
    rows = [one for row in said.observation if (one := plain_row(row, columns) or reader.spoken(row)) is not None]
    return tuple(
        Round(do, columns.observation_row(row.observation, do), row.times * said.times, trial)
        for row in rows
        if row.times and said.times
    )


# -- which rows are one trial -----------------------------------------------------------------------------------


def _as_trials(rows: list[Rounds], columns: Columns) -> list[Rounds]:
    """The trials that the rows of a source are, in their order.

    Rows with one trial number are one trial. Of rows without, those that stand next to each other, set the same and
    have the same context are one trial if one of them has a count above 1; otherwise each is a trial.
    """
    distinct = dict(zip(map(id, rows), rows, strict=True))  # equal rows of a source are one object
    if all(row[0].trial is None and row[0].times == 1 for row in distinct.values()):
        return rows
    context = [columns.names.index(name) for name in columns.context]
    trial_of = {key: _trial_of(row[0], context) for key, row in distinct.items()}
    trials: list[Rounds] = []
    numbers: set[int] = set()
    for _, run in groupby(rows, lambda row: trial_of[id(row)]):
        together = list(run)
        number = together[0][0].trial
        if number is None and all(row[0].times == 1 for row in together):
            trials += together
            continue
        if isinstance(number, int):
            if number in numbers:
                raise ParseError(
                    f"the rows of a trial stand together, but those of trial {number} stand apart. Sort the table by "
                    "trial.number; if it is of several experiments, import the rows of each by themselves; if the "
                    "numbers mean nothing, leave them out."
                )
            numbers.add(number)
        trials.append(_one(together, columns))
    _warn_of_sorted(trials, context, columns)
    return trials


def _trial_of(one: Round, context: list[int]) -> Hashable:
    """What is equal for rows next to each other that may be of one trial."""
    if one.trial is None:
        return tuple(one.do), tuple(one.observation[i] for i in context)
    return one.trial


def _one(together: list[Rounds], columns: Columns) -> Rounds:
    """The trial that these rows are; ParseError where they cannot be one."""
    trial = together[0] if len(together) == 1 else tuple(one for row in together for one in row)
    if len(trial) == 1:
        return trial
    first = trial[0]
    other = next((one for one in trial if one.do != first.do), None)
    if other is not None:
        raise ParseError(
            f"in all rows of a trial the same was set, but trial {first.trial} says both {_set_by(first, columns)} and "
            f"{_set_by(other, columns)}. Correct one of the two, or leave the trials' numbers out."
        )
    rounds = sum(one.times for one in trial)
    if rounds > MOST_ROUNDS:
        raise ParseError(
            f"a trial has at most {MOST_ROUNDS:,} rounds, and rows with counts that stand together and set the same, "
            f"here {_set_by(first, columns)}, are one, but they have {rounds:,}. Import a share of every row's count "
            "at a time."
        )
    return trial


def _warn_of_sorted(trials: list[Rounds], context: list[int], columns: Columns) -> None:
    """Rows that were summed up once, and sorted by what was seen or by their counts, stand apart from those that set
    the same: several trials, and no row comes twice."""
    alike: dict[Hashable, list[Rounds]] = {}
    for trial in trials:
        if trial[0].trial is None and (len(trial) > 1 or trial[0].times > 1):
            alike.setdefault(_trial_of(trial[0], context), []).append(trial)
    for apart in alike.values():
        rows = [tuple(one.observation) for trial in apart for one in trial]
        if len(apart) > 1 and len(set(rows)) == len(rows):
            warnings.warn(
                f"rows with counts that set the same, such as {_set_by(apart[0][0], columns)}, stand apart: they are "
                "trials that are learned one after another. If they were summed up over the same time, sort the table "
                "by what was set (and by the context), so that they are one trial, in no order.",
                DobanditWarning,
                stacklevel=4,
            )
            return


def _set_by(one: Round, columns: Columns) -> dict[str, float]:
    return columns.decode(columns.encode(one.do))
