"""Intervals of E[target | do(S), context] that hold at every round they are looked at, all together.

With probability 1 - delta, every interval of every action, context and round holds its true mean, whatever chose the
actions and whenever one looks: each node's true probabilities are in its likelihood-ratio set at all rounds
(`estimation.anytime`), delta shared evenly by the target and its ancestors, and the ends are the extremes over the sets
(`oracle.interval_pass`). Rows that say nothing about a node (it was set, or a value is missing) are passed over; that
a value is missing must not depend on what it would have been. Where the frontier is too wide for exact passes, or a
node has too many causes, there are no such intervals.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.confidence import checked_delta
from dobandit.oracle.actions import Action, Actions, actions_of
from dobandit.oracle.difference_bound import advantage, pair_scratch
from dobandit.oracle.frontier import Frontier
from dobandit.oracle.interval_pass import IntervalPass, bound_actions, bounded, fill_intervals, interval_pass
from dobandit.policy.engine import Interval

if TYPE_CHECKING:
    from dobandit.estimation.belief import Belief
    from dobandit.policy.problem import Problem

Array = NDArray[np.float64]


class Bounds(NamedTuple):
    """The ends of E[target] of many actions, a row each."""

    actions: Actions
    low: Array
    high: Array


def anytime_intervals(problem: Problem, state: Belief) -> AnytimeIntervals | None:
    """The intervals of a problem; None where there are none: for numbers between 0 and 1, and for wide graphs."""
    if problem.continuous:
        return None
    frontier = bounded(problem.frontier(), state)
    return None if frontier is None else AnytimeIntervals(problem, frontier)


class AnytimeIntervals:
    """The intervals of one problem, from the state of a mixture. Asking changes nothing of the state."""

    def __init__(self, problem: Problem, frontier: Frontier) -> None:
        self.problem, self._frontier = problem, frontier
        self._shared: dict[int, Array] = {}
        self._one = self._plan(actions_of([Action()]))

    def interval(self, state: Belief, action: Action, context: Array, delta: float) -> Interval:
        """The ends of E[target] of one action; context by id, NaN where nothing is known."""
        fixed = self.problem.flagged(action).over(context)
        target = self.problem.graph.arrays.target
        if not math.isnan(fixed[target]):
            return Interval(float(fixed[target]), float(fixed[target]))
        self._one.actions.scores["regime"] = self.problem.regimes_of(actions_of([action]))
        scores = self._bound(self._one, state, fixed, delta)
        return Interval(float(scores["low"][0]), float(scores["high"][0]))

    def bounds(self, state: Belief, actions: Actions, context: Array, delta: float) -> Bounds:
        """The ends of E[target] of many actions at once: the nodes' sets are looked at only once."""
        plan = self._plan(actions)
        scores = self._bound(plan, state, context, delta)
        return Bounds(plan.actions.actions, scores["low"], scores["high"])

    def gap(self, state: Belief, action: Action, actions: Actions, context: Array, delta: float) -> float:
        """By how much the best of the other actions of a list can be better than `action` at most; at least 0. Two
        listed actions share the nodes that nobody knows well (`oracle.difference_bound`)."""
        plan = self._plan(actions)
        scores = self._bound(plan, state, context, delta)
        rows = [plan.actions.actions.row(i) for i in range(len(scores))]
        own = rows.index(action) if action in rows else -1
        low = self.interval(state, action, context, delta).low if own < 0 else float(scores["low"][own])
        work, most = None if own < 0 else pair_scratch(plan), 0.0
        for i in np.argsort(-scores["high"], kind="stable").tolist():
            ahead = float(scores["high"][i]) - low
            if ahead <= most:
                break
            if i != own:
                shared = math.inf if work is None else advantage(plan, work, context, i, own)
                most = max(most, min(ahead, float(shared)))
        return most

    def difference(self, state: Belief, action: Action, other: Action, context: Array, delta: float) -> Interval:
        """The ends of E[target | do(action)] - E[target | do(other)]."""
        if action == other:
            return Interval(0.0, 0.0)
        plan = self._plan(actions_of([action, other]))
        self._bound(plan, state, context, delta)
        i = [plan.actions.actions.row(k) for k in range(2)].index(action)
        work = pair_scratch(plan)
        low, high = -advantage(plan, work, context, 1 - i, i), advantage(plan, work, context, i, 1 - i)
        return Interval(float(low), float(high))

    def _bound(self, plan: IntervalPass, state: Belief, fixed: Array, delta: float) -> NDArray[Any]:
        """The scores of a plan's actions, with their ends."""
        fill_intervals(plan, state, math.log(len(plan.tables) / checked_delta(delta)))
        bound_actions(plan, fixed)
        return plan.actions.scores

    def _plan(self, actions: Actions) -> IntervalPass:
        return interval_pass(self.problem.listed(actions), self._frontier, shared=self._shared)
