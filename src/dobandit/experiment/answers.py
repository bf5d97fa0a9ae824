"""What an experiment's log says: what the data alone speak for, what the edges weigh, whether the model fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dobandit.experiment.rounds import Columns
from dobandit.experiment.row_texts import Row, split_batch
from dobandit.experiment.status import mean_of
from dobandit.experiment.storage.base import TOLD, ClosedTrial, StoredTrial
from dobandit.policy.engine import Interval

if TYPE_CHECKING:
    from dobandit.experiment.diagnosis import Diagnosis
    from dobandit.model.weights import Do
    from dobandit.policy.learner import Learner, Observed


class BestObserved(NamedTuple):
    """A set that was tried, with the mean of the target in its rounds. The model has no part in it."""

    do: dict[str, float]
    mean: float
    interval: Interval
    rounds: int
    level: float = 0.95  # of the interval, at this round


class EdgeEstimate(NamedTuple):
    """cause is None for the bias: how likely the effect is by itself. status as in `Learner.estimate`; outside: the
    estimate lies outside of what the policy takes for granted, such as a harm where effects should do none; form: what
    the effect looks like by the data, where that is learned; radius: how many standard errors the interval reaches,
    which is as far as the policy's optimism does."""

    cause: str | None
    effect: str
    value: float
    low: float
    high: float
    rows: int
    status: str
    outside: bool = False
    form: str = ""
    radius: float = math.nan


def best_observed(
    closed: Sequence[ClosedTrial],
    columns: Columns,
    available: tuple[str, ...] | None = None,
    context: Row | None = None,
) -> BestObserved | None:
    """The set with the largest lower end of its 95% interval: one lucky round does not win.

    context  only rounds that saw these values
    """
    sums = _sums(closed, columns, context)
    if available is not None:
        sums = {do: entry for do, entry in sums.items() if set(columns.decode(do)) <= set(available)}
    if not sums:
        return None
    found = []
    for do, (rounds, total) in sums.items():
        mean = mean_of(total, int(rounds), columns.continuous)
        found.append(BestObserved(columns.decode(do), mean.value, mean.interval, mean.rounds))
    return max(found, key=lambda best: (best.interval.low, best.mean))


def _sums(closed: Sequence[ClosedTrial], columns: Columns, context: Row | None) -> dict[str, list[float]]:
    """Rounds that saw the target, and its sum, by what was set."""
    target = columns.names.index(columns.graph.target)
    wanted = [(i, value) for i, value in enumerate(context or []) if value is not None]
    sums: dict[str, list[float]] = {}
    for trial in closed:
        if trial.state == TOLD and trial.observation is not None:
            for text, count in zip(*split_batch(trial.observation, trial.counts), strict=True):
                row = columns.values(text)
                value = row[target]
                if value is not None and all(row[i] == given for i, given in wanted):
                    entry = sums.setdefault(trial.do, [0, 0.0])
                    entry[0] += count
                    entry[1] += count * value
    return sums


def observed_of(closed: Sequence[ClosedTrial], columns: Columns, do: Do, context: Row | None) -> Observed | None:
    """What the rounds with exactly this action say; None where there are none that saw the target."""
    text = columns.encode(columns.do_row(do))
    rounds, total = _sums([trial for trial in closed if trial.do == text], columns, context).get(text, (0, 0.0))
    if not rounds:
        return None
    from dobandit.policy.learner import Observed

    mean = mean_of(total, int(rounds), columns.continuous)
    return Observed(mean.value, mean.rounds, mean.interval)


def edge_estimates(learner: Learner) -> list[EdgeEstimate]:
    """Every edge and bias that is learned, effects in the graph's order."""
    rows = []
    for effect in learner.modelled:
        node = learner.estimate(effect)
        weights = [(None, node.bias)] if node.bias is not None else []
        rows += [
            EdgeEstimate(cause, effect, *weight[:3], node.rows, node.status, weight.outside, node.form, node.radius)
            for cause, weight in [*weights, *node.parents.items()]
        ]
    return rows


def diagnosis_of(learner: Learner, trials: Sequence[StoredTrial], columns: Columns) -> Diagnosis:
    """In the order of the log."""
    from dobandit.experiment.diagnosis import diagnose  # these need Numba, which a status does not
    from dobandit.experiment.replica import rounds_of

    told = sorted((t for t in trials if t.state == TOLD), key=lambda t: t.position or 0)
    closed = [ClosedTrial(t.position or 0, t.number, t.state, t.do, t.observation, t.counts, t.rounds) for t in told]
    rounds = rounds_of(closed, columns)
    values, was_set = np.repeat(rounds.values, rounds.counts, axis=0), np.repeat(rounds.was_set, rounds.counts, axis=0)
    predicted = [math.nan if t.predicted is None else t.predicted for t in told]
    return diagnose(learner, values, was_set, np.repeat(np.array(predicted), [t.rounds for t in told]))
