"""What is known of an experiment: a learner and sums that follow its log, for asks, answers and pages alike.

All of it can be read from the log again, and is valid for as many closed trials as it has taken in (`position`).

Two locks. An ask holds `asking`, which guards the learner. An answer holds `answering`, which guards all else, and
takes `asking` only for as long as it takes to read what was closed since and to copy the learner: a long answer never
keeps an ask waiting. Whoever takes both takes `answering` first.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dobandit.errors import DobanditError
from dobandit.experiment.accumulator import EVERY, Predictions, RoundCounts, StatusSums
from dobandit.experiment.definition import Definition
from dobandit.experiment.plain_work import learning
from dobandit.rows.columns import Columns
from dobandit.storage.contract import Storage
from dobandit.storage.fork_safety import remember, was_left_locked

if TYPE_CHECKING:
    from dobandit.diagnosis.diagnose import Diagnosis
    from dobandit.experiment.replayed_learner import ReplayedLearner

MOST_CHECKPOINTS = 64  # places


class Checkpoints:
    """Copies of what was known at some places of the log, so that no place has to be learned from the beginning again:
    at multiples of `apart` closed trials, which doubles when there are too many. Threads may use it at the same time: a
    list is replaced, and none is changed."""

    def __init__(self) -> None:
        self.apart = 1
        self.kept: Sequence[ReplayedLearner] = ()  # by position; whoever learns on takes a copy

    def expect(self, closed: int) -> None:
        """A log of this length will be read: no place is kept that would be given up on the way."""
        while closed > MOST_CHECKPOINTS * self.apart:
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
        if len(self.kept) > MOST_CHECKPOINTS:
            self._thin_out()

    def _thin_out(self) -> None:
        self.apart *= 2
        self.kept = [one for one in self.kept if one.position % self.apart == 0]

    def before(self, position: int) -> ReplayedLearner | None:
        """The last one up to a position."""
        kept = self.kept
        i = bisect_right(kept, position, key=lambda one: one.position)
        return kept[i - 1] if i else None


class LogState:
    """Of one experiment."""

    def __init__(self, storage: Storage, experiment: int, definition: Definition, columns: Columns) -> None:
        self.storage, self.experiment, self.definition, self.columns = storage, experiment, definition, columns
        self._forget()
        remember(self)

    def _forget(self) -> None:
        self.asking, self.answering = threading.RLock(), threading.RLock()
        self.checkpoints = Checkpoints()
        self._counts, self._predictions = RoundCounts(self.columns), Predictions(self.columns)
        self._learner: ReplayedLearner | None = None
        self._sums: StatusSums | None = None
        self._now: ReplayedLearner | None = None  # a copy for answers
        self._then: ReplayedLearner | None = None  # as of the trial that was explained last
        self._diagnosed: tuple[int, Diagnosis] | None = None

    def before_fork(self) -> None:
        """Nothing is waited for: an ask or an answer may take long."""

    def after_fork(self, child: bool) -> None:
        """What another thread was at work on may be half done in the child, for ever."""
        if child and (was_left_locked(self.asking) or was_left_locked(self.answering)):
            self._forget()

    # -- the learner -----------------------------------------------------------------------------------------------

    @property
    def learner(self) -> ReplayedLearner:
        """The one that follows the log; who uses it holds `asking`."""
        from dobandit.experiment.replayed_learner import ReplayedLearner  # needs Numba, and a tell does not

        if self._learner is None:
            self._learner = ReplayedLearner(self.definition, self.columns, self.checkpoints)
        return self._learner

    @property
    def position(self) -> int:
        """How many closed trials the learner has taken in so far."""
        return 0 if self._learner is None else self._learner.position

    def follow(self) -> int:
        """Let the learner take in what was closed; who calls holds `asking`. Returns how many trials there are. Raises
        where the experiment was deleted."""
        trials, closed = self.storage.counters(self.experiment)
        self.checkpoints.expect(closed)
        self.learner.follow(self.storage, self.experiment, closed)
        return trials

    def now(self) -> ReplayedLearner:
        """What is known now, to look at; who calls holds `answering`. Raises where the experiment was deleted."""
        with self.asking:
            self.follow()
            if self._now is None or self._now.position != self.learner.position:
                _ = self.learner.doubts  # found once, for asks too
                self._now = self.learner.copy()
            return self._now

    def then(self, position: int) -> ReplayedLearner:
        """What was known after `position` closed trials, to look at; who calls holds `answering`. Quick for places that
        are near each other."""
        from dobandit.experiment.replayed_learner import ReplayedLearner

        then, near = self._then, self.checkpoints.before(position)
        if then is None or not (near.position if near else 0) <= then.position <= position:
            then = near.copy() if near else ReplayedLearner(self.definition, self.columns, self.checkpoints)
        self._then = None  # should it not be read to the end
        then.follow(self.storage, self.experiment, position)
        self._then = then
        return then

    # -- sums; who calls holds `answering` ---------------------------------------------------------------------------

    def counts(self, closed: int | None = None) -> RoundCounts:
        """The distinct rounds of the first `closed` trials that were closed, or of all."""
        closed = self.storage.counters(self.experiment)[1] if closed is None else closed
        self._counts.follow(self.storage, self.experiment, closed)
        return self._counts

    def sums(self) -> tuple[StatusSums, int]:
        """The sums over all that is closed, and how many trials there are, of one moment."""
        trials, closed = self.storage.counters(self.experiment)
        return self._sums_until(closed), trials

    def _sums_until(self, closed: int) -> StatusSums:
        if self._sums is None:
            self._sums = StatusSums.kept_in(self.storage, self.experiment, self.columns)
        self._sums.follow(self.storage, self.experiment, closed)
        self._sums.keep(self.storage, self.experiment)
        return self._sums

    def keep_sums(self, position: int) -> None:
        """Called once the trial of that position was closed: now and then the sums are kept, by whoever closes it."""
        if (position + 1) % EVERY == 0 and self.answering.acquire(blocking=False):  # an answer may take long
            try:
                with suppress(DobanditError):  # the trial is stored, whatever becomes of the sums
                    self._sums_until(position + 1)
            finally:
                self.answering.release()

    def diagnosis(self, now: ReplayedLearner, seconds: float = math.inf) -> Diagnosis:
        """Worked out once for each state of the log. Raises DiagnosisTimeoutError
        where that takes longer than `seconds`."""
        from dobandit.diagnosis.diagnose import diagnose_rounds  # which needs Numba, and a status does not

        if self._diagnosed is None or self._diagnosed[0] != now.position:
            deadline = time.monotonic() + seconds
            counts, problem = self.counts(now.position), now.learner.problem
            self._predictions.follow(self.storage, self.experiment, now.position, deadline)
            actions = {do for do, _ in counts.counts}
            if problem.selective and now.learner.keeps_model:
                taught = problem.teaches(self.columns.masks([*actions]))
                actions = {do for do, counted in zip(actions, taught, strict=True) if counted}
            rounds = counts.rounds()
            with learning(now.learner.engine, len(rounds.counts)):
                told = diagnose_rounds(now.learner, rounds, self._predictions.of(actions), deadline)
            self._diagnosed = now.position, told
        return self._diagnosed[1]
