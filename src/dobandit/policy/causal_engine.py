"""The engine of policies whose optimism is about E[Y] as a whole (`CausalUCB`): answers come from the index itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import layout_of
from dobandit.estimation.confidence import Z95, asymptotic_reach
from dobandit.estimation.estimators import Estimator, weighted_squares
from dobandit.estimation.mixture import CURVED, MEMBERS, OWN_LINES, STRAIGHT, TABLE, mixture
from dobandit.model.links import auto, identity
from dobandit.oracle.actions import NOTHING, Action, actions_of
from dobandit.oracle.frontier import MOST_PARENTS
from dobandit.policy.answers import Chance, Contrast, Guaranteed
from dobandit.policy.anytime_intervals import AnytimeIntervals, anytime_intervals
from dobandit.policy.engine import Array, Estimate, Situation
from dobandit.policy.evaluators import EvaluatorMaker, joint, optimistic, promised_shares
from dobandit.policy.influences import ActionMoments
from dobandit.policy.model_engine import Parts
from dobandit.policy.posterior import Posterior
from dobandit.policy.problem import Problem
from dobandit.policy.questions import HANDFUL, MOST_RIVALS
from dobandit.policy.radii import standard_errors
from dobandit.policy.revising import RevisingEngine

_RIDGE = 1.0  # of the weighted sums
_TABLE_ALONE = 4  # effective causes
DELTA = 0.05  # of all intervals of all actions, contexts and rounds together


def members_of(problem: Problem) -> NDArray[np.bool_]:
    """(n + 1, members) which members each node's belief has: the promised one, or all where the link is to be learned;
    there each segment has a straight line of its own. Where hidden causes are shared, effective causes say nothing of a
    form, and what can be best (`prune`) is a question about any form: nodes with few causes are tables then."""
    layout = layout_of(problem.graph)
    has = np.zeros((len(layout.ptr) - 1, len(MEMBERS)), dtype=np.bool_)
    any_form = problem.regimes is not None or problem.prune
    for v, link in enumerate(problem.links, start=1):
        parents = layout.parent[layout.ptr[v] : layout.ptr[v + 1]]
        few = np.count_nonzero(parents) <= MOST_PARENTS
        if any_form and link == auto and np.count_nonzero(parents) <= _TABLE_ALONE:
            has[v, TABLE] = True
            continue
        has[v, OWN_LINES] = link == auto and few and np.isin(parents, problem.context_ids).any()
        has[v, STRAIGHT] = link in (identity, auto) and not has[v, OWN_LINES]
        has[v, CURVED] = link != identity and (link != auto or few)
        has[v, TABLE] = link == auto and few
    return has


class CausalEngine(RevisingEngine):
    """An engine whose predictions are those of its own index. Intervals are asymptotic confidence sequences around them
    (`estimation.confidence.asymptotic_reach`), as wide as what is proved where only a handful of rows bear on them."""

    delta = DELTA
    looks = "every"  # intervals hold at every look, as in an experiment; "once": at the one look that a table gets
    most_expected = 100

    def predict(self, action: Action, context: NDArray[np.float64]) -> Estimate:
        return Estimate(*(float(part[0]) for part in self.predict_many([action], context)))

    def predict_many(self, actions: Sequence[Action], context: NDArray[np.float64]) -> tuple[Array, ...]:
        """(value, low, high): what `predict` says of each of many actions. The value is NaN where no allowed action has
        the same mechanisms."""
        known = np.flatnonzero(self.believed.regimes_of(actions_of(actions)) >= 0)
        if len(known) < len(actions):
            parts = np.tile([[math.nan], [0.0], [1.0]], len(actions))
            if len(known):
                parts[:, known] = self.predict_many([actions[i] for i in known.tolist()], context)
            return tuple(parts)
        context = self.believed.known(context)
        value, sd, rows = self._moments.of(self.state, actions, context)
        half, few = self.reach * sd, rows < HANDFUL
        low, high = value - half, value + half
        if few.any():
            least, most = self._proved_ends(actions, context)
            low, high = np.where(few, np.minimum(low, least), low), np.where(few, np.maximum(high, most), high)
        return tuple(np.clip(part, 0.0, 1.0) for part in (value, low, high))

    def contrast(self, action: Action, others: Sequence[Action], context: Array) -> Contrast:
        context = self.believed.known(context)
        value, sd, rows = self._moments.of(self.state, others, context, less=action)
        if self._posterior.possible and len(others) <= MOST_RIVALS:  # draws are right also where effects are next to 0
            drawn = self._posterior.spread_of_differences(self.state, action, others, context)
            sd = drawn if self.believed.is_linear else np.maximum(sd, drawn)
        half, few = self.reach * sd, (rows < HANDFUL) & [other != action for other in others]
        low, high = value - half, value + half
        if few.any():
            _, least, most = self.predict_many([*others, action], context)  # what has rows of its own stays narrow
            low = np.where(few, np.minimum(low, least[:-1] - most[-1]), low)
            high = np.where(few, np.maximum(high, most[:-1] - least[-1]), high)
        return Contrast(value, np.maximum(low, -1.0), np.minimum(high, 1.0), half)

    def _proved_ends(self, actions: Sequence[Action], context: Array) -> tuple[Array, Array]:
        """The ends of what is proved of each action."""
        if self.anytime is None:
            return np.zeros(len(actions)), np.ones(len(actions))
        bounds = self.anytime.bounds(self.state, actions_of(actions), context, self.delta)
        place = {bounds.actions.row(i): i for i in range(len(bounds.low))}  # it has an order of its own
        order = [place[action] for action in actions]
        return bounds.low[order], bounds.high[order]

    @property
    def reach(self) -> float:
        """How many standard errors an interval reaches."""
        return Z95 if self.looks == "once" else asymptotic_reach(max(self.rounds, 1))

    @property
    def interval_words(self) -> str:
        return "95%, at one look" if self.looks == "once" else "95%, at every look (asymptotic)"

    @cached_property
    def anytime(self) -> AnytimeIntervals | None:
        """The intervals that hold at every round; None for numbers between 0 and 1, and for wide graphs."""
        return anytime_intervals(self.believed, self.state)

    def guaranteed(self, action: Action, now: Situation, delta: float | None = None) -> Guaranteed | None:
        if self.anytime is None:
            return None
        delta, context = self.delta if delta is None else delta, self.believed.known(now.context)
        interval = self.anytime.interval(self.state, action, context, delta)
        nothing = uplift = gap = None
        if not self.problem.rules.always_set:
            nothing = self.anytime.interval(self.state, NOTHING, context, delta)
            uplift = self.anytime.difference(self.state, action, NOTHING, context, delta)
        if not self.searches:
            actions = self.evaluator_for(now.available).plan.actions.actions
            gap = self.anytime.gap(self.state, action, actions, context, delta)
        return Guaranteed(interval, nothing, uplift, gap)

    def rivals(self, now: Situation) -> list[Action]:
        """The actions with the largest indices; the others would hardly ever be best."""
        if self.searches:
            return [action for action, _ in self._searched(now)]
        evaluator, most = self.evaluator_for(now.available), self._posterior.most_compared
        actions = evaluator.plan.actions
        if len(actions.scores) <= most:
            return [actions.actions.row(i) for i in range(len(actions.scores))]
        self.score(evaluator, self.state, self.believed.known(now.context))
        likely = np.argsort(-actions.scores["index"], kind="stable")[:most]
        return [actions.actions.row(int(i)) for i in likely]

    def chance(self, action: Action, now: Situation) -> Chance | None:
        if self.searches or not self._posterior.possible:
            return None
        return self._posterior.chance(self.state, action, self.rivals(now), self.believed.known(now.context))

    @cached_property
    def _posterior(self) -> Posterior:
        return Posterior(self.believed, self.estimator, self.layout)

    @cached_property
    def _moments(self) -> ActionMoments:
        return ActionMoments(self.believed, self.make_evaluator, joint)


def beliefs_at_start(problem: Problem, has: NDArray[np.bool_] | None = None) -> tuple[Estimator, Any]:
    """The estimator for beliefs with the given members (default: `members_of`) and its state before any round; straight
    lines for continuous values, which have no patterns to count."""
    layout, has = layout_of(problem.graph), members_of(problem) if has is None else has
    if problem.continuous:
        return weighted_squares(layout, _RIDGE)
    of = np.repeat(np.arange(len(layout.ptr) - 1), np.diff(layout.ptr))
    context = has[of, OWN_LINES] & np.isin(layout.parent, problem.context_ids)
    return mixture(layout, problem.link_arrays, has, _RIDGE, promised_shares(problem), context)


def parts_of(
    problem: Problem,
    scale: float,
    make: EvaluatorMaker = optimistic,
    has: NDArray[np.bool_] | None = None,
    growth: float = 0.0,
) -> Parts:
    """The parts of an engine before any round.

    scale   how many standard errors the optimism reaches
    make    the maker of evaluators
    has     the members of each node's belief (default: `members_of`)
    growth  how fast the optimism grows (`policy.radii`)
    """
    return Parts(*beliefs_at_start(problem, has), standard_errors(scale, growth), make)
