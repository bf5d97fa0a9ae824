"""How far an experiment is: trials by state, what was told, and control rounds beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from dobandit.estimation.confidence import hoeffding, wilson
from dobandit.experiment.reasons import may_stop
from dobandit.experiment.rounds import Columns
from dobandit.experiment.row_texts import split_batch
from dobandit.experiment.storage.base import ABANDONED, ASKED, FAILED, PENDING, TOLD, StoredTrial
from dobandit.policy.engine import Interval

if TYPE_CHECKING:
    from dobandit.experiment.experiment import Experiment


class Mean(NamedTuple):
    """The mean of the target over rounds that saw it, with its 95% interval (Wilson's; Hoeffding's for numbers)."""

    value: float
    interval: Interval
    rounds: int
    level: float = 0.95  # of the interval, at this round


class Status(NamedTuple):
    """Trials by state, and what the next ask would meet. Times are seconds since 1970."""

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
    expired: int  # pending trials whose lease ran out: the next asks hand them out again
    mean_target: float | None  # over the told rounds that saw it
    created_at: float
    last_told_at: float | None
    storage: str
    rounds: int  # told, counts included
    untaught: dict[str, int]  # in how many told rounds nothing was learned about a variable, for want of a value
    control: Mean | None  # asked rounds in which nothing was set, for the comparison; None where there are none
    treated: Mean | None  # the other asked rounds
    stop_within: float | None = None  # how much better another action may be when the experiment stops
    gap: float | None = (
        None  # how much better one can be now; None where stop_within is not given, or a context decides
    )
    may_stop: bool | None = None  # gap is at or below stop_within, and no round speaks against the graph; None as gap


def mean_of(total: float, rounds: int, continuous: bool) -> Mean:
    mean = total / rounds
    return Mean(mean, Interval(*(hoeffding if continuous else wilson)(mean, rounds)), rounds)


class _Tally:
    """Sums over distinct rows, each looked at once however often it was seen."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._target = columns.names.index(columns.graph.target)
        self._counts: dict[tuple[str, str, str], int] = {}  # (whose, do, row)

    def add(self, trial: StoredTrial) -> None:
        whose = trial.source if trial.source != ASKED else "control" if trial.control else "treated"
        if trial.counts is None:
            rows = [(trial.observation or "", 1)]
        else:
            rows = list(zip(*split_batch(trial.observation or "", trial.counts), strict=True))
        for text, count in rows:
            key = (whose, trial.do, text)
            self._counts[key] = self._counts.get(key, 0) + count

    def mean(self, *of: str) -> Mean | None:
        """Over the rounds of these kinds; of all where none is named."""
        total, rounds = 0.0, 0
        for (whose, _, text), count in self._counts.items():
            value = self.columns.values(text)[self._target] if not of or whose in of else None
            if value is not None:
                total, rounds = total + count * value, rounds + count
        return mean_of(total, rounds, self.columns.continuous) if rounds else None

    def untaught(self) -> dict[str, int]:
        found = dict.fromkeys(self.columns.names, 0)
        for (_, do, text), count in self._counts.items():
            if "null" in text:
                for name in self.columns.untaught(self.columns.values(text), self.columns.values(do)):
                    found[name] += count
        return {name: rounds for name, rounds in found.items() if rounds}


def status_of(
    experiment: Experiment,
    trials: Sequence[StoredTrial],
    created_at: float,
    now: float,
    gap: float | None = None,
    doubted: bool = False,
) -> Status:
    definition = experiment.definition
    counts = {state: sum(trial.state == state for trial in trials) for state in (PENDING, TOLD, FAILED, ABANDONED)}
    told = [trial for trial in trials if trial.state == TOLD and trial.observation is not None]
    tally = _Tally(experiment.columns)
    for trial in told:
        tally.add(trial)
    mean = tally.mean()
    return Status(
        name=experiment.name,
        policy=definition.policy_text,
        target=experiment.graph.target,
        budget=definition.problem.rules.budget,
        horizon=definition.problem.horizon,
        seed=definition.seed,
        trials=len(trials),
        **counts,
        late=sum(trial.late for trial in trials),
        partial=sum(trial.partial for trial in trials),
        expired=sum(t.state == PENDING and t.lease_expires is not None and t.lease_expires <= now for t in trials),
        mean_target=None if mean is None else mean.value,
        created_at=created_at,
        last_told_at=max((trial.closed_at for trial in told if trial.closed_at is not None), default=None),
        storage=experiment.storage.url,
        rounds=sum(trial.rounds for trial in told),
        untaught=tally.untaught(),
        control=tally.mean("control"),
        treated=tally.mean("treated"),
        stop_within=definition.stop_within,
        gap=gap,
        may_stop=None if gap is None else may_stop(gap, definition.stop_within) and not doubted,
    )
