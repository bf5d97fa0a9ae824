"""What was known on the way through a long log, at a bounded number of places: none is far from the next."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dobandit.experiment.replica import Replica
    from dobandit.policy.learner import Learner

MOST = 32
_FIRST = 5_000  # closed trials from one to the next, until there are too many


class Milestones:
    """Of one experiment. Threads may use it at the same time: a list is replaced, and none is changed."""

    def __init__(self) -> None:
        self._apart = _FIRST
        self._kept: list[tuple[int, Learner]] = []

    def passed(self, replica: Replica) -> None:
        """Keep a copy of what it knows, where there is none near."""
        kept = self._kept
        i = bisect_right(kept, replica.position, key=lambda one: one[0])
        before, behind = kept[i - 1][0] if i else 0, kept[i][0] if i < len(kept) else None
        if replica.position - before < self._apart or (behind is not None and behind - replica.position < self._apart):
            return
        grown = [*kept[:i], (replica.position, replica.learner.copy()), *kept[i:]]
        if len(grown) > MOST:
            grown, self._apart = grown[1::2], 2 * self._apart
        self._kept = grown

    def before(self, position: int) -> tuple[int, Learner] | None:
        """The last one up to a position; whoever learns on from there takes a copy."""
        kept = self._kept
        i = bisect_right(kept, position, key=lambda one: one[0])
        return kept[i - 1] if i else None
