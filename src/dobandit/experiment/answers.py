"""What an experiment's log says: how far it is, what the data alone speak for, what the edges weigh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dobandit.estimation.confidence import hoeffding, wilson
from dobandit.experiment.rounds import Columns
from dobandit.experiment.storage.base import ABANDONED, FAILED, PENDING, TOLD, ClosedTrial, StoredTrial
from dobandit.policy.base import Interval

if TYPE_CHECKING:
    from dobandit.experiment.diagnosis import Diagnosis
    from dobandit.experiment.experiment import Experiment
    from dobandit.policy.learner import Learner


class BestObserved(NamedTuple):
    """A set that was tried, with the mean of the target in its rounds. The model has no part in it."""

    do: dict[str, float]
    mean: float
    interval: Interval
    rounds: int


class EdgeEstimate(NamedTuple):
    """cause is None for the bias: how likely the effect is by itself. status as in `Learner.estimate`."""

    cause: str | None
    effect: str
    value: float
    low: float
    high: float
    rows: int
    status: str


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
    mean_target: float | None  # over the told trials that saw it
    created_at: float
    last_told_at: float | None
    storage: str


def best_observed(
    closed: Sequence[ClosedTrial], columns: Columns, available: tuple[str, ...] | None = None
) -> BestObserved | None:
    """The set with the largest lower end of its 95% interval: one lucky round does not win."""
    target = columns.names.index(columns.graph.target)
    sums: dict[str, list[float]] = {}
    for trial in closed:
        if trial.state == TOLD and trial.observation is not None:
            value = columns.values(trial.observation)[target]
            if value is not None:
                entry = sums.setdefault(trial.do, [0, 0.0])
                entry[0] += 1
                entry[1] += value
    if available is not None:
        sums = {do: entry for do, entry in sums.items() if set(columns.decode(do)) <= set(available)}
    if not sums:
        return None
    interval = hoeffding if columns.continuous else wilson
    found = [
        BestObserved(columns.decode(do), total / count, Interval(*interval(total / count, int(count))), int(count))
        for do, (count, total) in sums.items()
    ]
    return max(found, key=lambda best: (best.interval.low, best.mean))


def edge_estimates(learner: Learner) -> list[EdgeEstimate]:
    """Every edge and bias, effects in the graph's order."""
    rows = []
    for effect in learner.graph.nodes:
        node = learner.estimate(effect)
        weights = [(None, node.bias)] if node.bias is not None else []
        rows += [
            EdgeEstimate(cause, effect, *weight, node.rows, node.status)
            for cause, weight in [*weights, *node.parents.items()]
        ]
    return rows


def status_of(experiment: Experiment, trials: Sequence[StoredTrial], created_at: float, now: float) -> Status:
    definition, columns = experiment.definition, experiment.columns
    target = columns.names.index(columns.graph.target)
    counts = {state: sum(trial.state == state for trial in trials) for state in (PENDING, TOLD, FAILED, ABANDONED)}
    told = [trial for trial in trials if trial.state == TOLD and trial.observation is not None]
    seen = [value for trial in told if (value := columns.values(trial.observation or "")[target]) is not None]
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
        mean_target=sum(seen) / len(seen) if seen else None,
        created_at=created_at,
        last_told_at=max((trial.closed_at for trial in told if trial.closed_at is not None), default=None),
        storage=experiment.storage.url,
    )


def diagnosis_of(learner: Learner, trials: Sequence[StoredTrial], columns: Columns) -> Diagnosis:
    """In the order of the log."""
    from dobandit.experiment.diagnosis import diagnose  # these need Numba, which a status does not
    from dobandit.experiment.replica import rounds_of

    told = sorted((t for t in trials if t.state == TOLD), key=lambda t: t.position or 0)
    rows = [ClosedTrial(t.position or 0, t.number, t.state, t.do, t.observation) for t in told]
    predicted = np.array([math.nan if t.predicted is None else t.predicted for t in told])
    return diagnose(learner, *rounds_of(rows, columns), predicted)
