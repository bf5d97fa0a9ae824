"""From rows to trials: what was seen in many rounds is kept as distinct rows with counts.

Rows of one trial have no order: they are sorted by their texts, and equal ones counted together. So the same rows in
another order, or summed up with counts, are the same content, and teach the same to the last bit.

Rows that do not say which trial they are of are summed up over the whole source. What a node looks like is judged by
predictions of rows that are not yet known, so that rows in the order of their values, as sums have them, would speak
for tables and against everything that learns across patterns. So the rounds are shuffled (always in the same way) and
cut into parts, each a small share of all before it. Each part has a trial for everything that was set in it. As the
order is lost, intervals that rest on an order do without it (`Engine.update`).

Rows that name their trial, by its number or the time at which it was closed, stay one trial, in the order of the
source: an exported log comes back as the same trials.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import shown
from dobandit.errors import DobanditWarning, ExperimentError, ObservationError, ParseError, listed
from dobandit.rows.columns import Columns, Row, batch_text, columns_of, split_batch
from dobandit.rows.readers import Given, is_file, is_frame, named, read_rows
from dobandit.rows.stored_trial import IMPORTED, RANDOMISED, TOLD, ClosedTrial, StoredTrial, closed_trial
from dobandit.rows.table_columns import MOST_ROUNDS, Reading
from dobandit.texts import keyword

if TYPE_CHECKING:
    from dobandit.policy.problem import Problem

# What was seen in a trial: {"visit": 1, "buy": 0}, a list of such rows, a pandas.DataFrame, the path of a CSV file or
# an open text file.
Seen = Any
_SEED = 20_230_207
_SINGLE = 32  # rounds up to which each is a part by itself
_SHARE = 16  # then a part is one in so many of all before it


class Batch(NamedTuple):
    """What a trial brought, as the log keeps it.

    rounds   how many rounds, counts included
    missing  variables whose values were not told in some round
    untaught  variables that some round says nothing about, for want of these values
    """

    observation: str
    counts: str | None
    rounds: int
    partial: bool
    missing: tuple[str, ...] = ()
    untaught: tuple[str, ...] = ()

    def stored(self) -> dict[str, Any]:
        """The fields of a trial that it fills."""
        return {name: getattr(self, name) for name in ("observation", "counts", "rounds", "partial")}

    def trial(self, source: str, do: str, now: float | None = None) -> StoredTrial:
        """A trial that nobody asked for, and that is told already."""
        return StoredTrial(0, source, do, state=TOLD, closed_at=now, **self.stored())


# -- one trial -----------------------------------------------------------------------------------------------------


def batch_of(seen: Seen, columns: Columns, do_row: Row, context: Row | None = None) -> Batch:
    """What was seen where `do_row` was set, given what was known before (the context).

    seen  a mapping, or rows: mappings, a pandas.DataFrame, the path of a CSV file, or an open text file
    """
    if isinstance(seen, Mapping) and columns.count_key in seen:
        seen = [seen]
    single = isinstance(seen, (Mapping, bytes)) or hasattr(seen, "to_dict")  # a row of a pandas frame is iterable, too
    if is_file(seen) or is_frame(seen) or (isinstance(seen, Iterable) and not single):
        times_seen = _summed(seen, columns, (do_row, context))
    else:
        times_seen = Counter([columns.encode(columns.observation_row(seen, do_row, context))])
    rounds = times_seen.total()
    if rounds > MOST_ROUNDS:
        raise ObservationError(
            f"a trial has at most {MOST_ROUNDS:,} rounds, but got {rounds:,}. Tell a part, and record the rest."
        )
    rows = [columns.values(text) for text in times_seen if "null" in text]
    missing = {name for row in rows for name in columns.missing(row)}
    untaught = {name for row in rows for name in columns.untaught(row, do_row)}
    in_order = (tuple(name for name in columns.names if name in names) for names in (missing, untaught))
    return Batch(*batch_text(times_seen), rounds, bool(missing), *in_order)


def _summed(seen: Any, columns: Columns, given: Given) -> Counter[str]:
    """How often each row was seen."""
    try:
        readings = read_rows(seen, columns, given=given)
    except ParseError as error:
        if not (error.where or "").startswith("row "):
            raise
        raise ObservationError(error.marked) from None
    if not readings:
        raise ObservationError(
            "a trial is told with at least one row, but there is none. Mark it as failed, if nothing was seen."
        )
    return Counter({seen: times for (_, seen), times in _counted(readings).items()})


def _counted(readings: Iterable[Reading]) -> Counter[tuple[str, str]]:
    """How often each row was seen, by what was set and what was seen."""
    times_seen: Counter[tuple[str, str]] = Counter()
    for reading, rows in Counter(readings).items():  # equal ones are counted quickly
        times_seen[reading.do, reading.seen] += reading.times * rows
    return times_seen


# -- many trials ---------------------------------------------------------------------------------------------------


class ImportedRows(NamedTuple):
    """The trials that the rows of a source are, and the columns that were passed over: they are no variables.

    names_trials  whether rows say which trial they are of, as those of an experiment's log do
    """

    trials: tuple[StoredTrial, ...]
    rounds: int
    passed: tuple[str, ...] = ()
    names_trials: bool = False

    def closed(self) -> list[ClosedTrial]:
        """The trials as a learner takes them in, at the beginning of a log."""
        return [closed_trial(trial, i, i) for i, trial in enumerate(self.trials)]


def source_of(randomised: bool, otherwise: str) -> str:
    """Where a trial comes from that nobody asked for. randomised: whether its action was chosen at random."""
    if not isinstance(randomised, bool):
        raise ExperimentError(f"randomised is True or False, but got {shown(randomised)}.")
    return RANDOMISED if randomised else otherwise


def import_rows(
    source: Any, columns: Columns, now: float | None = None, passed: list[str] | None = None, randomised: bool = False
) -> ImportedRows:
    """The trials that the rows of a source are, checked as a whole.

    source      the path of a CSV or Parquet file, an open text file, a frame or rows: see `read_rows`
    passed      where unknown columns that are like no known one are listed, and passed over; None: they are refused
    randomised  whether what was set in the rows was chosen at random
    """
    whence = source_of(randomised, IMPORTED)
    with named(source):
        readings = read_rows(source, columns, passed)
        if not readings:
            raise ParseError("the data have at least one round that was told, but there is none. Check the source.")
        of_trials = [reading for reading in readings if reading.trial is not None]
        trials = _named_trials(of_trials, columns)
        trials += _parts([reading for reading in readings if reading.trial is None], columns)
    rounds = sum(trial.rounds for trial in trials)
    trials = [trial._replace(source=whence, closed_at=now) for trial in trials]
    return ImportedRows(tuple(trials), rounds, tuple(passed or ()), bool(of_trials))


def _imported(rows: Mapping[str, int], do: str, columns: Columns, counted: bool) -> StoredTrial:
    partial = any("null" in text and columns.missing(columns.values(text)) for text in rows)
    return Batch(*batch_text(rows, counted), sum(rows.values()), partial).trial(IMPORTED, do)


def _named_trials(readings: Sequence[Reading], columns: Columns) -> list[StoredTrial]:
    """The trials of rows that name them, in their order."""
    trials: list[StoredTrial] = []
    numbers: set[Hashable] = set()
    # At one time the same may be set more than once, and different things may be set.
    for trial, rows in groupby(readings, lambda row: row.trial if type(row.trial) is int else (row.trial, row.do)):
        if trial in numbers:
            raise ParseError(
                f"the rows of a trial stand together, but those of trial {trial} stand apart. Sort the table by "
                "trial.number; if it is of several experiments, import the rows of each by themselves; if the "
                "numbers mean nothing, leave them out."
            )
        if type(trial) is int:
            numbers.add(trial)
        of_trial = list(rows)
        done = [*dict.fromkeys(row.do for row in of_trial)]
        if len(done) > 1:
            raise ParseError(
                f"in all rows of a trial the same was set, but trial {trial} says both {columns.decode(done[0])} and "
                f"{columns.decode(done[1])}. Correct one of the two, or leave the trials' numbers out."
            )
        times_seen = {seen: times for (_, seen), times in _counted(of_trial).items()}
        trials.append(_imported(times_seen, done[0], columns, of_trial[0].summed))
        if trials[-1].rounds > MOST_ROUNDS:
            raise ParseError(
                f"a trial has at most {MOST_ROUNDS:,} rounds, but trial {of_trial[0].trial} has "
                f"{trials[-1].rounds:,}. Give parts of it numbers of their own."
            )
    return trials


def _parts(readings: Sequence[Reading], columns: Columns) -> list[StoredTrial]:
    """The trials of rows that name none."""
    counts = _counted(readings)
    if counts.total() > MOST_ROUNDS:
        raise ObservationError(
            f"the data have at most {MOST_ROUNDS:,} rounds, but got {counts.total():,}. Give a part of them."
        )
    keys = sorted(counts)
    trials: list[StoredTrial] = []
    for part in _shuffled(np.array([counts[key] for key in keys], dtype=np.int64)):
        by_do: dict[str, dict[str, int]] = {}
        for row, count in zip(*(column.tolist() for column in part), strict=True):
            do, seen = keys[row]
            by_do.setdefault(do, {})[seen] = count
        trials += [_imported(rows, do, columns, counted=True) for do, rows in by_do.items()]
    return trials


def _shuffled(counts: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(rows, counts) of each part, of rounds in a shuffled order that depends on the counts alone."""
    order = np.random.default_rng(_SEED).permutation(np.repeat(np.arange(len(counts)), counts))
    parts, done = [], 0
    while done < len(order):
        size = 1 if done < _SINGLE else -(-done // _SHARE)
        parts.append(np.unique(order[done : done + size], return_counts=True))
        done += size
    return parts


# -- data from before an experiment ----------------------------------------------------------------------------------


def prior_rows(
    problem: Problem, source: Any, now: float | None = None, randomised: bool = False, keeps_model: bool = True
) -> ImportedRows:
    """The data that an experiment begins with, which need not exist.

    A row teaches each variable whose value and whose causes' values are there, unless it was set in that row.

    keeps_model  whether a model of the causes is learned from the data
    """
    columns, passed = columns_of(problem), list[str]()
    rows = import_rows(source, columns, now, passed, randomised)
    _require_seen(rows, columns)
    if passed:
        warnings.warn(
            f"columns that are no variables of the graph are passed over: {listed(passed)}.",
            DobanditWarning,
            stacklevel=3,
        )
    if problem.selective and keeps_model:
        _require_taught(rows, problem, columns)
    return rows


def _require_seen(rows: ImportedRows, columns: Columns) -> None:
    """Every variable has a value somewhere: a column that is missing, or misspelt, is not taken for one that is
    empty."""
    seen: set[int] = set()
    for trial in rows.trials:
        if len(seen) == len(columns.names):
            return
        for text in split_batch(trial.observation or "", trial.counts)[0]:
            seen.update(i for i, value in enumerate(columns.values(text)) if value is not None)
    missing = columns.missing([0 if i in seen else None for i in range(len(columns.names))])
    if missing:
        way = "Add its column: it is what the data have to tell of."
        if columns.graph.target not in missing:
            way = f"Add the column, or say that it is hidden: {keyword('latent', missing[:1])}."
        raise ParseError(
            f"the data have a column for every observed variable, but {listed(missing)} "
            f"{'has' if len(missing) == 1 else 'have'} no value in any row. {way}"
        )


def _require_taught(rows: ImportedRows, problem: Problem, columns: Columns) -> None:
    """A model learns from rounds that set what is always set, and nothing that counts as hidden: some must be there,
    and those that are left out are counted."""
    taught = problem.teaches(columns.masks([trial.do for trial in rows.trials]))
    left_out = rows.rounds - sum(trial.rounds for trial, enters in zip(rows.trials, taught, strict=True) if enters)
    if left_out == rows.rounds:
        why = [f"set {listed(problem.rules.always_set)}, which is always set"] if problem.rules.always_set else []
        why += [f"leave {listed(problem.hidden)} alone, which counts as hidden"] if problem.hidden else []
        raise ObservationError(
            f"the model learns from rounds that {' and '.join(why)}, but none of the {rows.rounds:,} given does. Say "
            "in a column `do` or `intervention_targets` what was set in each row; if it is as the data say, do without "
            f"{'always_set' if problem.rules.always_set else 'hide'}=[...], or take data from other rounds."
        )
    if left_out:
        warnings.warn(on_left_out(problem, left_out), DobanditWarning, stacklevel=4)


def on_left_out(problem: Problem, rounds: int) -> str:
    """Rounds that a model must not learn from."""
    why = [f"{listed(problem.rules.always_set)} was not set"] if problem.rules.always_set else []
    why += [f"{listed(problem.hidden)} was set"] if problem.hidden else []
    return f"{rounds:,} rounds in which {' or '.join(why)} are left out: the model does not learn from them."
