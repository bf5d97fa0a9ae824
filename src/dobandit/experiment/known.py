"""What is known of an experiment, for answers: computing one keeps nobody from asking.

Answers have a lock of their own. Only for a copy of what was learned do they take that of an ask, for as long as it
takes to read what was closed since.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from dobandit.errors import DobanditError, StorageError
from dobandit.experiment.definition import Definition
from dobandit.experiment.forks import remember, was_left_locked
from dobandit.experiment.ledger import Ledger
from dobandit.experiment.log import ExperimentLog
from dobandit.experiment.milestones import APART, MOST, MOST_SHOWN, Milestones
from dobandit.experiment.storage.base import Storage, StoredExperiment, StoredTrial
from dobandit.experiment.tally import EVERY, Progress, Tally

if TYPE_CHECKING:
    from dobandit.experiment.replica import Replica
    from dobandit.policy.learner import Learner

_FEW = 1000


class View(NamedTuple):
    """What was learned from the first `position` closed trials; for one answer at a time."""

    position: int
    learner: Learner
    doubts: tuple[str, ...]


class KnownLog(ExperimentLog):
    """An experiment with what is known of it: a learner that follows its log, and sums over it."""

    _reader: KnownLog | None = None  # who reads the log for this one
    _viewed: View | None = None
    _explained: Replica | None = None  # as of the trial that was explained last

    def __init__(
        self,
        storage: Storage,
        stored: StoredExperiment,
        clock: Callable[[], float] = time.time,
        definition: Definition | None = None,
    ) -> None:
        super().__init__(storage, stored, clock, definition)
        self._lock = threading.RLock()  # of those who ask
        self._reading = threading.RLock()  # of those who want an answer; taken before the other
        self._ledger, self._milestones = Ledger(self.columns), Milestones(MOST, APART)
        remember(self)

    def after_fork(self) -> None:
        """What another thread was at work on is learned anew in the child, from the log."""
        if was_left_locked(self._lock):
            self._lock = threading.RLock()
            self._forget_choices()
        if was_left_locked(self._reading):
            self._reading = threading.RLock()
            self._forget_answers()

    @cached_property
    def _replica(self) -> Replica:
        from dobandit.experiment.replica import Replica

        return Replica(self.definition, self.columns)

    @cached_property
    def _tally(self) -> Tally:
        return Tally.kept_in(self.storage, self._id, self.columns)

    def remember_the_way(self) -> None:
        """Keep what was known at more places, from the first trial on, for whoever shows the course of the log."""
        with self._lock:
            if self._milestones.most != MOST_SHOWN:
                self._milestones = Milestones(MOST_SHOWN, 1)
                self._forget_choices()  # what was read already is read again

    def learn_from(self, other: KnownLog) -> None:
        """Have another object of the same experiment read the log, rather than read it a second time."""
        self._reader = other

    def _follow(self) -> int:
        """Take in what was closed. Returns how many trials there are. Raises where the experiment was deleted."""
        trials, closed = self.storage.counters(self._id)
        if self._reader is not None and not self._replica.position:
            self._replica = self._reader._known_now()
        self._milestones.expect(closed)
        self._replica.catch_up(self.storage, self._id, closed, self._milestones)
        return trials

    def _known_now(self) -> Replica:
        """A copy of all that is known now."""
        with self._lock:
            self._follow()
            return self._replica.copy()

    def known_now(self) -> tuple[int, Learner]:
        """How many trials are closed, and a learner that has taken them in; nobody waits for an answer to get it."""
        with self._lock:
            self._follow()
            return self._replica.position, self._replica.learner.copy()

    def known_on_the_way(self) -> Sequence[tuple[int, Learner]]:
        """Some of what `known_now` said before, by position; to look at, not to learn on."""
        return self._milestones.kept

    @property
    def read_so_far(self) -> int:
        """How many closed trials are known."""
        return self._replica.position

    @property
    def interval_words(self) -> str:
        """What the intervals of values promise: that they hold at every round one looks, or at this round only."""
        with self._lock:
            return self._replica.learner.engine.interval_words

    @property
    def delta(self) -> float:
        """With what probability a guaranteed gap is wrong at some round."""
        with self._lock:
            return self._replica.learner.engine.delta

    def _forget_choices(self) -> None:
        """Whatever the lock of those who ask guards may be half done."""
        self.__dict__.pop("_replica", None)
        self._viewed = None

    def _forget_answers(self) -> None:
        """Whatever the lock of those who want an answer guards may be half done."""
        self._viewed = self._explained = None
        self._ledger = Ledger(self.columns)
        self.__dict__.pop("_tally", None)

    def _view(self) -> View:
        """What is known now. Raises where the experiment was deleted."""
        with self._lock:
            self._follow()
            replica = self._replica
            if self._viewed is None or self._viewed.position != replica.position:
                self._viewed = View(replica.position, replica.learner.copy(), replica.doubts)
            return self._viewed

    def replica_after(self, position: int) -> Replica:
        """What was known after `position` closed trials; quick for trials that were asked soon after each other."""
        from dobandit.experiment.replica import Replica

        then, near = self._explained, self._milestones.before(position)
        if then is None or not (near[0] if near else 0) <= then.position <= position:
            then = Replica(self.definition, self.columns)
            if near is not None:
                then.resume(*near)
        then.catch_up(self.storage, self._id, position, self._milestones)
        self._explained = then
        return then

    def closed_numbers(self, position: int) -> list[int]:
        """The numbers of the next few trials that were closed, from `position` on."""
        return [number for (number,) in self.storage.closed_fields(self._id, position, _FEW, ("number",))]

    def pending_trials(self) -> Sequence[StoredTrial]:
        """The trials under way, by number, as the log keeps them."""
        return self.storage.pending(self._id)

    def _followed_ledger(self, closed: int | None = None, predictions: bool = False) -> Ledger:
        """The sums over the first `closed` trials that were closed, or over all."""
        closed = self.storage.counters(self._id)[1] if closed is None else closed
        self._ledger.follow(self.storage, self._id, closed)
        if predictions:
            self._ledger.follow_predictions(self.storage, self._id)
        return self._ledger

    def _followed_tally(self, progress: Progress | None = None) -> tuple[Tally, int]:
        """The sums over all that is closed, and how many trials there are, of one moment."""
        tally = self._tally
        trials, closed = self.storage.counters(self._id)
        tally.follow(self.storage, self._id, closed, progress)
        self._store_tally()
        return tally, trials

    def _keep_sums(self, position: int) -> None:
        """Called once a trial was closed: now and then the sums are kept, by whoever closes that one."""
        if (position + 1) % EVERY == 0 and self._reading.acquire(blocking=False):  # an answer may take long
            try:
                with suppress(DobanditError):  # the trial is stored, whatever becomes of the sums
                    self._tally.follow(self.storage, self._id, position + 1)
                    self._store_tally()
            finally:
                self._reading.release()

    @property
    def told_rounds(self) -> int:
        """How many rounds were told, counts included."""
        with self._reading:
            return self._followed_tally()[0].rounds

    def _store_tally(self) -> None:
        """Where it is worth it. What may not be written is not needed either: it only saves time."""
        tally = self._tally
        if tally.position - tally.kept >= EVERY:
            with suppress(StorageError):
                self.storage.keep_tally(self._id, tally.position, tally.to_text())
            tally.kept = tally.position
