"""Which rows of a source are one trial.

Learners that weigh a round by what was predicted before it spread the rounds of one trial evenly (see
`policy.unordered`). Rows that were summed up have lost their order: taken as a trial each, they would be five hundred
equal rounds of one outcome, then twenty of the next. So what was told together stays together, and what was summed up
is taken as told together.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from itertools import groupby
from typing import NamedTuple

from dobandit.errors import DobanditWarning, ParseError
from dobandit.experiment.rounds import Columns
from dobandit.experiment.row_texts import Row
from dobandit.experiment.tables import MOST_ROUNDS


class Round(NamedTuple):
    """What was set and what was seen, in columns; partial: some variable was neither set nor seen.

    times  how often just this happened
    trial  what all rows of its trial have in common: the trial's number in the source, or an object of its own where
           the rows came as one list; None: the source does not say
    """

    do: Row
    observation: Row
    partial: bool
    times: int = 1
    trial: object = None


Rounds = tuple[Round, ...]  # of one row of a source, or of one trial


def as_trials(rows: list[Rounds], columns: Columns) -> list[Rounds]:
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
