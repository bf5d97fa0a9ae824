"""How far an experiment is: trials by state, what was told, and control rounds beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from dobandit.estimation.confidence import beta_binomial, wilson
from dobandit.experiment.accumulator import CONTROL, TREATED, StatusSums
from dobandit.experiment.reasons import is_reached, may_stop
from dobandit.policy.engine import Interval
from dobandit.rows.stored_trial import ABANDONED, FAILED, PENDING, TOLD, StoredTrial
from dobandit.texts import as_html, counted, decimals, fixed, with_interval

if TYPE_CHECKING:
    from dobandit.experiment.experiment import Experiment
    from dobandit.policy.answers import Recommendation


class Mean(NamedTuple):
    """The mean of the target over rounds that saw it.

    interval  its confidence interval at `level`, valid at every look
    """

    value: float
    interval: Interval
    rounds: int
    level: float = 0.95


class Status(NamedTuple):
    """Trials by state, and what the next ask would meet. Times are seconds since 1970.

    name, policy, target       of the experiment, and where it is kept: storage
    budget, horizon, seed      as it was created with them
    trials                     all of them: pending, told, failed or abandoned
    late, partial              told trials that were late, or in which some variable was not seen
    expired                    pending trials whose lease ran out: the next asks hand them out again
    mean_target                over the told rounds that saw it
    created_at, last_told_at   when
    rounds                     told, counts included
    untaught                   in how many told rounds nothing was learned about a variable, for want of a value
    control                    asked rounds in which nothing was set, for the comparison; None where there are none
    treated                    the other asked rounds
    stop_within                how much better another action may be when the experiment stops
    gap                        how much better one can be now; None where stop_within is not given, or a context decides
    more_rounds                about how many rounds are still needed until gap is at stop_within; None as gap
    may_stop                   gap is at or below stop_within, the rounds bear the model out, and nothing forbids to
                               rely on it; None as gap
    doubts                     what does, where gap is at or below stop_within (see `Recommendation`)
    guaranteed_gap             the gap that is proved, where gap is at or below stop_within; None where none is
    """

    name: str
    policy: str
    target: str
    budget: int | None
    horizon: int | None
    seed: int
    trials: int
    pending: int
    told: int
    failed: int
    abandoned: int
    late: int
    partial: int
    expired: int
    mean_target: float | None
    created_at: float
    last_told_at: float | None
    storage: str
    rounds: int
    untaught: dict[str, int]
    control: Mean | None
    treated: Mean | None
    stop_within: float | None = None
    gap: float | None = None
    more_rounds: int | None = None
    may_stop: bool | None = None
    doubts: tuple[str, ...] = ()
    guaranteed_gap: float | None = None

    def __str__(self) -> str:
        states = [f"{getattr(self, state):,} {state}" for state in (TOLD, PENDING, FAILED, ABANDONED)]
        lines = [f"experiment {self.name} in {self.storage}, with {self.policy}", f"  trials: {', '.join(states)}"]
        lines.append(f"  {counted(self.rounds, 'round')}, {self.target} {_mean_words(self.mean_target)}")
        if self.control is not None:
            lines.append(f"  control rounds: {with_interval(self.control.value, *self.control.interval)}")
        if self.gap is not None and self.may_stop is not None and self.stop_within is not None:
            stop = "may stop" if self.may_stop else "not yet"
            lines.append(f"  {stop}: another action may be better by {self.gap:.3g} (wanted: {self.stop_within:g})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return as_html(self)


def _mean_words(mean: float | None) -> str:
    return "not seen yet" if mean is None else f"{fixed(mean, decimals(mean))} on average"


def anytime_mean(total: float, rounds: int, sets: int = 1) -> Mean:
    """The mean of rounds that keep coming in, with a 95% interval that is valid at every look.

    sets  how many sets were tried: with it the intervals of all of them are valid at once, so that one may look at the
          best of them
    """
    mean = min(max(total / rounds, 0.0), 1.0)
    return Mean(mean, Interval(*beta_binomial(mean, rounds, 0.05 / sets)), rounds)


def mean_of(total: float, rounds: int) -> Mean:
    """The mean of rounds that are looked at once, with Wilson's 95% interval; numbers between 0 and 1 vary less."""
    mean = total / rounds
    return Mean(mean, Interval(*wilson(mean, rounds)), rounds)


def status_of(
    experiment: Experiment,
    sums: StatusSums,
    trials: int,
    pending: Sequence[StoredTrial],
    told: Recommendation | None = None,
) -> Status:
    definition, now = experiment.definition, experiment.log.clock()
    means = [sums.mean(*of) for of in ((), (CONTROL,), (TREATED,))]
    mean, control, treated = (None if one is None else anytime_mean(*one) for one in means)
    return Status(
        name=experiment.name,
        policy=definition.policy_text,
        target=experiment.graph.target,
        budget=definition.problem.rules.budget,
        horizon=definition.problem.horizon,
        seed=definition.seed,
        trials=trials,
        pending=trials - sums.position,
        **sums.states,
        late=sums.late,
        partial=sums.partial,
        expired=sum(trial.lease_expires is not None and trial.lease_expires <= now for trial in pending),
        mean_target=None if mean is None else mean.value,
        created_at=experiment.log.created_at,
        last_told_at=sums.last_told_at,
        storage=experiment.storage.url,
        rounds=sums.rounds,
        untaught={name: rounds for name, rounds in sums.untaught.items() if rounds},
        control=control,
        treated=treated,
        stop_within=definition.stop_within,
        gap=None if told is None else told.gap,
        more_rounds=None if told is None else told.more_rounds,
        may_stop=None if told is None else may_stop(told, definition.stop_within),
        doubts=told.doubts if told is not None and is_reached(told.gap, definition.stop_within) else (),
        guaranteed_gap=None if told is None or told.guaranteed is None else told.guaranteed.gap,
    )
