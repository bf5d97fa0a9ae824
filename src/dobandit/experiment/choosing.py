"""Choosing which trial comes next, by the closed trials, those under way, and the random numbers of its own number.

A choice may take long, so that it is made outside of the write transaction: the trial is stored if no other one was
added meanwhile, and chosen anew otherwise. Trials that are closed meanwhile do no harm: `asked_after` says how much of
the log was known, and what was closed later counts as under way. Whoever loses three times chooses inside.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dobandit.experiment.known import KnownLog
from dobandit.experiment.reasons import gap_words, is_reached, reason_for, with_doubts
from dobandit.experiment.row_encoding import Row
from dobandit.experiment.storage.base import ASKED, StoredTrial, Writer
from dobandit.experiment.trial import Trial
from dobandit.oracle.actions import NOTHING
from dobandit.policy.engine import Interval

if TYPE_CHECKING:
    from dobandit.policy.engine import Pending

CONTROL = "control: nothing is set, for an honest comparison"
_UNLESS = " unless recommend warns of something"  # to find that out takes longer than an ask may
_RACES = 3


class Asked(NamedTuple):
    """An ask, checked: what it wants of a trial, as the log keeps it; how many of them; when, and until when."""

    available: tuple[str, ...] | None
    size: int
    control: bool | None
    context: str | None
    n: int
    now: float
    expires: float | None


class Plan(NamedTuple):
    """What an ask hands out, as long as the next number is `number`: trials whose leases ran out, and new ones."""

    number: int
    due: list[StoredTrial]
    new: list[StoredTrial]

    def holds(self, writer: Writer) -> bool:
        """Whether nobody added a trial, nor told or took one that was due. Then the same trials are under way."""
        return writer.trials == self.number and all(writer.trial(trial.number) == trial for trial in self.due)


class ChoosingLog(KnownLog):
    """An experiment that chooses its next trials."""

    def _asked(self, ask: Asked) -> list[Trial]:
        """The trials, stored."""
        for _ in range(_RACES):
            plan = self._plan(ask)
            if plan is not None:
                with self.storage.writing(self._id) as writer:
                    if plan.holds(writer):
                        return self._store(writer, plan, ask)
        with self.storage.writing(self._id) as writer:
            self._replica.follow(writer.closed_since(self._replica.position))
            return self._store(writer, self._chosen(ask, writer.trials, writer.pending()), ask)

    def _plan(self, ask: Asked) -> Plan | None:
        """Choose without keeping others out; None where a trial was closed while the log was read."""
        trials = self._follow()
        pending = [trial for trial in self.storage.pending(self._id) if trial.number < trials]
        if len(pending) != trials - self._replica.position:
            return None
        return self._chosen(ask, trials, pending)

    def _chosen(self, ask: Asked, number: int, pending: Sequence[StoredTrial]) -> Plan:
        """What is handed out again, and new trials from `number` on, by what the replica knows."""
        due = [trial for trial in pending if self._may_go_out_again(trial, ask)][: ask.n]
        under_way, new = [self._replica.pending(trial) for trial in pending], []
        for k in range(ask.n - len(due)):
            new.append(self._new(number + k, under_way, ask))
            under_way.append(self._replica.pending(new[-1]))
        return Plan(number, due, new)

    def _store(self, writer: Writer, plan: Plan, ask: Asked) -> list[Trial]:
        for trial in plan.due:
            writer.reissue(trial.number, ask.expires)
        again = [trial._replace(lease_expires=ask.expires, issued=trial.issued + 1) for trial in plan.due]
        if plan.new:
            writer.add(plan.new)
        return [self.handed_out(trial) for trial in again + plan.new]

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
