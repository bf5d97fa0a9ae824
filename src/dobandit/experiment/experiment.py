"""Experiment: ask what to set, tell what was seen.

Everything that matters is in the storage. An Experiment is a view of it that can be thrown away at any time: several
processes and threads may hold one of the same experiment.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Literal, overload

from dobandit.errors import ExperimentError
from dobandit.experiment.definition import lease_seconds
from dobandit.experiment.log import ExperimentLog, is_whole
from dobandit.experiment.rounds import Row, shown
from dobandit.experiment.storage.base import (
    ASKED,
    PENDING,
    TOLD,
    StoredTrial,
    Writer,
)
from dobandit.experiment.trial import Told, Trial
from dobandit.experiment.words import reason_for
from dobandit.policy.base import Interval

if TYPE_CHECKING:
    from dobandit.experiment.answers import BestObserved, EdgeEstimate, Status
    from dobandit.experiment.diagnosis import Diagnosis
    from dobandit.experiment.explanation import Explanation
    from dobandit.experiment.replica import Replica
    from dobandit.policy.learner import Learner, Recommendation

_MOST_AT_ONCE = 10_000
_LONG_AGO = 1.0  # seconds


class Experiment(ExperimentLog):
    """Made by `create_experiment` or `open_experiment`."""

    _asked_at = -math.inf

    # -- ask and tell --------------------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        available: Iterable[str] | None = None,
        n: Literal[1] = 1,
        lease: float | timedelta | None = None,
    ) -> Trial: ...

    @overload
    def ask(
        self, available: Iterable[str] | None = None, n: int = 1, lease: float | timedelta | None = None
    ) -> Trial | list[Trial]: ...

    def ask(
        self,
        available: Iterable[str] | None = None,
        n: int = 1,
        lease: float | timedelta | None = None,
    ) -> Trial | list[Trial]:
        """The next round to carry out; a list of rounds where n > 1.

        available  the variables that can be set in this round; default: all that the rules allow
        lease      seconds, or a timedelta, after which an untold trial is handed out again; default: the experiment's

        A pending trial whose lease ran out comes first, under its old number. Otherwise the policy chooses, with the
        news that pending trials are expected to bring counted in, so that parallel workers try different things.
        """
        if not is_whole(n) or not 1 <= n <= _MOST_AT_ONCE:
            raise ExperimentError(f"n must be a whole number from 1 to {_MOST_AT_ONCE:,}, but got {shown(n)}.")
        with self._lock:
            names = None if available is None else self._replica.learner.available(available)
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
                due = [trial for trial in pending if self._may_go_out_again(trial, names, now)][: int(n)]
                trials = [self._handed_out_again(writer, trial, expires) for trial in due]
                under_way = [self._ids(trial.do) for trial in pending]
                for _ in range(int(n) - len(due)):
                    trials.append(self._new(writer, under_way, names, now, expires))
            self._held |= {trial.number: trial.issued for trial in trials}  # only once they are stored
        return trials[0] if n == 1 else trials

    def _may_go_out_again(self, trial: StoredTrial, available: tuple[str, ...] | None, now: float) -> bool:
        expired = trial.lease_expires is not None and trial.lease_expires <= now
        return expired and (available is None or all(name in available for name in self.columns.decode(trial.do)))

    def _handed_out_again(self, writer: Writer, trial: StoredTrial, expires: float | None) -> Trial:
        writer.reissue(trial.number, expires)
        return self._handed_out(trial._replace(lease_expires=expires, issued=trial.issued + 1))

    def _new(
        self,
        writer: Writer,
        under_way: list[list[int]],
        available: tuple[str, ...] | None,
        now: float,
        expires: float | None,
    ) -> Trial:
        """Let the policy choose, and count the choice as under way."""
        choice = self._replica.choose(writer.trials, available, under_way)
        predicted, interval = self._replica.predict(choice.ids)
        do: Row = [None] * len(self.columns.names)
        for i in choice.ids:
            do[i - 1] = 1
        new = StoredTrial(
            number=writer.trials,
            source=ASKED,
            do=self.columns.encode(do),
            asked_after=writer.closed,
            available=None if available is None else json.dumps(available, ensure_ascii=False),
            predicted=None if math.isnan(predicted) else predicted,
            low=interval.low,
            high=interval.high,
            optimistic=None if math.isnan(choice.value) else choice.value,
            why=reason_for(choice, predicted, self.graph.target, self._replica.learner),
            asked_at=now,
            lease_expires=expires,
        )
        writer.add([new])
        under_way.append(choice.ids)
        return self._handed_out(new)

    def _handed_out(self, trial: StoredTrial) -> Trial:
        predicted = math.nan if trial.predicted is None else trial.predicted
        low, high = (0.0, 1.0) if trial.low is None or trial.high is None else (trial.low, trial.high)
        why = trial.why if trial.issued == 1 else f"handed out again, because its lease ran out; {trial.why}"
        do = self.columns.decode(trial.do)
        return Trial(trial.number, do, predicted, Interval(low, high), why, trial.lease_expires, trial.issued)

    def _ids(self, do: str) -> list[int]:
        return [i for i, value in enumerate(self.columns.values(do), start=1) if value is not None]

    def tell(self, number: int | Trial, observation: Mapping[str, object], issued: int | None = None) -> Told:
        """What was seen in a trial (its number, or the trial itself): {"visit": 1, "buy": 0}. Variables left out were
        not seen.

        When this returns, the round is on the disk. The same told twice changes nothing; something else is refused.
        A tell after the lease ran out is accepted and flagged as late. Where a trial was handed out again, it matters
        who tells: pass the trial itself, or `issued` as it says. Otherwise the last hand-out by this object counts, or
        the first of all if there is none.
        """
        if isinstance(number, Trial):
            issued, number = number.issued if issued is None else issued, number.number
        if issued is not None and (not is_whole(issued) or issued < 1):
            raise ExperimentError(f"issued is a whole number from 1, as the trial says, but got {shown(issued)}.")
        with self._lock, self.storage.writing(self._id) as writer:
            trial = self._trial(writer, number)
            row, partial = self.columns.observation_row(observation, self.columns.values(trial.do))
            text = self.columns.encode(row)
            if trial.state == TOLD and trial.observation == text:
                return Told(trial.number, trial.late, trial.partial, repeated=True)
            if trial.state != PENDING:
                wanted = f"told {json.dumps(self.columns.decode(text), ensure_ascii=False)}"
                raise self._conflict(trial, wanted)
            if issued is not None and issued > trial.issued:
                raise ExperimentError(
                    f"trial {trial.number} was handed out {trial.issued} times, but the tell is said to be of hand-out "
                    f"{issued}. Give `issued` as the trial says."
                )
            now = self._clock()
            holder = issued or self._held.get(trial.number, 1)
            late = trial.issued > holder or (trial.lease_expires is not None and now >= trial.lease_expires)
            told = trial._replace(state=TOLD, observation=text, closed_at=now, late=late, partial=partial)
            writer.close(told)
        self._held.pop(told.number, None)  # only once it is stored
        return Told(told.number, late, partial, repeated=False)

    # -- answers -------------------------------------------------------------------------------------------------

    def recommend(self, available: Iterable[str] | None = None) -> Recommendation:
        """The set that looks best under the model's estimate, without optimism, with E[target] and its interval."""
        with self._lock:
            self._require_there()
            return self._up_to_date().best(available)

    def best_observed(self, available: Iterable[str] | None = None) -> BestObserved | None:
        """The set that the data alone speak for; None where no round with an allowed set saw the target."""
        from dobandit.experiment.answers import best_observed

        self._require_there()
        names = None if available is None else self._replica.learner.available(available)
        return best_observed(self.storage.closed_since(self._id, 0), self.columns, names)

    def explain(self, number: int) -> Explanation:
        """Why a trial set what it set, by what was known when it was asked."""
        from dobandit.experiment.explanation import explain

        return explain(self, number)

    def estimates(self) -> list[EdgeEstimate]:
        """Every edge's weight with its confidence interval."""
        from dobandit.experiment.answers import edge_estimates

        with self._lock:
            self._require_there()
            return edge_estimates(self._up_to_date())

    def status(self) -> Status:
        """How far the experiment is."""
        from dobandit.experiment.answers import status_of

        return status_of(self, list(self.storage.rows(self._id)), self._created_at, self._clock())

    def diagnose(self) -> Diagnosis:
        """Whether the data agree with the model: calibration, links, assumptions."""
        from dobandit.experiment.answers import diagnosis_of

        with self._lock:
            return diagnosis_of(self._up_to_date(), list(self.storage.rows(self._id)), self.columns)

    # -- what is known -------------------------------------------------------------------------------------------

    @property
    def learner(self) -> Learner:
        """A copy of the policy at work, up to the last closed trial: to look at, and to play with."""
        with self._lock:
            self._require_there()
            return self._up_to_date().copy()

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
