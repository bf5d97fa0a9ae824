"""What rounds leave behind: of a simulated run the curves of regret and reward, and which actions were played how often
(`Tape`); of any learner's rounds a log (`RoundLog`), so that it can be told them again when its graph changes.

A value in a log takes a byte: what it was, and whether it was set. Memory is bounded by `MOST_KEPT` bytes, which are
three million rounds of ten variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.kernels import inlined, kernel, record
from dobandit.oracle.actions import Action, Actions
from dobandit.policy.engine import Rounds, no_context
from dobandit.policy.own_outcomes import numbered, pattern_of

Array = NDArray[np.float64]
SAME = 1e-12  # values this close are equally good


POINT = record(round="i8", regret="f8", reward="f8")  # of the curves: cumulative up to a round
# Running sums; rounds played, in how many of them an optimal action; the next point
TOTALS = record(regret="f8", reward="f8", rounds="i8", optimal="i8", point="i8")


class Tape(NamedTuple):
    """The arrays that compiled rounds write to.

    Column i of `expected` is E[Y] of listed action i, its last column that of setting nothing (but what is required);
    a row per pattern of the context variables. Without a list there is no column.
    """

    expected: Array  # (patterns, actions + 1)
    best: Array  # (patterns,) the largest E[Y] of an allowed action
    plays: NDArray[np.int64]  # (actions + 1,)
    curve: NDArray[Any]  # POINT, by rounds, from 1
    totals: NDArray[Any]  # (1,) TOTALS


class Recorder:
    """Records one run.

    value        E[Y] of an action given a context (by the learner's ids): the truth that regret is measured by
    context_ids  ids of the context variables, whose values number the rows of `tape.best`
    actions      the actions that are listed, for engines that play others than by number
    """

    def __init__(
        self,
        tape: Tape,
        value: Callable[[Action, Array], float],
        context_ids: NDArray[np.int32],
        actions: Actions | None = None,
    ) -> None:
        self.tape, self._value, self._context_ids, self._actions = tape, value, context_ids, actions

    @cached_property
    def _number(self) -> dict[Action, int]:
        """Where each listed action stands; compiled rounds, which play by number, have no need of it."""
        return {} if self._actions is None else numbered(self._actions)

    def note(self, action: Action, context: Array, reward: float) -> None:
        """Count a round."""
        pattern, number = int(pattern_of(self._context_ids, context)), self._number.get(action, -1)
        record_round(*self.tape[1:], pattern, number, self._value(action, context), reward)

    def tape_for(self, actions: Actions | None, nodes: int) -> tuple[Tape, NDArray[np.int64]]:
        """A tape for compiled rounds with another list of actions, that goes on where this one is, and where its
        actions stand in the list of this one, for `count_plays`. nodes: how many the learner's graph has."""
        if actions is None or not self.tape.expected.shape[1]:
            return self.tape, np.zeros(0, dtype=np.int64)
        rows = [actions.row(i) for i in range(len(actions.ids))]
        numbers = np.array([*(self._number.get(action, -1) for action in rows), -1], dtype=np.int64)
        expected = self.tape.expected.take(numbers, axis=1)
        for code in range(len(expected)):
            context = no_context(nodes)
            context[self._context_ids] = [float(code >> i & 1) for i in range(len(self._context_ids))]
            for i in np.flatnonzero(numbers[:-1] < 0).tolist():
                expected[code, i] = self._value(rows[i], context)
        return self.tape._replace(expected=expected, plays=np.zeros(len(numbers), dtype=np.int64)), numbers

    def count_plays(self, tape: Tape, numbers: NDArray[np.int64]) -> None:
        """Add what was played on a tape of `tape_for`, and begin to count anew there."""
        if tape.plays is not self.tape.plays:
            np.add.at(self.tape.plays, numbers, tape.plays)
            tape.plays[:] = 0


def blank_tape(expected: Array, best: Array, grid: NDArray[np.int64]) -> Tape:
    """A tape before the first round; grid: the rounds at which the curves are recorded, ascending."""
    curve = np.zeros(len(grid), POINT)
    curve["round"] = grid
    return Tape(expected, best, np.zeros(expected.shape[1], dtype=np.int64), curve, np.zeros(1, TOTALS))


@inlined
def record_round(
    best: Any, plays: Any, curve: Any, totals: Any, pattern: int, index: int, expected: float, reward: float
) -> None:
    """Count a round in which listed action `index` was played (-1: nothing, or none of the list), whose E[Y] is
    `expected`, and Y was `reward`."""
    total = totals[0]
    total["regret"] += best[pattern] - expected
    total["reward"] += reward
    total["rounds"] += 1
    total["optimal"] += expected >= best[pattern] - SAME
    if len(plays) > 0:
        plays[index] += 1
    k = total["point"]
    if k < len(curve) and curve[k]["round"] == total["rounds"]:
        curve[k]["regret"], curve[k]["reward"] = total["regret"], total["reward"]
        total["point"] += 1


MOST_KEPT = 1 << 25
SET, MISSING = 2, 4  # added to 0 or 1 where a variable was set; not seen
_BLOCK = 1 << 16  # bytes
_VALUES = np.array([0.0, 1.0, 0.0, 1.0, np.nan])
_WAS_SET = np.array([False, False, True, True, False])
Codes = NDArray[np.int8]
# Rows of batches one after another whose own order is lost; None: rounds in their order.
Sizes = NDArray[np.int64] | None


class _Block(NamedTuple):
    """Rows that were told in one way; never written again."""

    codes: Codes
    counts: NDArray[np.int64]
    sizes: Sizes


@kernel
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
