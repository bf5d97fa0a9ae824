"""What a learner answers: estimates of weights, what an action is worth, and recommendations."""

from __future__ import annotations

from typing import NamedTuple

from dobandit.policy.engine import Interval


class WeightEstimate(NamedTuple):
    """A weight's estimate with its confidence interval, cut to the weights that the link allows. How often a node
    without causes happens is from 0 to 1, where its link is the identity or learned.

    value      the estimate
    low, high  the interval
    outside    the estimate lies outside of what the policy takes for granted (a harm, where effects should do none); it
               and its interval are then shown as they are
    """

    value: float
    low: float
    high: float
    outside: bool = False


class NodeEstimate(NamedTuple):
    """What is known of a node.

    parents  the weight of each parent
    bias     the weight of the constant; None where it has none
    rows     how many rounds tell of it
    status   "solved", "singular" (some combination of parents was never seen) or "separable" (the data alone would ask
             for infinite weights)
    radius   rho, of {theta: ||theta - estimate||_M <= rho}
    form     what the node looks like by the data, such as "a table by pattern (97%)", where that is learned; the
             weights are then those of a straight line
    """

    parents: dict[str, WeightEstimate]
    bias: WeightEstimate | None
    rows: int
    status: str
    radius: float
    form: str = ""


class Worth(NamedTuple):
    """A value with its interval.

    value     E[target], or a difference of two
    interval  its confidence interval
    """

    value: float
    interval: Interval


class Observed(NamedTuple):
    """The mean of the target in the rounds that carried out exactly one action. The model has no part in it.

    mean      of the target
    rounds    how many there were
    interval  its confidence interval at `level`: in an experiment valid at every look and for all sets that were tried
              at once; in a ranking of a table, which is looked at once, Wilson's (Hoeffding's for numbers)
    """

    mean: float
    rounds: int
    interval: Interval
    level: float = 0.95


class Recommendation(NamedTuple):
    """An action with all that is known of it. The first three are always there; `Learner.best` gives only these, with
    interval_words.

    do                what is set
    value, interval   E[target] under the model's estimate, without optimism
    nothing           the same of doing nothing
    uplift            value - nothing.value; its interval is the difference of the two, which holds where both do
    observed          what the rounds with exactly this action say by themselves; None: there are none
    probability_best  how likely it is to be the best allowed action, by draws from what the model believes
    expected_loss     by how much it falls short of the best allowed action on average over these draws
    gap               no other allowed action is better by more than this, at every round one looks, with 95% or what
                      the policy's delta says
    verdict           whether the rounds bear the model out: "fits", "contradicted" or "unknown"
    warnings          what speaks against it, in sentences
    interval_words    what the intervals of value, nothing and uplift promise
    doubts            those of the warnings that forbid to rely on it: while there are any, an experiment may not stop

    None where the policy cannot tell: one that keeps no model has no probabilities, only CausalUCB and BestSet on
    variables of 0 and 1, and LUCB, have a gap, and a model of rounds that always set a variable knows nothing of doing
    nothing.
    """

    do: dict[str, float]
    value: float
    interval: Interval
    nothing: Worth | None = None
    uplift: Worth | None = None
    observed: Observed | None = None
    probability_best: float | None = None
    expected_loss: float | None = None
    gap: float | None = None
    verdict: str | None = None
    warnings: tuple[str, ...] = ()
    interval_words: str = ""
    doubts: tuple[str, ...] = ()
