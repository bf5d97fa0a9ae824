"""Rounds that happened elsewhere, from a file, a table or rows: all are checked before one is taken in.

A table has a column per variable, a column do:NAME for a variable that was set in some rounds (its value where it was,
empty where not) or a column that names what was set, and perhaps a column `count` (see `tables`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dobandit.errors import ExperimentError, InterventionError, ObservationError, ParseError
from dobandit.experiment.columnar import is_frame
from dobandit.experiment.rounds import Columns
from dobandit.experiment.tables import Numbered, Rows, Spoken, grouped, is_file, key_of, numbered_rows, plain_row
from dobandit.experiment.together import Round, Rounds, as_trials

_MOST_PROBLEMS = 5
_MOST_KNOWN = 100_000  # rows that are remembered


def read_history(source: Any, columns: Columns) -> list[Rounds]:
    """The trials of `source`, each its rounds, or ParseError with the first problems, and where they are.

    source  the path of a CSV file (or .csv.gz, or Parquet), an open text file with CSV, a frame, or rows: pairs (do,
            observation), mappings {"do": ..., "observation": ...}, or flat mappings {"X2": 1, "Y": 0, "do:X3": 1}.
            Lines are counted from 1, rows from 0.

    Equal rows that are a trial each are one object. Which rows are one trial together: see `as_trials`.
    """
    with _named(source):
        return as_trials(_read(source, columns, None), columns)


def read_summed(source: Any, columns: Columns, passed: list[str]) -> list[Round]:
    """The distinct rounds of `source`, each with its count: a hundred thousand rows of 0 and 1 are few.

    passed  where columns that are passed over are listed: they are no variables, and like none
    """
    with _named(source):
        return [one for rounds in _read(source, columns, passed) for one in rounds]


@contextmanager
def _named(source: Any) -> Iterator[None]:
    """What is wrong with a file is said with its path."""
    try:
        yield
    except ParseError as error:
        if isinstance(source, (str, os.PathLike)):
            raise error.in_source(os.fspath(source)) from None
        raise


def _read(source: Any, columns: Columns, passed: list[str] | None) -> list[Rounds]:
    """The rounds of each row."""
    iterable = isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes))
    if not iterable and not is_file(source) and not is_frame(source):
        raise ExperimentError(
            "rounds come as the path of a CSV or Parquet file, an open text file, a DataFrame or a list of rows, but "
            f"got {type(source).__name__}."
        )
    return _checked(numbered_rows(source, columns, passed), columns, passed is not None)


def _checked(source: Numbered, columns: Columns, together: bool) -> list[Rounds]:
    rows: list[Rounds] = []
    problems: list[tuple[int, str]] = []
    known: dict[Any, Rounds] = {}  # rows repeat themselves: an equal one is the same rounds, not read again
    for number, row, times in grouped(source.rows) if together else ((*one, 1) for one in source.rows):
        key = None if together else key_of(row)
        if key is not None and (before := known.get(key)) is not None:
            rows.append(before)
            continue
        try:
            said = source.spoken(row)
            found = () if said is None else _rounds_of(said, columns, times)
            if not found:
                continue
            rows.append(found)
            if key is not None and len(known) < _MOST_KNOWN:
                known[key] = found
        except (InterventionError, ObservationError, ParseError) as error:
            problems.append((number, str(error)))
            if len(problems) == _MOST_PROBLEMS:
                break
    if problems:
        number, first = problems[0]
        others = [f"\n{source.unit} {other}: {message}" for other, message in problems[1:]]
        line = number if source.unit == "line" else None
        raise ParseError("".join([first, *others]), where=f"{source.unit} {number}", line=line)
    if not rows:
        raise ParseError("the data have at least one round that was told, but there is none. Check the source.")
    return rows


def _rounds_of(said: Spoken, columns: Columns, times: int) -> Rounds:
    """One round per row; several where the row is a trial of many rounds, as `Experiment.trials` gives it."""
    do = columns.do_row(said.do)
    if not isinstance(said.observation, list):
        seen = columns.observation_row(said.observation, do)
        return (Round(do, *seen, times * said.times, said.trial),) if said.times else ()
    reader, trial = Rows(columns), object()
    rows = [one for row in said.observation if (one := plain_row(row, columns) or reader.spoken(row)) is not None]
    return tuple(
        Round(do, *columns.observation_row(row.observation, do), times * row.times * said.times, trial)
        for row in rows
        if row.times and said.times
    )
