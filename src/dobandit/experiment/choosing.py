"""Choosing which trial comes next, by the closed trials, those under way, and the random numbers of its own number.

A choice that takes no time is made inside the write transaction. One that may take long, or about which nothing is
known yet (kernels may have to be compiled), is made outside: the trial is then stored if no other one was added
meanwhile, and chosen anew otherwise. Trials that are closed meanwhile do no harm: `asked_after` says how much of the
log was known, and what was closed later counts as under way. Those whose choices take long wait for each other
(`Storage.take_turn`), so that they need not choose in vain; whoever loses too often chooses inside.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from dobandit.experiment.known import KnownLog
from dobandit.experiment.reasons import gap_words, is_reached, reason_for, with_doubts
from dobandit.experiment.row_encoding import Row
from dobandit.experiment.storage.base import ASKED, TOLD, StoredTrial, Writer
from dobandit.experiment.storage.together import TakesLongError
from dobandit.experiment.trial import Trial
from dobandit.oracle.actions import NOTHING
from dobandit.policy.engine import Interval

if TYPE_CHECKING:
    from dobandit.policy.engine import Pending

CONTROL = "control: nothing is set, for an honest comparison"
_UNLESS = " unless recommend warns of something"  # to find that out takes longer than an ask may
_LONG_AGO = 1.0  # seconds
_QUICK = 0.01  # seconds that others can be kept out for a choice: a few times what storing it takes
_SLOW = 0.25  # seconds from which on it is worth a write to say that one is choosing
_TURNS = 4.0  # times as long as the last choice: a turn is over then, whatever became of its owner
_LONGEST_TURN = 120.0  # seconds: a choice on a crowded machine says little about the next
_PAUSE = 0.05  # seconds: who waits for a turn looks at least that often, and who had one lets others go first
_LONGEST_WAIT = 600.0  # seconds; a turn only saves work
_RACES, _GLANCES = 3, 10
_NEWS = 200  # closed trials that are taken in while others wait


class Asked(NamedTuple):
    """An ask, checked: what it wants of a trial, as the log keeps it; how many of them; when, and until when."""

    available: tuple[str, ...] | None
    size: int
    control: bool | None
    context: str | None
    n: int
    now: float
    expires: float | None

    def kind(self, pending: bool) -> tuple[bool, ...]:
        """What decides which kernels are needed, and how long they take."""
        return pending, self.available is None, bool(self.control), self.n == 1


class Plan(NamedTuple):
    """What an ask hands out, as long as the next number is `number`: trials whose leases ran out, and new ones."""

    number: int
    due: list[StoredTrial]
    new: list[StoredTrial]

    def holds(self, writer: Writer) -> bool:
        """Whether nobody added a trial, nor told or took one that was due. Then the same trials are under way."""
        return writer.trials == self.number and all(writer.trial(trial.number) == trial for trial in self.due)


class _Watch:
    """How long something takes. On a machine that is busy with something else everything waits, storing included: so
    waiting counts for a tenth."""

    def __init__(self) -> None:
        self._wall, self._worked = time.perf_counter(), time.thread_time()

    def seconds(self) -> float:
        return max(time.thread_time() - self._worked, (time.perf_counter() - self._wall) / 10)


class ChoosingLog(KnownLog):
    """An experiment that chooses its next trials."""

    _asked_at = -math.inf
    _had_turn = -math.inf  # when a turn of this object's was over

    @cached_property
    def _seconds(self) -> dict[tuple[bool, ...], float]:
        """How long the last choice of each kind took."""
        return {}

    def _asked(self, ask: Asked) -> list[Trial]:
        """The trials, stored."""
        shared = self.storage.shared
        if not shared and (not self._replica.position or ask.now - self._asked_at > _LONG_AGO):
            self._follow()
        self._asked_at = ask.now
        if self._seconds:
            with self.storage.writing(self._id) as writer:
                handed_out = self._within(writer, ask, _QUICK)
            if handed_out is not None:
                return handed_out
        if shared:
            raise TakesLongError
        for _ in range(_RACES):
            with self._turn(ask):
                plan = self._plan(ask)
                with self.storage.writing(self._id) as writer:
                    if plan is not None and plan.holds(writer):
                        return self._store(writer, plan, ask)
        with self.storage.writing(self._id) as writer:
            return self._within(writer, ask, math.inf) or []

    def _within(self, writer: Writer, ask: Asked, most: float) -> list[Trial] | None:
        """Choose with others kept out; None where that would take longer than `most` seconds, or nobody knows."""
        if writer.closed < self._replica.position:  # what it learned last, together with others, was never stored
            self._forget_choices()
        replica, limited = self._replica, most < math.inf
        if writer.closed > replica.position:
            if limited and writer.closed - replica.position > _NEWS:
                return None
            closed = writer.closed_since(replica.position)
            if limited and not {trial.counts is not None for trial in closed if trial.state == TOLD} <= replica.took:
                return None  # a kernel may have to be compiled
            replica.follow(closed)
        pending = list(writer.pending())
        if limited and ask.n * self._seconds.get(ask.kind(bool(pending)), math.inf) > most:
            return None  # by how long the last one of its kind took
        return self._store(writer, self._chosen(ask, writer.trials, pending), ask)

    def _plan(self, ask: Asked) -> Plan | None:
        """Choose without keeping others out; None where they write so fast that no moment can be caught."""
        for _ in range(_GLANCES):
            trials, _ = self.storage.counters(self._id)
            self._follow()
            pending = [trial for trial in self.storage.pending(self._id) if trial.number < trials]
            if len(pending) == trials - self._replica.position:  # nothing was closed in between
                return self._chosen(ask, trials, pending)
        return None

    def _chosen(self, ask: Asked, number: int, pending: list[StoredTrial]) -> Plan:
        """What is handed out again, and new trials from `number` on, by what the replica knows."""
        started = _Watch()
        due = [trial for trial in pending if self._may_go_out_again(trial, ask)][: ask.n]
        under_way, new = [self._replica.pending(trial) for trial in pending], []
        for k in range(ask.n - len(due)):
            new.append(self._new(number + k, under_way, ask))
            under_way.append(self._replica.pending(new[-1]))
        if new:
            self._seconds[ask.kind(bool(pending))] = started.seconds() / len(new)
        return Plan(number, due, new)

    def _store(self, writer: Writer, plan: Plan, ask: Asked) -> list[Trial]:
        for trial in plan.due:
            writer.reissue(trial.number, ask.expires)
        again = [trial._replace(lease_expires=ask.expires, issued=trial.issued + 1) for trial in plan.due]
        if plan.new:
            writer.add(plan.new)
        return [self.handed_out(trial) for trial in again + plan.new]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time asks. Who writes together with others does not wait for that: the one who asks may in
        turn wait for them. Nor does the first ask, about which nothing is known, keep them waiting."""
        shared = self.storage.shared
        if (shared and not self._seconds) or not self._lock.acquire(blocking=not shared):
            raise TakesLongError
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def _turn(self, ask: Asked) -> Iterator[None]:
        """Wait for others whose choices take long, where this one is known to. Nobody waits without an end: a turn is
        for a few times as long as a choice takes."""
        took = ask.n * max(self._seconds.get(ask.kind(pending), 0.0) for pending in (False, True))
        if took < _SLOW:
            yield
            return
        turn = min(_TURNS * took, _LONGEST_TURN)
        time.sleep(min(max(self._had_turn + _PAUSE - time.monotonic(), 0.0), _PAUSE))
        started, until = time.monotonic(), time.time() + turn
        while not self.storage.take_turn(self._id, time.time(), until):
            if time.monotonic() - started > _LONGEST_WAIT:
                break
            time.sleep(random.uniform(0.2, 0.8) * _PAUSE)
            until = time.time() + turn
        try:
            yield
        finally:
            self.storage.end_turn(self._id, until)
            self._had_turn = time.monotonic()

    def _names(self, available: Iterable[str] | None) -> tuple[str, ...] | None:
        """Variables that can be set now, checked, in the graph's order; None: all."""
        problem = self.definition.problem
        ids = problem.settable(available)
        return None if ids is None else tuple(problem.graph.nodes[i - 1] for i in ids)

    def _may_go_out_again(self, trial: StoredTrial, ask: Asked) -> bool:
        expired = trial.lease_expires is not None and trial.lease_expires <= ask.now
        same = trial.size == ask.size and trial.context == ask.context and ask.control in (None, trial.control)
        return expired and same and (ask.available is None or self.columns.decode(trial.do).keys() <= {*ask.available})

    def _new(self, number: int, under_way: list[Pending], ask: Asked) -> StoredTrial:
        """Let the policy choose, or nobody in a control round."""
        replica, within = self._replica, self.definition.stop_within
        context = replica.known(ask.context)
        control = replica.is_control(number) if ask.control is None else ask.control
        if control:
            action, value, why = NOTHING, math.nan, CONTROL
            predicted, low, high = replica.predict(action, context)
        else:
            engine, situation = replica.learner.engine, replica.situation(number, ask.available, under_way, context)
            choice = engine.choose(situation)
            action, value = replica.learner.problem.checked(choice.action, replica.learner.label), choice.value
            predicted, low, high = replica.predict(action, context)
            usual = reason_for(choice, predicted, self.graph.target, replica.learner)
            why = with_doubts(engine.reason(action, situation) or usual, replica.doubts)
        doubted = replica.doubts or replica.learner.problem.assumed_lines
        if within is not None and not doubted and is_reached(replica.gap(ask.available, context), within):
            why = f"{why}; may stop{_UNLESS}: {gap_words(within, replica.learner.engine.delta)}"
        do: Row = [None] * len(self.columns.names)
        for i, setting in zip(action.ids, action.values, strict=True):
            do[i - 1] = setting
        return StoredTrial(
            number=number,
            source=ASKED,
            do=self.columns.encode(do),
            asked_after=replica.position,
            available=None if ask.available is None else json.dumps(ask.available, ensure_ascii=False),
            predicted=None if math.isnan(predicted) else predicted,
            low=low,
            high=high,
            optimistic=None if math.isnan(value) else value,
            why=why,
            asked_at=ask.now,
            lease_expires=ask.expires,
            context=ask.context,
            size=ask.size,
            control=control,
        )

    def handed_out(self, trial: StoredTrial) -> Trial:
        """A trial of the log, as `ask` gives it to somebody."""
        predicted = math.nan if trial.predicted is None else trial.predicted
        low, high = (0.0, 1.0) if trial.low is None or trial.high is None else (trial.low, trial.high)
        return Trial(
            number=trial.number,
            do=self.columns.decode(trial.do),
            predicted=predicted,
            interval=Interval(low, high),
            why=trial.why if trial.issued == 1 else f"handed out again, because its lease ran out; {trial.why}",
            lease_expires=trial.lease_expires,
            issued=trial.issued,
            context={} if trial.context is None else self.columns.decode(trial.context),
            size=trial.size,
            control=trial.control,
        )
