"""Diary: the rounds that a learner was told, kept so that another learner can be told them.

A value takes a byte: what it was, and whether it was set. Rows of trials whose order is lost stay together, as they
were told. Memory is bounded by `MOST_KEPT` bytes, which are three million rounds of ten variables; then `room` is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined
from dobandit.policy.engine import Rounds, batches

MOST_KEPT = 1 << 25
SET, MISSING = 2, 4  # added to 0 or 1 where a variable was set; not seen
_VALUES = np.array([0.0, 1.0, 0.0, 1.0, np.nan])
_WAS_SET = np.array([False, False, True, True, False])
_BLOCK = 1 << 12  # rows


class Part(NamedTuple):
    """Rows of a diary that are told together."""

    start: int
    stop: int
    ordered: bool


class _Block(NamedTuple):
    """Some rows of a diary."""

    codes: NDArray[np.int8]
    counts: NDArray[np.int64]


def _block(width: int) -> _Block:
    return _Block(np.empty((_BLOCK, width), dtype=np.int8), np.empty(_BLOCK, dtype=np.int64))


@inlined
def write_codes(codes: Any, t: int, values: Any, was_set: Any) -> None:
    """Row t of a diary: a round in which everything was seen."""
    for v in range(1, len(values)):
        codes[t, v] = int(values[v] > 0.5) + (SET if was_set[v] else 0)


class Diary:
    """Rounds of variables of 0 and 1, in the order in which they were told.

    Blocks that are full are never written again, and copies share them: what was known at a hundred places of a long
    log holds its rounds once.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.used = 0
        self._full: list[_Block] = []
        self._last = _block(width)
        self._batches: list[tuple[int, int]] = []  # rows whose order is lost

    @property
    def room(self) -> int:
        """How many more rows can be kept."""
        return max(MOST_KEPT // self.width - self.used, 0)

    def copy(self) -> Diary:
        twin, rows = Diary(self.width), self.used % _BLOCK
        twin.used, twin._full, twin._batches = self.used, list(self._full), list(self._batches)
        twin._last.codes[:rows], twin._last.counts[:rows] = (part[:rows] for part in self._last)
        return twin

    def add(self, codes: NDArray[np.int8], counts: NDArray[np.int64] | None = None) -> None:
        """Keep rows of codes, and how often each was seen; default: once."""
        done = 0
        while done < len(codes):
            start = self.used % _BLOCK
            stop = min(start + len(codes) - done, _BLOCK)
            taken = slice(done, done + stop - start)
            self._last.codes[start:stop] = codes[taken]
            self._last.counts[start:stop] = 1 if counts is None else counts[taken]
            self.used, done = self.used + stop - start, taken.stop
            if stop == _BLOCK:
                self._full.append(self._last)
                self._last = _block(self.width)

    def write(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None) -> None:
        """Take rounds in. sizes: of batches one after another, whose own order is lost."""
        start = self.used
        codes = np.where(np.isnan(rounds.values), MISSING, (rounds.values > 0.5) + SET * rounds.was_set)
        codes[:, 0] = 1
        self.add(codes.astype(np.int8), rounds.counts)
        if sizes is not None:
            self._batches += [(start + rows.start, start + rows.stop) for rows in batches(sizes)]

    def read(self, start: int, stop: int) -> Rounds:
        """Rows of the diary as rounds."""
        first, last = start // _BLOCK, max(stop - 1, start) // _BLOCK
        within = slice(start - first * _BLOCK, stop - first * _BLOCK)
        if first == last:  # most often
            block = self._full[first] if first < len(self._full) else self._last
            codes, counts = block.codes[within], block.counts[within]
        else:
            some = [*self._full[first:], self._last][: last - first + 1]
            codes, counts = (np.concatenate(parts)[within] for parts in zip(*some, strict=True))
        return Rounds(_VALUES[codes], _WAS_SET[codes], counts)

    def parts(self, start: int, stop: int) -> Iterator[Part]:
        """The rows from `start` to `stop`, in parts that are told together."""
        for first, last in self._batches:
            if last <= start:
                continue
            if first >= stop:
                break
            if first > start:
                yield Part(start, first, True)
            yield Part(first, last, False)
            start = last
        if start < stop:
            yield Part(start, stop, True)
