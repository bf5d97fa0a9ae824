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
_FIRST_ROOM = 256


class Part(NamedTuple):
    """Rows of a diary that are told together."""

    start: int
    stop: int
    ordered: bool


@inlined
def write_codes(codes: Any, t: int, values: Any, was_set: Any) -> None:
    """Row t of a diary: a round in which everything was seen."""
    for v in range(1, len(values)):
        codes[t, v] = int(values[v] > 0.5) + (SET if was_set[v] else 0)


class Diary:
    """Rounds of variables of 0 and 1, in the order in which they were told."""

    def __init__(self, width: int) -> None:
        self.codes: NDArray[np.int8] = np.ones((_FIRST_ROOM, width), dtype=np.int8)
        self.counts: NDArray[np.int64] = np.ones(_FIRST_ROOM, dtype=np.int64)
        self.used = 0
        self._batches: list[tuple[int, int]] = []  # rows whose order is lost

    @property
    def room(self) -> int:
        """How many more rows can be kept."""
        return max(MOST_KEPT // self.codes.shape[1] - self.used, 0)

    def copy(self) -> Diary:
        twin = Diary.__new__(Diary)
        twin.codes, twin.counts = self.codes[: self.used + 1].copy(), self.counts[: self.used + 1].copy()
        twin.used, twin._batches = self.used, list(self._batches)
        return twin

    def open(self, rows: int) -> NDArray[np.int8]:
        """The next so many rows, to be written to; they count from now on, once each."""
        while self.used + rows > len(self.codes):
            self.codes = np.concatenate([self.codes, np.ones_like(self.codes)])
            self.counts = np.concatenate([self.counts, np.ones_like(self.counts)])
        self.used += rows
        return self.codes[self.used - rows : self.used]

    def write(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None) -> None:
        """Take rounds in. sizes: of batches one after another, whose own order is lost."""
        start = self.used
        codes = self.open(len(rounds.counts))
        codes[:] = np.where(np.isnan(rounds.values), MISSING, (rounds.values > 0.5) + SET * rounds.was_set)
        codes[:, 0] = 1
        self.counts[start : self.used] = rounds.counts
        if sizes is not None:
            self._batches += [(start + rows.start, start + rows.stop) for rows in batches(sizes)]

    def read(self, start: int, stop: int) -> Rounds:
        """Rows of the diary as rounds."""
        codes = self.codes[start:stop]
        return Rounds(_VALUES[codes], _WAS_SET[codes], self.counts[start:stop].copy())

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
