"""RoundLog: the rounds that a learner was told, kept so that it can be told them again when its graph changes.

A value takes a byte: what it was, and whether it was set. Memory is bounded by `MOST_KEPT` bytes, which are three
million rounds of ten variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined
from dobandit.policy.engine import Rounds

MOST_KEPT = 1 << 25
SET, MISSING = 2, 4  # added to 0 or 1 where a variable was set; not seen
_BLOCK = 1 << 16  # bytes
_VALUES = np.array([0.0, 1.0, 0.0, 1.0, np.nan])
_WAS_SET = np.array([False, False, True, True, False])
Codes = NDArray[np.int8]
Sizes = (
    NDArray[np.int64] | None
)  # rows of batches one after another whose own order is lost; None: rounds in their order


class _Block(NamedTuple):
    """Rows that were told in one way; never written again."""

    codes: Codes
    counts: NDArray[np.int64]
    sizes: Sizes


@inlined
def write_codes(codes: Any, t: int, values: Any, was_set: Any) -> None:
    """Row t: a round in which everything was seen."""
    codes[t, 0] = 1
    for v in range(1, len(values)):
        codes[t, v] = int(values[v] > 0.5) + (SET if was_set[v] else 0)


def encoded(rounds: Rounds) -> Codes:
    """Rounds as rows of a log."""
    codes = np.where(np.isnan(rounds.values), MISSING, (rounds.values > 0.5) + SET * rounds.was_set)
    return codes.astype(np.int8)


def decoded(codes: Codes, counts: NDArray[np.int64]) -> Rounds:
    """Rows of a log as rounds."""
    return Rounds(_VALUES[codes], _WAS_SET[codes], counts)


class RoundLog:
    """Rounds of variables of 0 and 1, in the order in which they were told. Copies share all blocks of rows, so that a
    hundred copies of a long log hold its rounds once."""

    def __init__(self, width: int) -> None:
        self.width, self.rows = width, 0
        self._blocks: list[_Block] = []

    @property
    def room(self) -> int:
        """How many more rows can be kept."""
        return max(MOST_KEPT // self.width - self.rows, 0)

    def copy(self) -> RoundLog:
        twin = RoundLog(self.width)
        twin.rows, twin._blocks = self.rows, list(self._blocks)
        return twin

    def add(self, codes: Codes, counts: NDArray[np.int64], sizes: Sizes = None) -> None:
        """Keep rows, and how often each was seen; the array of codes belongs to the log from now on."""
        self.rows, last = self.rows + len(codes), self._blocks[-1] if self._blocks else None
        if last and (last.sizes is None) == (sizes is None) and (len(last.codes) + len(codes)) * self.width <= _BLOCK:
            codes, counts = np.concatenate([last.codes, codes]), np.concatenate([last.counts, counts])
            sizes = None if last.sizes is None or sizes is None else np.concatenate([last.sizes, sizes])
            self._blocks.pop()
        self._blocks.append(_Block(codes, counts.copy(), None if sizes is None else sizes.copy()))

    def told(self) -> Iterator[tuple[Rounds, Sizes]]:
        """All rounds, part by part."""
        return ((decoded(block.codes, block.counts), block.sizes) for block in self._blocks)
