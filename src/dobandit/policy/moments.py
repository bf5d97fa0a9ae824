"""E[target] of actions, and how far they are apart: the value, its standard deviation under the joint belief, and how
many rows bear on it (`policy.influences`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import Belief, cells_of
from dobandit.estimation.mixture import TABLE, members_of
from dobandit.oracle.action_list import action_list, write_row
from dobandit.oracle.actions import Action, Actions
from dobandit.oracle.exact_pass import ExactPass, exact_index
from dobandit.oracle.node_tables import fill_tables
from dobandit.policy.evaluators import EvaluatorMaker
from dobandit.policy.influences import bearing_rows, contrast_variances, influences_of
from dobandit.policy.problem import Problem

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

    value   the maker of the evaluator whose estimate is told, one by one
    spread  the maker of the evaluator whose standard deviation is
    """

    def __init__(self, problem: Problem, value: EvaluatorMaker, spread: EvaluatorMaker) -> None:
        self.problem, room = problem, np.zeros((1, len(problem.graph)))
        self._row = action_list(problem.order, Actions(room.astype(np.int32), room))
        self._value, self._spread = value(problem, self._row, None), spread(problem, self._row, None)
        self._seen: tuple[int, Array] | None = None

    def of(self, state: Belief, actions: Sequence[Action], context: Array, less: Action | None = None) -> Moments:
        """Of each action; less: of what it is ahead of this one."""
        patterns = self.patterns(state)
        if patterns is None:
            told = np.array([self._one(state, action, context) for action in actions]).reshape(-1, 3)
            if less is not None:
                value, sd, rows = self._one(state, less, context)
                ahead = told[:, 0] - value, np.hypot(told[:, 1], sd), np.minimum(told[:, 2], rows)
                return Moments(*ahead)
            return Moments(*told.T)
        size = max(_AT_ONCE // len(patterns.states), 1)
        parts = [
            self._passed(patterns, state, actions[start : start + size], context, less)
            for start in range(0, len(actions), size)
        ]
        return Moments(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _passed(
        self, patterns: ExactPass, state: Belief, actions: Sequence[Action], context: Array, less: Action | None
    ) -> Moments:
        steps, tables, order = patterns.steps, patterns.tables, patterns.actions.order
        some = [*actions, *([] if less is None else [less])]
        held = np.array([self.problem.flagged(action).over(context)[order] for action in some])
        value, influence, _ = influences_of(steps, patterns.states, tables.mean, held)
        rows = bearing_rows(steps, influence, self.seen(state))
        if less is not None:
            value, rows = value[:-1] - value[-1], np.minimum(rows[:-1], rows[-1])
            influence = influence[:-1] - influence[-1]
        variance = contrast_variances(state, steps, tables, influence)
        return Moments(value, np.sqrt(np.maximum(variance, 0.0)), rows)

    def _one(self, state: Belief, action: Action, context: Array) -> tuple[float, float, float]:
        """The value of one evaluator, and the standard deviation of the other."""
        write_row(self._row, self.problem.flagged(action))
        told = []
        for (evaluate, plan), reach in ((self._value, 0.0), (self._spread, 1.0)):
            evaluate(state, plan, context, np.full(len(context), reach), np.zeros(1))
            told.append((float(self._row.scores["mean"][0]), float(self._row.scores["sd"][0])))
        fixed = self.problem.flagged(action).over(context)
        free = [v for v in self.problem.order if math.isnan(fixed[v])]
        return told[0][0], told[1][1], min((float(state.nodes["rows"][v]) for v in free), default=math.inf)

    def patterns(self, state: Belief) -> ExactPass | None:
        """The frontier with tables that say what is believed now; None where the graph is too wide, or all lines."""
        evaluate, plan = self._spread
        if evaluate is not exact_index:
            return None
        fill_tables(state, plan.steps, plan.tables)
        found: ExactPass = plan
        return found

    def seen(self, state: Belief) -> Array:
        """How many rows saw each parent pattern, in the frontier's numbering; of a node whose link is promised
        all of its rows bear on every pattern. Kept until the next round is taken in."""
        rounds = int(state.clock[0])
        if self._seen is None or self._seen[0] != rounds:
            table_ptr, tabulated = self._spread.plan.steps["table"], members_of(state)[:, TABLE]
            found = np.zeros(int(table_ptr[-1]))
            for depth, v in enumerate(self.problem.order):
                part = slice(table_ptr[depth], table_ptr[depth + 1])
                if tabulated[v] and state.nodes["width"][v] > 0:
                    found[part] = state.cells["seen"][cells_of(state, v)]
                else:
                    found[part] = state.nodes["rows"][v]
            self._seen = rounds, found
        return self._seen[1]
