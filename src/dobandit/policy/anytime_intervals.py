"""Intervals of E[target | do(S), context] that hold at every round they are looked at, all together.

With probability 1 - delta, every interval of every action, context and round holds its true mean, whatever chose the
actions and whenever one looks: each node's true probabilities are in its likelihood-ratio set at all rounds
(`estimation.anytime`), delta shared evenly by the target and its ancestors, and the ends are the extremes over the sets
(`oracle.anytime_values`; by `oracle.anytime_means` where the frontier is too wide, and where all nodes are lines, by
both). Rows that say nothing about a node (it was set, or a value is missing) are passed over; that a value is missing
must not depend on what it would have been.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError
from dobandit.estimation.anytime import likelihood_sets
from dobandit.estimation.confidence import checked_delta
from dobandit.estimation.mixture import Mixture
from dobandit.estimation.statistics import layout_of
from dobandit.model.link_kernels import IDENTITY
from dobandit.oracle.actions import Action, Actions, actions_of
from dobandit.oracle.advantages import advantage, advantages_of
from dobandit.oracle.anytime_means import bound_listed, nothing_kept
from dobandit.oracle.anytime_values import AnytimeValues, Ends, anytime_values, bound_actions, fill_intervals
from dobandit.oracle.listing import listing_of
from dobandit.policy.engine import Interval

if TYPE_CHECKING:
    from dobandit.estimation.mixture import Mixed
    from dobandit.policy.problem import Problem

Array = NDArray[np.float64]
_MANY_PARENTS = 6  # beyond, lines are bounded by their means alone: each pattern would have a search of its own
_MANY_BENT = 11  # the same for curves, whose means say far less: only where an answer would take most of a second
_KEPT_LISTS = 8
_NOTHING = actions_of([Action()])


class Bounds(NamedTuple):
    """The ends of E[target] of many actions, a row each."""

    actions: Actions
    low: Array
    high: Array


class AnytimeIntervals:
    """The intervals of one problem, from the state of a mixture. Asking changes nothing of the state."""

    def __init__(self, problem: Problem, estimator: Any) -> None:
        if not isinstance(estimator, Mixture):
            raise PolicyError(
                "intervals that hold at every round are made of a mixture's pattern counts, but this policy keeps a "
                f"{type(estimator).__name__}. Use CausalUCB."
            )
        if problem.continuous:
            raise PolicyError("intervals that hold at every round are for variables of 0 and 1. Give continuous=False.")
        self.problem, self.estimator = problem, estimator
        self._layout = layout_of(problem.graph)
        self._sets = likelihood_sets(self._layout, estimator)
        self._order = np.array(problem.order, dtype=np.int64)
        degrees, straight = np.diff(self._layout.ptr)[self._order], self._sets.links.code[self._order] == IDENTITY
        self._lines = bool((straight & self._sets.promised[self._order]).all())
        curved = degrees[self._sets.promised[self._order] & ~straight]
        self._by_pattern = (not self._lines or int(degrees.max()) <= _MANY_PARENTS) and int(
            curved.max(initial=0)
        ) <= _MANY_BENT
        self._shared: dict[int, Ends] = {}
        self._one = self._oracle(actions_of([Action()]))
        self._kept: dict[int, tuple[Actions, AnytimeValues | None]] = {}  # by the address of ids, which are kept too

    def interval(self, state: Mixed, action: Action, context: Array, delta: float) -> Interval:
        """The ends of E[target] of one action; context by id, NaN where nothing is known."""
        fixed, nats = action.over(context), self._nats(delta)
        target = self.problem.graph.arrays.target
        if not math.isnan(fixed[target]):
            return Interval(float(fixed[target]), float(fixed[target]))
        low, high = self._by_means(state, _NOTHING, fixed, nats)
        if self._one is not None:
            fill_intervals(self._layout, self._one, state, nats, fixed)
            bound_actions(self._one, fixed)
            low, high = _both((low, high), (self._one.lower, self._one.listing.values))
        return Interval(float(low[0]), float(high[0]))

    def bounds(self, state: Mixed, actions: Actions, context: Array, delta: float) -> Bounds:
        """The ends of E[target] of many actions at once: the nodes' sets are looked at only once. A list that comes
        back is not laid out anew."""
        nats, oracle = self._nats(delta), self._kept_oracle(actions)
        actions = actions if oracle is None else oracle.listing.actions
        ends = self._by_means(state, actions, context, nats)
        if oracle is None:
            return Bounds(actions, *ends)
        fill_intervals(self._layout, oracle, state, nats, context)
        bound_actions(oracle, context)
        return Bounds(actions, *_both(ends, (oracle.lower, oracle.listing.values)))

    def gap(self, state: Mixed, action: Action, actions: Actions, context: Array, delta: float) -> float:
        """By how much the best of the other actions of a list can be better than `action` at most; at least 0. Two
        listed actions share the nodes that nobody knows well (`oracle.advantages`), where the frontier is narrow."""
        bounds, oracle = self.bounds(state, actions, context, delta), self._kept_oracle(actions)
        rows = [bounds.actions.row(i) for i in range(len(bounds.high))]
        own = rows.index(action) if action in rows else -1
        low = self.interval(state, action, context, delta).low if own < 0 else float(bounds.low[own])
        work = None if oracle is None or own < 0 else advantages_of(oracle)
        most = 0.0
        for i in np.argsort(-bounds.high, kind="stable").tolist():
            ahead = float(bounds.high[i]) - low
            if ahead <= most:
                break
            if i != own:
                shared = math.inf if work is None else advantage(oracle, work, context, i, own)
                most = max(most, min(ahead, float(shared)))
        return most

    def _kept_oracle(self, actions: Actions) -> AnytimeValues | None:
        key = id(actions.ids)
        if key not in self._kept or self._kept[key][0].ids is not actions.ids:
            if len(self._kept) >= _KEPT_LISTS:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = (actions, self._oracle(actions))
        return self._kept[key][1]

    def _oracle(self, actions: Actions) -> AnytimeValues | None:
        if not self._by_pattern:
            return None
        listing = listing_of(self.problem.order, actions)
        return anytime_values(self.problem.graph, listing, self._layout, self.estimator, None, self._shared)

    def _by_means(self, state: Mixed, actions: Actions, context: Array, nats: float) -> tuple[Array, Array]:
        """By interval arithmetic over means: where lines make it sharp, or where nothing else can be done."""
        count = len(actions.ids)
        if not self._lines and self._one is not None:
            return np.zeros(count), np.ones(count)
        low, high = (fill((count, len(self._layout.ptr) - 1)) for fill in (np.zeros, np.ones))
        fixed = np.tile(context, (count, 1))
        row, place = np.nonzero(actions.ids)
        fixed[row, actions.ids[row, place]] = actions.values[row, place]
        kept = nothing_kept(self._layout)
        bound_listed(self._layout, self._sets, state, self._order, nats, kept, fixed, low, high)
        return low[:, self._order[-1]], high[:, self._order[-1]]

    def _nats(self, delta: float) -> float:
        return math.log(len(self.problem.order) / checked_delta(delta))


def _both(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """Where both hold: either follows from the nodes' sets. Sets that fail can leave nothing; then the middle of it."""
    low, high = np.maximum(one[0], other[0]), np.minimum(one[1], other[1])
    middle = 0.5 * (low + high)
    return np.where(low > high, middle, low), np.where(low > high, middle, high)
