"""Copies of what was known at some places of the log, so that no place has to be learned from the beginning again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dobandit.experiment.replayed_learner import ReplayedLearner

MOST = 64  # places


class Checkpoints:
    """Of one experiment, at multiples of `apart` closed trials, which doubles when there are too many. Threads may use
    it at the same time: a list is replaced, and none is changed."""

    def __init__(self) -> None:
        self.apart = 1
        self.kept: Sequence[ReplayedLearner] = ()  # by position; whoever learns on takes a copy

    def expect(self, closed: int) -> None:
        """A log of this length will be read: no place is kept that would be given up on the way."""
        while closed > MOST * self.apart:
            self._thin_out()

    def room(self, position: int) -> int:
        """How many trials can be taken in before the next place."""
        return self.apart - position % self.apart

    def passed(self, learner: ReplayedLearner) -> None:
        """Keep a copy, where that is a place to keep."""
        kept, position = self.kept, learner.position
        i = bisect_right(kept, position, key=lambda one: one.position)
        if position % self.apart or not position or (i and kept[i - 1].position == position):
            return
        self.kept = [*kept[:i], learner.copy(), *kept[i:]]
        if len(self.kept) > MOST:
            self._thin_out()

    def _thin_out(self) -> None:
        self.apart *= 2
        self.kept = [one for one in self.kept if one.position % self.apart == 0]

    def before(self, position: int) -> ReplayedLearner | None:
        """The last one up to a position."""
        kept = self.kept
        i = bisect_right(kept, position, key=lambda one: one.position)
        return kept[i - 1] if i else None
