"""Asking: which trial comes next. It is computed inside the write transaction, after what others closed since."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

from dobandit.checks import is_whole, shown
from dobandit.errors import ExperimentError
from dobandit.experiment.definition import lease_seconds
from dobandit.experiment.log import ExperimentLog
from dobandit.experiment.reasons import gap_words, may_stop, reason_for, with_doubts
from dobandit.experiment.row_texts import Row
from dobandit.experiment.storage.base import ASKED, StoredTrial, Writer
from dobandit.experiment.tables import MOST_ROUNDS
from dobandit.experiment.trial import Trial
from dobandit.oracle.actions import NOTHING
from dobandit.policy.engine import Interval

if TYPE_CHECKING:
    from dobandit.experiment.replica import Replica
    from dobandit.policy.engine import Pending
    from dobandit.policy.learner import Learner

CONTROL = "control: nothing is set, for an honest comparison"
_MOST_AT_ONCE = 10_000
_LONG_AGO = 1.0  # seconds


class Wish(NamedTuple):
    """What an ask wants of a trial, as the log keeps it."""

    available: tuple[str, ...] | None
    size: int
    control: bool | None
    context: str | None


class AskedLog(ExperimentLog):
    """An experiment that can be asked: its log, and a learner that follows it."""

    _asked_at = -math.inf

    @overload
    def ask(
        self,
        available: Iterable[str] | None = None,
        n: Literal[1] = 1,
        lease: float | timedelta | None = None,
        *,
        size: int = 1,
        control: bool | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Trial: ...

    @overload
    def ask(
        self,
        available: Iterable[str] | None = None,
        n: int = 1,
        lease: float | timedelta | None = None,
        *,
        size: int = 1,
        control: bool | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Trial | list[Trial]: ...

    def ask(
        self,
        available: Iterable[str] | None = None,
        n: int = 1,
        lease: float | timedelta | None = None,
        *,
        size: int = 1,
        control: bool | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Trial | list[Trial]:
        """The next trial to carry out; a list of trials where n > 1.

        available  the variables that can be set in this round; default: all that the rules allow
        lease      seconds, or a timedelta, after which an untold trial is handed out again; default: the experiment's
        size       how many rounds will be carried out with what the trial says, such as the people who are shown it
        control    True: nothing is set, required variables neither; False: no control round; default: the
                   experiment's share of control rounds decides, by the trial's own random number
        context    the value of each context variable, where the graph has some: {"mobile": 1}

        A pending trial whose lease ran out comes first, under its old number, where it fits: the same size, context
        and wish for a control round. Otherwise the policy chooses, with the news that pending trials are expected to
        bring counted in, so that parallel workers try different things.
        """
        if not is_whole(n) or not 1 <= n <= _MOST_AT_ONCE:
            raise ExperimentError(f"n must be a whole number from 1 to {_MOST_AT_ONCE:,}, but got {shown(n)}.")
        if not is_whole(size) or not 1 <= size <= MOST_ROUNDS:
            raise ExperimentError(
                f"size is how many rounds a trial is planned for, a whole number from 1 to {MOST_ROUNDS:,}, but got "
                f"{shown(size)}."
            )
        if control is not None and not isinstance(control, bool):
            raise ExperimentError(f"control is True, False or None, but got {shown(control)}.")
        known = self.columns.context_row(context)
        with self._lock:
            wish = Wish(
                self._names(available), int(size), control, None if known is None else self.columns.encode(known)
            )
            seconds = self.definition.lease if lease is None else lease_seconds(lease)
            now = self._clock()
            if not self._replica.position or now - self._asked_at > _LONG_AGO:
                self._follow()  # what may take long is done before others are kept out
            self._asked_at = now
            expires = None if seconds is None else max(now + seconds, math.nextafter(now, math.inf))
            with self.storage.writing(self._id) as writer:
                if writer.closed > self._replica.position:
                    self._replica.follow(writer.closed_since(self._replica.position))
                pending = list(writer.pending())
                due = [trial for trial in pending if self._may_go_out_again(trial, wish, now)][: int(n)]
                trials = [self._handed_out_again(writer, trial, expires) for trial in due]
                under_way = [self._replica.pending(trial) for trial in pending]
                for _ in range(int(n) - len(due)):
                    trials.append(self._new(writer, under_way, wish, now, expires))
            self._held |= {trial.number: trial.issued for trial in trials}  # only once they are stored
        return trials[0] if n == 1 else trials

    def _names(self, available: Iterable[str] | None) -> tuple[str, ...] | None:
        """Variables that can be set now, checked, in the graph's order; None: all."""
        learner = self._replica.learner
        ids = learner.available(available)
        return None if ids is None else tuple(learner.graph.nodes[i - 1] for i in ids)

    def _may_go_out_again(self, trial: StoredTrial, wish: Wish, now: float) -> bool:
        expired = trial.lease_expires is not None and trial.lease_expires <= now
        same = trial.size == wish.size and trial.context == wish.context and wish.control in (None, trial.control)
        settable = wish.available
        return (
            expired and same and (settable is None or all(name in settable for name in self.columns.decode(trial.do)))
        )

    def _handed_out_again(self, writer: Writer, trial: StoredTrial, expires: float | None) -> Trial:
        writer.reissue(trial.number, expires)
        return self.handed_out(trial._replace(lease_expires=expires, issued=trial.issued + 1))

    def _new(self, writer: Writer, under_way: list[Pending], wish: Wish, now: float, expires: float | None) -> Trial:
        """Let the policy choose, or nobody in a control round, and count the choice as under way."""
        replica, number = self._replica, writer.trials
        context = replica.known(wish.context)
        control = replica.is_control(number) if wish.control is None else wish.control
        within = self.definition.stop_within
        stop = within is not None and not replica.doubts and may_stop(replica.gap(wish.available, context), within)
        if control:
            action, value, why = NOTHING, math.nan, CONTROL
            predicted, low, high = replica.predict(action, context)
        else:
            engine, situation = replica.learner.engine, replica.situation(number, wish.available, under_way, context)
            choice = engine.choose(situation)
            action, value = replica.learner.problem.checked(choice.action, replica.learner.label), choice.value
            predicted, low, high = replica.predict(action, context)
            usual = reason_for(choice, predicted, self.graph.target, replica.learner)
            why = with_doubts(engine.reason(action, situation) or usual, replica.doubts)
        why = (
            f"{why}; may stop: {gap_words(within, replica.learner.engine.delta)}"
            if within is not None and stop
            else why
        )
        do: Row = [None] * len(self.columns.names)
        for i, setting in zip(action.ids, action.values, strict=True):
            do[i - 1] = setting
        new = StoredTrial(
            number=number,
            source=ASKED,
            do=self.columns.encode(do),
            asked_after=writer.closed,
            available=None if wish.available is None else json.dumps(wish.available, ensure_ascii=False),
            predicted=None if math.isnan(predicted) else predicted,
            low=low,
            high=high,
            optimistic=None if math.isnan(value) else value,
            why=why,
            asked_at=now,
            lease_expires=expires,
            context=wish.context,
            size=wish.size,
            control=control,
        )
        writer.add([new])
        under_way.append(replica.pending(new))
        return self.handed_out(new)

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

    @cached_property
    def _replica(self) -> Replica:
        from dobandit.experiment.replica import Replica

        return Replica(self.definition, self.columns)

    def _follow(self) -> None:
        replica = self._replica
        replica.follow(self.storage.closed_since(self._id, replica.position))

    def _up_to_date(self) -> Learner:
        self._follow()
        return self._replica.learner
