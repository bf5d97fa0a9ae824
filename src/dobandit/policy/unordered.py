"""The order in which rounds are learned whose own order was not kept: those of one trial, told together.

Sorted, as the log has their distinct rows, all rounds of one outcome would come before those of the next. Where a
round weighs by what was predicted before it, that is no order to learn in: after a thousand zeros a one is a surprise,
and the weights that follow are off by much more than chance. So each row's occurrences are spread evenly over the
batch: occurrence k of a row that was seen c times stands at (k + u) / c, u in [0, 1) by the row's place among the
distinct ones, multiples of the golden ratio, which are spread evenly however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dobandit.policy.engine import Rounds

_GOLDEN = (5.0**0.5 - 1.0) / 2.0
_AT_ONCE = 1 << 16  # rounds that are written out at a time


def spread(counts: NDArray[np.int64], sizes: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """The row of each round, in the order of learning.

    counts  how often each row was seen
    sizes   how many of the rows each of several batches has, one after another; default: all are one batch

    >>> spread(np.array([2, 4])).tolist()
    [1, 0, 1, 1, 0, 1]
    """
    sizes = np.array([len(counts)]) if sizes is None else sizes
    batch = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(counts)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # among the distinct rows of its batch
    row = np.repeat(np.arange(len(counts)), counts)
    occurrence = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = (occurrence + (place[row] + 1) * _GOLDEN % 1.0) / counts[row]
    order: NDArray[np.int64] = row[np.lexsort((row, at, batch[row]))]
    return order


def learning_order(
    rounds: Rounds, sizes: NDArray[np.int64] | None = None, hidden: Sequence[int] = ()
) -> NDArray[np.int64]:
    """The row of each round, in the order of learning, which is made of what was seen alone: rows are sorted by their
    values, what was not seen last, and equal ones taken together; then they are spread.

    sizes   as in `spread`
    hidden  ids of variables that count as hidden: nothing is learned from them, and their values are not looked at
    """
    sizes = np.array([len(rounds.counts)]) if sizes is None else sizes
    batch = np.repeat(np.arange(len(sizes)), sizes)
    values = np.where(np.isnan(rounds.values), 2.0, rounds.values)
    values[:, list(hidden)] = 2.0
    told = np.hstack([values, rounds.was_set, batch[:, None]])
    by_value = np.lexsort(tuple(told.T[i] for i in (*range(told.shape[1] - 2, -1, -1), -1)))
    new = np.append(True, (told[by_value][1:] != told[by_value][:-1]).any(axis=1))[: len(by_value)]
    first = np.flatnonzero(new)
    counts = np.add.reduceat(rounds.counts[by_value], first) if len(first) else rounds.counts
    rows = by_value[first]
    return rows[spread(counts, np.bincount(batch[rows], minlength=len(sizes)))]


def one_by_one(rounds: Rounds, order: NDArray[np.int64]) -> Rounds:
    """Rounds that count once each."""
    return Rounds(rounds.values[order], rounds.was_set[order], np.ones(len(order), dtype=np.int64))


def spread_batches(rounds: Rounds, sizes: NDArray[np.int64], hidden: Sequence[int]) -> Iterator[Rounds]:
    """Batches one after another in the order of learning, some at a time."""
    ends, told, done = np.cumsum(sizes), np.cumsum(rounds.counts), 0
    while done < len(sizes):
        start = int(ends[done - 1]) if done else 0
        before = int(told[start - 1]) if start else 0
        stop = max(int(np.searchsorted(told[ends - 1], before + _AT_ONCE, side="right")), done + 1)
        part = rounds.part(slice(start, int(ends[stop - 1])))
        yield one_by_one(part, learning_order(part, sizes[done:stop], hidden))
        done = stop
