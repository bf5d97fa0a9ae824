"""What was known on the way through a log, at a bounded number of places, as far from each other as the log is long."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dobandit.experiment.replica import Replica
    from dobandit.policy.learner import Learner

MOST, APART = 32, 5_000  # places, and closed trials from one to the next until there are too many
MOST_SHOWN = 64  # places of an experiment whose course is shown


class Milestones:
    """Of one experiment, at multiples of `apart` closed trials. Threads may use it at the same time: a list is
    replaced, and none is changed."""

    def __init__(self, most: int, apart: int) -> None:
        self.most, self.apart = most, apart
        self.kept: Sequence[tuple[int, Learner]] = ()  # by position; whoever learns on takes a copy

    def expect(self, closed: int) -> None:
        """A log of this length will be read: no place is kept that would be given up on the way."""
        while closed > self.most * self.apart:
            self._thin_out()

    def room(self, position: int) -> int:
        """How many trials can be taken in before the next place."""
        return self.apart - position % self.apart

    def passed(self, replica: Replica) -> None:
        """Keep a copy of what it knows, where that is a place to keep."""
        kept, position = self.kept, replica.position
        i = bisect_right(kept, position, key=lambda one: one[0])
        if position % self.apart or not position or (i and kept[i - 1][0] == position):
            return
        self.kept = [*kept[:i], (position, replica.learner.copy()), *kept[i:]]
        if len(self.kept) > self.most:
            self._thin_out()

    def _thin_out(self) -> None:
        self.apart *= 2
        self.kept = [one for one in self.kept if one[0] % self.apart == 0]

    def before(self, position: int) -> tuple[int, Learner] | None:
        """The last one up to a position."""
        kept = self.kept
        i = bisect_right(kept, position, key=lambda one: one[0])
        return kept[i - 1] if i else None
