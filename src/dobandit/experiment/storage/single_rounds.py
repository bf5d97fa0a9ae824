"""Thousands of closed trials at a time, as one text that the database puts together.

Nearly all trials of a long log are one round each, and rounds of 0 and 1 repeat themselves. To hand each of them over
field by field takes longer than to learn from them. Here they come as lines, of which equal ones are read and summed up
once. The checksums come added up, each times its place among the lines: a line that was changed, and two that were
exchanged, change the sum. Whatever is not plain, or not as it should be, is left to `Storage.closed_columns`, which
reads trial by trial and can say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sqlalchemy import BigInteger, ColumnElement, Executable, Text, bindparam, func, literal_column, select

from dobandit.experiment.storage.base import TOLD, SingleRounds
from dobandit.experiment.storage.checksums import LARGEST, NUMBER, POSITION, text_sum
from dobandit.experiment.storage.connected import Parameters
from dobandit.experiment.storage.schema import trials

Read = Callable[[Executable, Parameters], list[tuple[Any, ...]]]
_MOST = 50_000  # lines, so that their sum fits into 63 bits
_NEXT_LINE = literal_column("'\n'", Text)
_BETWEEN = "]["  # where what was set ends, and what was seen begins

_number, _position = trials.c.number, trials.c.position
_of_experiment = trials.c.experiment == bindparam("of_experiment")
_ENDS = select(_number).where(_of_experiment, _position.in_([bindparam("first"), bindparam("last")]))


def _whole(number: int) -> ColumnElement[int]:
    return literal_column(str(number), BigInteger)


def _lines(place: Any, *further: ColumnElement[bool]) -> Executable:
    """The lines of the plain trials whose `place` is in a range, in that order; the sum of their texts' checksums, the
    first once, the second twice, and so on; and how many there are."""
    where = (_number * _whole(NUMBER) + _position * _whole(POSITION)).bitwise_and(_whole(LARGEST))
    line = (trials.c.do + trials.c.observation).label("line")
    plain = (
        select(trials.c.checksum, where.label("where"), (_position - bindparam("before")).label("times"), line)
        .where(_of_experiment, place.between(bindparam("first"), bindparam("last")), *further)
        .where(trials.c.state == TOLD, trials.c.counts.is_(None), trials.c.rounds == 1)
        .where(trials.c.checksum.between(0, _whole(LARGEST)))
        .order_by(place)
        .subquery()
    )
    a, b = plain.c.checksum, plain.c.where
    of_text = a + b - 2 * a.bitwise_and(b)  # exclusive or, which SQLite has not
    lines = func.aggregate_strings(plain.c.line, _NEXT_LINE)  # type: ignore[arg-type]
    return select(lines, func.sum(of_text * plain.c.times), func.count())


_BY_NUMBER = _lines(_number, _position - _number == bindparam("ahead"))
_BY_POSITION = _lines(_position)


def read_single_rounds(read: Read, experiment: int, position: int, most: int) -> SingleRounds | None:
    """See `Storage.single_rounds`. Trials that were closed in the order of their numbers, as those of an import, are
    read by number: the rows stand in that order, and need not be looked up one by one."""
    of, last = {"of_experiment": experiment}, position + most - 1
    ends = [number for (number,) in read(_ENDS, {**of, "first": position, "last": last})]
    if most > _MOST or [type(number) for number in ends] != [int, int]:
        return None
    of["before"] = position - 1
    first, found = min(ends), ("", 0, 0)
    if max(ends) - first == most - 1:
        [found] = read(_BY_NUMBER, {**of, "first": first, "last": max(ends), "ahead": position - first})
    if found[2] != most:
        [found] = read(_BY_POSITION, {**of, "first": position, "last": last})
    return _distinct(found[0], int(found[1]), position, most) if found[2] == most else None


def _distinct(text: str, text_sums: int, position: int, most: int) -> SingleRounds | None:
    """The lines, each distinct one once; None where they are not what was stored."""
    lines = text.split("\n")
    index = {line: i for i, line in enumerate(dict.fromkeys(lines))}
    which = np.fromiter(map(index.__getitem__, lines), np.int64, len(lines))
    do, observations = [], []
    for line in index:
        was_set, _, seen = line.partition(_BETWEEN)
        do.append(f"{was_set}]")
        observations.append(f"[{seen}")
    sums = [text_sum(TOLD, *said, None, 1) for said in zip(do, observations, strict=True)]
    total = int(np.array(sums, dtype=np.int64)[which] @ np.arange(1, len(lines) + 1))
    return SingleRounds(position, do, observations, which) if (len(lines), total) == (most, text_sums) else None
