"""E[target] of actions, and how far they are apart: the value, its standard deviation under the joint belief, and how
many rows bear on it (`policy.influences`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import cells_of
from dobandit.estimation.mixture import TABLE
from dobandit.oracle.actions import Action, Actions
from dobandit.oracle.joint_pattern import JointPattern
from dobandit.oracle.listing import listing_of, write_row
from dobandit.policy.influences import bearing_rows, contrast_variances, influences_of
from dobandit.policy.model_engine import OracleMaker
from dobandit.policy.model_rounds import ModelPlan, score_actions
from dobandit.policy.problem import Problem
from dobandit.policy.region import Bonus

Array = NDArray[np.float64]
_AT_ONCE = 1 << 21  # actions x states


class Moments(NamedTuple):
    """Of many actions, a row each.  value: E[Y], perhaps outside of [0, 1].  sd: its standard deviation.  rows: that
    bear on it, at the node with the fewest. Or all of it of the difference to one action."""

    value: Array
    sd: Array
    rows: Array


class ActionMoments:
    """Passes over actions, whichever: all at once where the graph is not too wide for tables, otherwise one by one, in
    a list that has room for every variable.

    value   the maker of the oracle whose estimate is told, one by one
    spread  the maker of the oracle whose standard deviation is
    """

    def __init__(self, problem: Problem, plan: ModelPlan, value: OracleMaker, spread: OracleMaker) -> None:
        self.problem, self.layout = problem, plan.layout
        room = np.zeros((1, len(problem.graph)))
        self._listing = listing_of(problem.order, Actions(room.astype(np.int32), room))
        self._value = plan._replace(oracle=value(problem, self._listing, None), index=Bonus(1.0))
        self._spread = self._value._replace(oracle=spread(problem, self._listing, None))
        self._seen: tuple[int, Array] | None = None

    def of(self, state: Any, actions: Sequence[Action], context: Array, less: Action | None = None) -> Moments:
        """Of each action; less: of what it is ahead of this one."""
        patterns = self.patterns(state, context)
        if patterns is None:
            told = np.array([self._one(state, action, context) for action in actions]).reshape(-1, 3)
            if less is not None:
                value, sd, rows = self._one(state, less, context)
                ahead = told[:, 0] - value, np.hypot(told[:, 1], sd), np.minimum(told[:, 2], rows)
                return Moments(*ahead)
            return Moments(*told.T)
        size = max(_AT_ONCE // int(patterns.frontier.state_ptr[-1]), 1)
        parts = [
            self._passed(patterns, state, actions[start : start + size], context, less)
            for start in range(0, len(actions), size)
        ]
        return Moments(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _passed(
        self, patterns: JointPattern, state: Any, actions: Sequence[Action], context: Array, less: Action | None
    ) -> Moments:
        frontier, tables, order = patterns.frontier, patterns.tables, patterns.listing.order
        some = [*actions, *([] if less is None else [less])]
        held = np.array([self.problem.flagged(action).over(context)[order] for action in some])
        value, influence, _ = influences_of(frontier, tables.mean, held)
        rows = bearing_rows(frontier.table_ptr, influence, self.seen(state))
        if less is not None:
            value, rows = value[:-1] - value[-1], np.minimum(rows[:-1], rows[-1])
            influence = influence[:-1] - influence[-1]
        variance = np.zeros(len(value))
        contrast_variances(self.layout, order, tables, state, influence, variance)
        return Moments(value, np.sqrt(np.maximum(variance, 0.0)), rows)

    def _one(self, state: Any, action: Action, context: Array) -> tuple[float, float, float]:
        write_row(self._listing, self.problem.flagged(action))
        told = []
        for plan, optimistic in ((self._value, False), (self._spread, False), (self._spread, True)):
            score_actions(plan, state, context, 0, optimistic)
            told.append(float(self._listing.values[0]))
        fixed = self.problem.flagged(action).over(context)
        free = [v for v in self.problem.order if math.isnan(fixed[v])]
        return told[0], told[2] - told[1], min((float(state.nodes["rows"][v]) for v in free), default=math.inf)

    def patterns(self, state: Any, context: Array) -> JointPattern | None:
        """The frontier with tables that say what is believed now; None where the graph is too wide, or all lines."""
        if not isinstance(self._spread.oracle, JointPattern):
            return None
        write_row(self._listing, Action())
        score_actions(self._spread, state, context, 0, optimistic=False)
        return self._spread.oracle

    def seen(self, state: Any) -> Array:
        """How many rows saw each parent pattern, in the frontier's numbering; of a node whose link is promised
        all of its rows bear on every pattern. Kept until the next round is taken in."""
        rounds = int(state.clock[0])
        if self._seen is None or self._seen[0] != rounds:
            oracle, layout = self._spread.oracle, self.layout
            found = np.zeros(int(oracle.frontier.table_ptr[-1]))
            for depth, v in enumerate(self.problem.order):
                part = slice(oracle.frontier.table_ptr[depth], oracle.frontier.table_ptr[depth + 1])
                if oracle.tables.mix.has[v, TABLE] and layout.ptr[v + 1] > layout.ptr[v]:
                    found[part] = state.cells["seen"][cells_of(state, v)]
                else:
                    found[part] = state.nodes["rows"][v]
            self._seen = rounds, found
        return self._seen[1]
