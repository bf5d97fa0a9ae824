"""Which rows of a source are one trial.

Learners that weigh a round by what was predicted before it spread the rounds of one trial evenly (see
`policy.unordered`). Rows that were summed up have lost their order: taken as a trial each, they would be five hundred
equal rounds of one outcome, then twenty of the next. So what was told together stays together, and what was summed up
is taken as told together.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import groupby
from typing import NamedTuple

from dobandit.errors import ParseError
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
    numbers: set[Hashable] = set()
    for _, run in groupby(rows, lambda row: trial_of[id(row)]):
        together = list(run)
        number = together[0][0].trial
        if number is None and all(row[0].times == 1 for row in together):
            trials += together
            continue
        if isinstance(number, int):
            if number in numbers:
                raise _apart(number)
            numbers.add(number)
        trial = together[0] if len(together) == 1 else tuple(one for row in together for one in row)
        if len(trial) > 1:
            _require_one(trial, columns)
        trials.append(trial)
    return trials


def _trial_of(one: Round, context: list[int]) -> Hashable:
    """What is equal for rows next to each other that may be of one trial."""
    if one.trial is None:
        return tuple(one.do), tuple(one.observation[i] for i in context)
    return one.trial


def _apart(number: int) -> ParseError:
    return ParseError(
        f"the rows of a trial stand together, but those of trial {number} stand apart. Sort the table by trial.number; "
        "if it is of several experiments, import the rows of each by themselves; if the numbers mean nothing, leave "
        "them out."
    )


def _require_one(trial: Rounds, columns: Columns) -> None:
    """Whether these rounds can be one trial; otherwise ParseError."""
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


def _set_by(one: Round, columns: Columns) -> dict[str, float]:
    return columns.decode(columns.encode(one.do))
