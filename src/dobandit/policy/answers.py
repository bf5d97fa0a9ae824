"""What a learner answers: estimates of weights, what an action is worth, and recommendations."""

from __future__ import annotations

from typing import NamedTuple

from dobandit.policy.engine import Array, Interval
from dobandit.texts import as_html, setting_words, with_interval

NEXT_TO_NOTHING = 0.02  # an effect on E[target] that is not worth mentioning


def percent(delta: float) -> str:
    """How sure one is of what fails with probability delta: "95%"."""
    return f"{100.0 * (1.0 - delta):.10g}%"


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
              at once; in a ranking of a table, which is looked at once, Wilson's
    """

    mean: float
    rounds: int
    interval: Interval
    level: float = 0.95


class Contrast(NamedTuple):
    """By how much each of some actions is ahead of one, a row each: the estimate and the ends of its interval.

    half  how far the interval would reach if it were not widened where only a handful of rows bear on it
    """

    value: Array
    low: Array
    high: Array
    half: Array


class Guaranteed(NamedTuple):
    """What is proved, with probability 1 - delta, at every round one looks, for all actions together: true as far as
    the graph is, whatever the effects look like.

    interval  of E[target] of the action
    nothing   of E[target] of doing nothing; None where nothing is known of that
    uplift    of the difference of the two; None where `nothing` is
    gap       no other allowed action is better by more than this; None where they are too many to look at
    """

    interval: Interval
    nothing: Interval | None
    uplift: Interval | None
    gap: float | None


class Gap(NamedTuple):
    """No other action that can be chosen is better by more than `gap`, with 95%, at every look.

    more  about how many rounds are still needed until it is as small as it is to be, if they go on as so far; None
          where that cannot be told, or no limit was given
    """

    gap: float
    more: int | None = None


class Chance(NamedTuple):
    """How likely an action is to be the best, by what is known, and how far it falls short of the best on average."""

    best: float
    loss: float


class LeverEffect(NamedTuple):
    """What setting one variable alone adds to doing nothing.

    name, value   the variable, and what it is set to
    effect        on E[target]
    interval      its confidence interval
    harms         whether it lowers the target, as far as the interval decides that
    does_nothing  whether an effect worth mentioning is ruled out, in both directions
    """

    name: str
    value: float
    effect: float
    interval: Interval
    harms: bool = False
    does_nothing: bool = False


def lever_effect(name: str, value: float, effect: float, interval: Interval) -> LeverEffect:
    """What a lever does, with what its interval decides."""
    low, high = interval
    return LeverEffect(name, value, effect, interval, high < 0.0, max(-low, high) <= NEXT_TO_NOTHING)


class Recommendation(NamedTuple):
    """An action with all that is known of it. The first three are always there; `Learner.best` gives only these, with
    interval_words.

    do                what is set
    value, interval   E[target] under the model's estimate, without optimism
    nothing           the same of doing nothing
    uplift            what the action adds to doing nothing. Its interval is that of the difference, in which what both
                      share cancels
    observed          what the rounds with exactly this action say by themselves, of those that were asked for or
                      randomised: in others, what decided on the action may have moved the target; None: there are none
    probability_best  how likely it is to be the best allowed action, by draws from what the model believes
    expected_loss     by how much it falls short of the best allowed action on average over these draws
    gap               no other allowed action is better by more than this, with 95%, at every look
    more_rounds       about how many rounds are still needed until the gap is as small as the experiment's stop_within;
                      None where nothing is to be stopped, or that cannot be told
    guaranteed        the same interval, uplift and gap with a proof: wider, and right as far as the graph is
    levers            what setting each variable alone adds to doing nothing
    verdict           whether the rounds bear the model out: "fits", "contradicted" or "unknown"
    warnings          caveats, in sentences
    interval_words    what the intervals of value, nothing, uplift and levers promise
    doubts            those of the warnings that forbid to rely on it: while there are any, an experiment may not stop
    sentence          what to do, by how much that is better than doing nothing, and how sure it is; of an experiment's
                      answers only

    None where the policy cannot tell: one that keeps no model has no probabilities and no levers, and a model of rounds
    that always set a variable knows nothing of doing nothing.
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
    more_rounds: int | None = None
    guaranteed: Guaranteed | None = None
    levers: tuple[LeverEffect, ...] = ()
    verdict: str | None = None
    warnings: tuple[str, ...] = ()
    interval_words: str = ""
    doubts: tuple[str, ...] = ()
    sentence: str = ""

    def __str__(self) -> str:
        said = self.sentence or f"{setting_words(self.do)}: {with_interval(self.value, *self.interval)}"
        return "\n".join([said, *(f"note: {warning}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        return as_html(self)
