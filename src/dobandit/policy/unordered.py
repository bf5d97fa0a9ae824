"""The order in which rounds are learned whose own order was not kept: those of one trial, told together.

The log has their distinct rows sorted, so that all rounds of one outcome would come before those of the next. Where a
round weighs by what was predicted before it, that is no order to learn in: after a thousand zeros a one is a surprise,
and the weights that follow are off by much more than chance. So each row's occurrences are spread evenly over the
batch: occurrence k of a row that was seen c times stands at (k + u) / c, u in [0, 1) by the row's place among the
distinct ones, multiples of the golden ratio, which are spread evenly however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def one_by_one(rounds: Rounds, order: NDArray[np.int64]) -> Rounds:
    """Rounds that count once each."""
    return Rounds(rounds.values[order], rounds.was_set[order], np.ones(len(order), dtype=np.int64))


def spread_batch(rounds: Rounds) -> Iterator[Rounds]:
    """A batch in the order of learning, part by part."""
    order = spread(rounds.counts)
    for start in range(0, len(order), _AT_ONCE):
        yield one_by_one(rounds, order[start : start + _AT_ONCE])


def spread_batches(rounds: Rounds, sizes: NDArray[np.int64]) -> Iterator[tuple[Rounds, NDArray[np.int64]]]:
    """Batches one after another in the order of learning, some at a time, with how many rounds each has."""
    ends, told, done = np.cumsum(sizes), np.cumsum(rounds.counts), 0
    each = np.diff(told[ends - 1], prepend=0)
    while done < len(sizes):
        start = int(ends[done - 1]) if done else 0
        before = int(told[start - 1]) if start else 0
        stop = max(int(np.searchsorted(told[ends - 1], before + _AT_ONCE, side="right")), done + 1)
        part = rounds.part(slice(start, int(ends[stop - 1])))
        yield one_by_one(part, spread(part.counts, sizes[done:stop])), each[done:stop]
        done = stop
