"""The engine of policies whose optimism is about E[Y] as a whole (`CausalUCB`): answers come from the index itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.estimation.confidence import Z95
from dobandit.estimation.estimators import rows_with_room, weighted_squares
from dobandit.estimation.mixture import CURVED, MEMBERS, OWN_LINES, STRAIGHT, TABLE, mixture
from dobandit.estimation.statistics import layout_of
from dobandit.model.links import auto, identity
from dobandit.oracle.actions import Action, Actions
from dobandit.oracle.closed_form import closed_form
from dobandit.oracle.frontier import MOST_PARENTS, frontier_of
from dobandit.oracle.joint_pattern import joint_pattern
from dobandit.oracle.listing import Listing, listing_of, write_row
from dobandit.oracle.local_search import local_search
from dobandit.oracle.mean_field import mean_field
from dobandit.policy.anytime_intervals import AnytimeIntervals, anytime_intervals
from dobandit.policy.engine import WORDS_APPROXIMATE, WORDS_NOW, Array, Chance, Estimate, Situation, words_always
from dobandit.policy.model_engine import OracleMaker
from dobandit.policy.model_rounds import score_actions
from dobandit.policy.oracles import listed
from dobandit.policy.posterior import Posterior
from dobandit.policy.problem import Problem
from dobandit.policy.region import Bonus
from dobandit.policy.revising import Parts, RevisingEngine

_MOST_WORK = 4_000_000  # actions x states of the frontier
_MOST_STATES = 1 << 14
_MOST_EXPECTED = 100
_RIDGE, _FLOOR = 1.0, 0.05  # of the weighted sums
_ROOM = 256  # patterns per node at first
DELTA = 0.05  # of all intervals of all actions, contexts and rounds together


def members_of(problem: Problem) -> NDArray[np.bool_]:
    """(n + 1, members) which members each node's belief has: the promised one, or all where the link is to be learned;
    there each segment has a straight line of its own."""
    layout = layout_of(problem.graph)
    has = np.zeros((len(layout.ptr) - 1, len(MEMBERS)), dtype=np.bool_)
    for v, link in enumerate(problem.links, start=1):
        parents = layout.parent[layout.ptr[v] : layout.ptr[v + 1]]
        few = np.count_nonzero(parents) <= MOST_PARENTS
        has[v, OWN_LINES] = link == auto and few and np.isin(parents, problem.context_ids).any()
        has[v, STRAIGHT] = link in (identity, auto) and not has[v, OWN_LINES]
        has[v, CURVED] = link != identity and (link != auto or few)
        has[v, TABLE] = link == auto and few
    return has


def promised_shares(problem: Problem) -> bool:
    """Whether every node's weights are promised to be nonnegative and to add up to at most 1: probabilities that are
    straight lines without a negative weight."""
    return problem.is_linear and problem.effects == "nonnegative" and not problem.continuous


def joint_oracle(estimator: Any) -> OracleMaker:
    """The joint bonus: exact where that can be, else with nodes as if independent; searched where there are too many
    actions to list."""

    def make(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
        graph, allowed = problem.graph, problem.allowed(available)
        many = listing is None and allowed.count() > limits.MAX_ACTIONS
        if problem.is_linear:
            if many:
                return local_search(graph, allowed, problem.order, lambda row: mean_field(graph, row))
            return mean_field(graph, listing or listed(problem, available))
        order = np.array(problem.order, dtype=np.int64)
        frontier = frontier_of(graph, order, _MOST_STATES)
        rows = len(listing.values) if listing else allowed.count()
        work = math.inf if frontier is None else float(frontier.state_ptr[-1] * rows)
        if many:
            return local_search(graph, allowed, problem.order, lambda row: mean_field(graph, row, estimator))
        if frontier is None or work > _MOST_WORK:
            return mean_field(graph, listing or listed(problem, available), estimator)
        return joint_pattern(graph, listing or listed(problem, available), estimator, frontier)

    return make


def optimistic_oracle(estimator: Any) -> OracleMaker:
    """The joint bonus; where effects are promised to be straight and nonnegative, a bonus for every node, carried
    upwards along all paths, which such effects allow, and which loses less there."""
    joint = joint_oracle(estimator)

    def make(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
        many = listing is None and problem.allowed(available).count() > limits.MAX_ACTIONS
        if many or not promised_shares(problem):
            return joint(problem, listing, available)
        return closed_form(problem.graph, listing or listed(problem, available))

    return make


class Predictions(NamedTuple):
    """E[target] of many actions with the ends of its interval, a row each."""

    actions: Actions
    value: Array
    low: Array
    high: Array


class CausalEngine(RevisingEngine):
    """An engine whose predictions are those of its own index; their intervals hold at every round where variables
    are 0 or 1 and the graph is not too wide, and are by standard errors elsewhere."""

    delta = DELTA

    def predict(self, action: Action, context: NDArray[np.float64]) -> Estimate:
        plan, context = self._single, self.believed.known(context)
        listing = plan.oracle.listing
        write_row(listing, self.believed.flagged(action))
        score_actions(plan, self.state, context, -1)
        value = min(max(float(listing.values[0]), 0.0), 1.0)
        if self.anytime is not None:  # a smoothed estimate may lie outside of a set of likely ones: then it is let in
            low, high = self.anytime.interval(self.state, action, context, self.delta)
            return Estimate(value, min(low, value), max(high, value))
        middle = float(listing.values[0])
        score_actions(plan, self.state, context, 0)
        reach = float(listing.values[0]) - middle
        low, high = (min(max(end, 0.0), 1.0) for end in (middle - reach, middle + reach))
        return Estimate(value, low, high)

    def predict_many(self, actions: Actions, context: NDArray[np.float64]) -> Predictions:
        """What `predict` says of each of many actions, whose common work is done once; in an order of its own."""
        believed, context = self.believed, self.believed.known(context)
        listing = listing_of(believed.order, actions, flags=believed.flags)
        plan = self.plan._replace(oracle=self.make_oracle(believed, listing, None))
        score_actions(plan, self.state, context, -1)
        middle = listing.values.copy()
        value = np.clip(middle, 0.0, 1.0)
        if self.anytime is not None:
            bounds = self.anytime.bounds(self.state, listing.actions, context, self.delta)
            low, high = np.minimum(bounds.low, value), np.maximum(bounds.high, value)
            return Predictions(bounds.actions, value, low, high)
        score_actions(plan._replace(index=self.plan.index._replace(scale=Z95)), self.state, context, 0)
        reach = listing.values - middle
        low, high = (np.clip(end, 0.0, 1.0) for end in (middle - reach, middle + reach))
        return Predictions(listing.actions, value, low, high)

    @property
    def interval_words(self) -> str:
        if self.anytime is not None:
            words = words_always(self.delta)
        else:
            words = WORDS_NOW if self.problem.continuous else WORDS_APPROXIMATE
        return f"{words}, if every effect is a straight line" if self.problem.assumed_lines else words

    @cached_property
    def anytime(self) -> AnytimeIntervals | None:
        """The intervals that hold at every round; None for numbers between 0 and 1, and for wide graphs."""
        return anytime_intervals(self.believed, self.plan.estimator)

    @property
    def has_gap(self) -> bool:
        return self.anytime is not None and not self.searches

    def gap(self, action: Action, now: Situation) -> float | None:
        if self.anytime is None or self.searches:
            return None
        actions = self._plan_for(now.available).oracle.listing.actions
        return self.anytime.gap(self.state, action, actions, self.believed.known(now.context), self.delta)

    def chance(self, action: Action, now: Situation) -> Chance | None:
        if self.searches or not self._posterior.possible:
            return None
        plan, context = self._plan_for(now.available), self.believed.known(now.context)
        score_actions(plan, self.state, context, 0)
        listing, most = plan.oracle.listing, self._posterior.most_compared
        likely = np.argsort(-listing.values, kind="stable")[:most]  # the others would hardly ever be best
        others = [listing.actions.row(int(i)) for i in likely]
        return self._posterior.chance(self.state, action, others, context)

    @cached_property
    def _posterior(self) -> Posterior:
        return Posterior(self.believed, self.plan.estimator, self.plan.layout)

    def _expect(self, state: Any, fixed: Array, was_set: NDArray[np.bool_], size: int) -> Any:
        """A batch of very many teaches what a few dozen would, as far as choosing goes: nearly all there is to know."""
        state, _ = rows_with_room(self.plan.estimator, self.plan.layout, state)
        return super()._expect(state, fixed, was_set, min(size, _MOST_EXPECTED))

    @cached_property
    def _single(self) -> Any:
        """A plan for one action, whichever: its list has room for every variable. Its optimism is that of a 95%
        interval."""
        room = np.zeros((1, len(self.believed.graph)))
        listing = listing_of(self.believed.order, Actions(room.astype(np.int32), room))
        oracle = self.make_oracle(self.believed, listing, None)
        return self.plan._replace(oracle=oracle, index=self.plan.index._replace(scale=Z95))


def beliefs_at_start(problem: Problem, has: NDArray[np.bool_] | None = None) -> tuple[Any, Any]:
    """The estimator for beliefs with the given members (default: `members_of`) and its state before any round; straight
    lines for continuous values, which have no patterns to count."""
    layout, has = layout_of(problem.graph), members_of(problem) if has is None else has
    if problem.continuous:
        return weighted_squares(layout, _RIDGE, _FLOOR)
    of = np.repeat(np.arange(len(layout.ptr) - 1), np.diff(layout.ptr))
    context = has[of, OWN_LINES] & np.isin(layout.parent, problem.context_ids)
    return mixture(layout, problem.link_arrays, has, _RIDGE, _FLOOR, _ROOM, promised_shares(problem), context)


def parts_of(
    problem: Problem,
    scale: float,
    oracle: Callable[[Any], OracleMaker] = optimistic_oracle,
    has: NDArray[np.bool_] | None = None,
) -> Parts:
    """The parts of an engine before any round.

    scale   how many standard errors the optimism reaches
    oracle  the maker of oracles for an estimator
    has     the members of each node's belief (default: `members_of`)
    """
    estimator, state = beliefs_at_start(problem, has)
    return estimator, state, Bonus(scale), oracle(estimator)
