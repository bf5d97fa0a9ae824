"""RoundLog: the rounds that a learner was told, kept so that it can be told them again when its graph changes.

A value takes a byte: what it was, and whether it was set. The constant's byte says how a row was told: as a round in
its order, or as the first or a further row of a batch whose order is lost. Memory is bounded by `MOST_KEPT` bytes,
which are three million rounds of ten variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined
from dobandit.policy.engine import Rounds

MOST_KEPT = 1 << 25
SET, MISSING = 2, 4  # added to 0 or 1 where a variable was set; not seen
ORDERED, FIRST, FURTHER = 0, 1, 2  # how a row was told
_BLOCK = 1 << 16  # bytes
_VALUES = np.array([0.0, 1.0, 0.0, 1.0, np.nan])
_WAS_SET = np.array([False, False, True, True, False])
Codes = NDArray[np.int8]


@inlined
def write_codes(codes: Any, t: int, values: Any, was_set: Any) -> None:
    """Row t: a round in its order, in which everything was seen."""
    codes[t, 0] = ORDERED
    for v in range(1, len(values)):
        codes[t, v] = int(values[v] > 0.5) + (SET if was_set[v] else 0)


def encoded(rounds: Rounds, sizes: NDArray[np.int64] | None) -> Codes:
    """Rounds as rows of a log. sizes: of batches one after another whose order is lost; None: rounds in their order."""
    codes = np.where(np.isnan(rounds.values), MISSING, (rounds.values > 0.5) + SET * rounds.was_set).astype(np.int8)
    codes[:, 0] = ORDERED if sizes is None else FURTHER
    if sizes is not None:
        codes[np.cumsum(sizes) - sizes, 0] = FIRST
    return codes


def decoded(codes: Codes, counts: NDArray[np.int64] | None = None) -> Rounds:
    """Rows of a log as rounds; each was seen once, unless there are counts."""
    values, was_set = _VALUES[codes], _WAS_SET[codes]
    values[:, 0], was_set[:, 0] = 1.0, False
    return Rounds(values, was_set, np.ones(len(codes), dtype=np.int64) if counts is None else counts)


class RoundLog:
    """Rounds of variables of 0 and 1, in the order in which they were told. Blocks of rows are never written again, and
    copies share them, so that a hundred copies of a long log hold its rounds once."""

    def __init__(self, width: int) -> None:
        self.width, self.rows = width, 0
        self._blocks: list[tuple[Codes, NDArray[np.int64]]] = []

    @property
    def room(self) -> int:
        """How many more rows can be kept."""
        return max(MOST_KEPT // self.width - self.rows, 0)

    def copy(self) -> RoundLog:
        twin = RoundLog(self.width)
        twin.rows, twin._blocks = self.rows, list(self._blocks)
        return twin

    def add(self, codes: Codes, counts: NDArray[np.int64]) -> None:
        """Keep rows, and how often each was seen; the arrays belong to the log from now on."""
        self.rows += len(codes)
        if self._blocks and (len(self._blocks[-1][0]) + len(codes)) * self.width <= _BLOCK:
            last = self._blocks.pop()
            codes, counts = np.concatenate([last[0], codes]), np.concatenate([last[1], counts])
        self._blocks.append((codes, counts))

    def told(self) -> Iterator[tuple[Rounds, NDArray[np.int64] | None]]:
        """All rounds, part by part: rounds in their order, or batches one after another with how many rows each has."""
        for codes, counts in self._blocks:
            rounds, kind = decoded(codes, counts), codes[:, 0]
            changes = np.flatnonzero(np.diff(kind == ORDERED)) + 1
            for start, stop in pairwise([0, *changes.tolist(), len(codes)]):
                first = np.flatnonzero(kind[start:stop] == FIRST)
                yield rounds.part(slice(start, stop)), np.diff(first, append=stop - start) if len(first) else None
