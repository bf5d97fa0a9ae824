"""Intervals of E[target | do(S), context] that hold at every round they are looked at, all together.

With probability 1 - delta, every interval of every action, context and round holds its true mean, whatever chose the
actions and whenever one looks: each node's true probabilities are in its likelihood-ratio set at all rounds
(`estimation.anytime`), delta shared evenly by the target and its ancestors, and the ends are the extremes over the sets
(`oracle.anytime_values`). Rows that say nothing about a node (it was set, or a value is missing) are passed over; that
a value is missing must not depend on what it would have been. Where the frontier is too wide for exact passes, or a
node has too many causes, there are no such intervals.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import layout_of
from dobandit.estimation.confidence import checked_delta
from dobandit.oracle.actions import Action, Actions, actions_of
from dobandit.oracle.advantages import advantage, advantages_of
from dobandit.oracle.anytime_values import (
    AnytimeValues,
    Ends,
    anytime_values,
    bound_actions,
    bounded_frontier,
    fill_intervals,
)
from dobandit.oracle.frontier import Frontier
from dobandit.oracle.listing import listing_of
from dobandit.policy.engine import Interval

if TYPE_CHECKING:
    from dobandit.estimation.belief import Belief
    from dobandit.estimation.mixture import Mixture
    from dobandit.policy.problem import Problem

Array = NDArray[np.float64]
_KEPT_LISTS = 8


class Bounds(NamedTuple):
    """The ends of E[target] of many actions, a row each."""

    actions: Actions
    low: Array
    high: Array


def anytime_intervals(problem: Problem, estimator: Any) -> AnytimeIntervals | None:
    """The intervals of a problem; None where there are none: for numbers between 0 and 1, and for wide graphs."""
    if problem.continuous:
        return None
    order, layout = np.array(problem.order, dtype=np.int64), layout_of(problem.graph)
    frontier = bounded_frontier(problem.graph, order, layout, estimator)
    return None if frontier is None else AnytimeIntervals(problem, estimator, frontier)


class AnytimeIntervals:
    """The intervals of one problem, from the state of a mixture. Asking changes nothing of the state."""

    def __init__(self, problem: Problem, estimator: Mixture, frontier: Frontier) -> None:
        self.problem, self.estimator, self._frontier = problem, estimator, frontier
        self._shared: dict[int, Ends] = {}
        self._one = self._oracle(actions_of([Action()]))
        self._kept: dict[int, tuple[Actions, AnytimeValues]] = {}  # by the address of ids, which are kept too

    def interval(self, state: Belief, action: Action, context: Array, delta: float) -> Interval:
        """The ends of E[target] of one action; context by id, NaN where nothing is known."""
        fixed, target = self.problem.flagged(action).over(context), self.problem.graph.arrays.target
        if not math.isnan(fixed[target]):
            return Interval(float(fixed[target]), float(fixed[target]))
        fill_intervals(self._one, state, self._nats(delta))
        bound_actions(self._one, fixed)
        return Interval(float(self._one.lower[0]), float(self._one.listing.values[0]))

    def bounds(self, state: Belief, actions: Actions, context: Array, delta: float) -> Bounds:
        """The ends of E[target] of many actions at once: the nodes' sets are looked at only once. A list that comes
        back is not laid out anew."""
        oracle = self._kept_oracle(actions)
        fill_intervals(oracle, state, self._nats(delta))
        bound_actions(oracle, context)
        return Bounds(oracle.listing.actions, oracle.lower, oracle.listing.values)

    def gap(self, state: Belief, action: Action, actions: Actions, context: Array, delta: float) -> float:
        """By how much the best of the other actions of a list can be better than `action` at most; at least 0. Two
        listed actions share the nodes that nobody knows well (`oracle.advantages`)."""
        bounds, oracle = self.bounds(state, actions, context, delta), self._kept_oracle(actions)
        rows = [bounds.actions.row(i) for i in range(len(bounds.high))]
        own = rows.index(action) if action in rows else -1
        low = self.interval(state, action, context, delta).low if own < 0 else float(bounds.low[own])
        work = None if own < 0 else advantages_of(oracle)
        most = 0.0
        for i in np.argsort(-bounds.high, kind="stable").tolist():
            ahead = float(bounds.high[i]) - low
            if ahead <= most:
                break
            if i != own:
                shared = math.inf if work is None else advantage(oracle, work, context, i, own)
                most = max(most, min(ahead, float(shared)))
        return most

    def difference(self, state: Belief, action: Action, other: Action, context: Array, delta: float) -> Interval:
        """The ends of E[target | do(action)] - E[target | do(other)]."""
        if action == other:
            return Interval(0.0, 0.0)
        oracle = self._oracle(actions_of([action, other]))
        fill_intervals(oracle, state, self._nats(delta))
        bound_actions(oracle, context)
        i = [oracle.listing.actions.row(k) for k in range(2)].index(action)
        work = advantages_of(oracle)
        return Interval(
            -float(advantage(oracle, work, context, 1 - i, i)), float(advantage(oracle, work, context, i, 1 - i))
        )

    def _kept_oracle(self, actions: Actions) -> AnytimeValues:
        key = id(actions.ids)
        if key not in self._kept or self._kept[key][0].ids is not actions.ids:
            if len(self._kept) >= _KEPT_LISTS:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = (actions, self._oracle(actions))
        return self._kept[key][1]

    def _oracle(self, actions: Actions) -> AnytimeValues:
        listing = listing_of(self.problem.order, actions, flags=self.problem.flags)
        return anytime_values(listing, self._frontier, None, self._shared)

    def _nats(self, delta: float) -> float:
        return math.log(len(self.problem.order) / checked_delta(delta))
