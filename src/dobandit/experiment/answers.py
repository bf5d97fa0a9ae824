"""What an experiment's log says: what the data alone speak for, and what the edges weigh."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from dobandit.diagnosis.mechanism_nodes import nodes_of
from dobandit.experiment.accumulator import RoundCounts
from dobandit.experiment.status import anytime_mean
from dobandit.model.weights import fixed_values
from dobandit.oracle.actions import action_of
from dobandit.policy.engine import Interval
from dobandit.rows.columns import Row
from dobandit.texts import as_html, counted, setting_words, with_interval

if TYPE_CHECKING:
    from dobandit.model.weights import Do
    from dobandit.policy.answers import Observed
    from dobandit.policy.learner import Learner
    from dobandit.policy.problem import Problem


class BestObserved(NamedTuple):
    """A set that was tried, with the mean of the target in its rounds: those that were asked for or randomised. The
    model has no part in it.

    do        what was set
    mean      of the target
    interval  its confidence interval at `level`, valid at every look and for all sets that were tried at once
    rounds    how many there were that saw the target
    """

    do: dict[str, float]
    mean: float
    interval: Interval
    rounds: int
    level: float = 0.95

    def __str__(self) -> str:
        return (
            f"{setting_words(self.do)}: {with_interval(self.mean, *self.interval)} in {counted(self.rounds, 'round')}"
        )

    def _repr_html_(self) -> str:
        return as_html(self)


class EdgeEstimate(NamedTuple):
    """What is known of the weight of an edge, or of a bias.

    cause      None for the bias: how likely the effect is by itself
    effect     the node that it is a cause of
    value      the estimate;  low, high: its confidence interval
    rows       how many rounds it rests on
    status     as in `NodeEstimate`
    outside    whether the estimate lies outside of what the policy takes for granted, such as a harm where effects
               should do none
    form       what the effect looks like by the data, where that is learned
    radius     how many standard errors the interval reaches, which is as far as the policy's optimism does
    """

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
    counted: RoundCounts, problem: Problem, available: tuple[int, ...] | None = None, context: Row | None = None
) -> BestObserved | None:
    """The set with the largest lower end of its 95% interval, of those that can be chosen: one lucky round does not
    win. Of equals the one whose text comes first.

    context  only rounds that saw these values
    """
    columns, sets = counted.columns, len(counted.own_actions)
    found = [
        BestObserved(columns.decode(do), *anytime_mean(total, rounds, sets))
        for do, (rounds, total) in sorted(counted.sums(context).items())
    ]
    found.sort(key=lambda best: (best.interval.low, best.mean), reverse=True)
    for best in found:
        action = action_of(fixed_values(problem.graph, best.do, continuous=problem.continuous))
        if problem.can_be_chosen(action, available):
            return best
    return None


def observed_of(counted: RoundCounts, do: Do, context: Row | None) -> Observed | None:
    """What the own rounds with exactly this action say; None where there are none that saw the target."""
    columns = counted.columns
    text = columns.encode(columns.do_row(do))
    rounds, total = counted.sums(context, text).get(text, (0, 0.0))
    if not rounds:
        return None
    from dobandit.policy.answers import Observed

    mean = anytime_mean(total, rounds, len(counted.own_actions))
    return Observed(mean.value, mean.rounds, mean.interval)


def edge_estimates(learner: Learner) -> list[EdgeEstimate]:
    """Every edge and bias that is learned, effects in the graph's order; where hidden causes are shared, of each
    mechanism of the effect."""
    rows = []
    for effect in nodes_of(learner):
        node = learner.estimate(effect)
        weights = [(None, node.bias)] if node.bias is not None else []
        rows += [
            EdgeEstimate(cause, effect, *weight[:3], node.rows, node.status, weight.outside, node.form, node.radius)
            for cause, weight in [*weights, *node.parents.items()]
        ]
    return rows
