"""E[target] of actions, and how far they are apart: the value, its standard deviation under the joint belief, and how
many rows bear on it; and the influences that all three rest on.

A cell is a node's parent pattern, in the frontier's numbering.  p(c): the estimate of the node's probability in it.
visits(S, c): how likely a round of S visits the cell.  influence(S, c) = dE[Y | do(S)] / dp(c): visits times how much
better it is from there on if the node is 1. Both are 0 where S, or the context, sets the node.
n(c): rows that saw the cell.  The rows that bear on E[Y] at a node are sum |D| / sum (|D| / (n + 1/2)), D the
influence: where most of it is on cells that were never seen, next to none, however many rows saw the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import Belief, cells_of
from dobandit.estimation.mixture import TABLE, members_of
from dobandit.kernels import kernel
from dobandit.oracle.action_list import action_list, write_row
from dobandit.oracle.actions import Action, Actions, actions_of
from dobandit.oracle.exact_pass import ExactPass, exact_index
from dobandit.oracle.node_tables import NodeTables, fill_tables, node_variances
from dobandit.policy.evaluators import EvaluatorMaker
from dobandit.policy.problem import Problem

Array = NDArray[np.float64]
_LITTLE = 1e-3  # influence of a node that hardly matters
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

    def of(self, state: Belief, actions: Sequence[Action], context: Array, less: Action | None = None) -> Moments:
        """Of each action; less: of what it is ahead of this one."""
        patterns = self.patterns(state)
        if patterns is None:
            value, sd, rows = np.array([self._one(state, action, context) for action in actions]).reshape(-1, 3).T
            if less is None:
                return Moments(value, sd, rows)
            other, its_sd, its_rows = self._one(state, less, context)
            return Moments(value - other, np.hypot(sd, its_sd), np.minimum(rows, its_rows))
        size = max(_AT_ONCE // len(patterns.states), 1)
        parts = [
            self._passed(patterns, state, actions[start : start + size], context, less)
            for start in range(0, len(actions), size)
        ]
        return Moments(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _passed(
        self, patterns: ExactPass, state: Belief, actions: Sequence[Action], context: Array, less: Action | None
    ) -> Moments:
        tables, some = patterns.tables, [*actions, *([] if less is None else [less])]
        value, influence, _ = self.influences(patterns, some, context)
        rows = bearing_rows(tables, influence, self.seen(state))
        if less is not None:
            value, rows = value[:-1] - value[-1], np.minimum(rows[:-1], rows[-1])
            influence = influence[:-1] - influence[-1]
        variance = contrast_variances(state, tables, influence)
        return Moments(value, np.sqrt(np.maximum(variance, 0.0)), rows)

    def influences(self, patterns: ExactPass, actions: Sequence[Action], context: Array) -> Influences:
        """What each cell does to each action."""
        held = np.array([self.problem.flagged(action).over(context)[patterns.actions.order] for action in actions])
        regimes = self.problem.regimes_of(actions_of(actions))
        return influences_of(patterns.steps, patterns.states, patterns.tables.mean, held, regimes)

    def _one(self, state: Belief, action: Action, context: Array) -> tuple[float, float, float]:
        """The value of one evaluator, and the standard deviation of the other."""
        write_row(self._row, self.problem.flagged(action), int(self.problem.regimes_of(actions_of([action]))[0]))
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
        fill_tables(state, plan.tables)
        return plan

    def seen(self, state: Belief) -> Array:
        """How many rows saw each parent pattern, in the frontier's numbering; of a node whose link is promised all of
        its rows bear on every pattern."""
        tables, tabulated = self._spread.plan.tables, members_of(state)[:, TABLE]
        rows = np.zeros(len(tables.mean))
        for v, first, patterns in tables.tables.tolist():
            part = slice(first, first + patterns)
            if tabulated[v] and state.nodes["width"][v] > 0:
                rows[part] = state.cells["seen"][cells_of(state, v)]
            else:
                rows[part] = state.nodes["rows"][v]
        return rows


class Influences(NamedTuple):
    """A row per action."""

    value: Array  # (actions,) E[Y]
    influence: Array  # (actions, cells)
    visits: Array  # (actions, cells)


def influences_of(
    steps: NDArray[Any], states: NDArray[Any], p: Array, held: Array, regimes: NDArray[np.int64]
) -> Influences:
    """By a pass forwards and one backwards for each action.

    steps, states  the frontier
    held           (actions, depths) what each node is set to; NaN: free
    regimes        (actions,)
    """
    value, (influence, visits) = np.zeros(len(held)), np.zeros((2, len(held), len(p)))
    there, worth = np.zeros((2, len(states)))
    walk_cells(steps, states, p, held, regimes, there, worth, value, influence, visits)
    return Influences(value, influence, visits)


@kernel
def walk_cells(
    regimes_steps: Any, states: Any, p: Any, held: Any, regimes: Any, there: Any, worth: Any, value: Any,
    influence: Any, visits: Any,
) -> None:  # fmt: skip
    """there: how likely a state is reached; below 0: never, for what is held, and it is passed over.  worth: E[Y] from
    there on."""
    depths = held.shape[1]
    for i in range(len(held)):
        steps = regimes_steps[regimes[i]]
        there[:] = -1.0
        there[steps[0]["state"]] = 1.0
        for depth in range(depths):
            after, base, known = steps[depth + 1]["state"], steps[depth]["table"], held[i, depth]
            free = math.isnan(known)
            for s in range(steps[depth]["state"], after):
                if there[s] < 0.0:
                    continue
                cell = base + states[s]["pattern"]
                q = p[cell] if free else known
                visits[i, cell] += there[s] if free else 0.0
                if depth < depths - 1 and (free or known > 0.0):
                    one = after + states[s]["one"]
                    there[one] = max(there[one], 0.0) + there[s] * q
                if depth < depths - 1 and (free or known < 1.0):
                    zero = after + states[s]["zero"]
                    there[zero] = max(there[zero], 0.0) + there[s] * (1.0 - q)
        for depth in range(depths - 1, -1, -1):
            after, base, known = steps[depth + 1]["state"], steps[depth]["table"], held[i, depth]
            free = math.isnan(known)
            for s in range(steps[depth]["state"], after):
                if there[s] < 0.0:
                    continue
                cell = base + states[s]["pattern"]
                q = p[cell] if free else known
                if_one = 1.0 if depth == depths - 1 else worth[after + states[s]["one"]]
                if_zero = 0.0 if depth == depths - 1 else worth[after + states[s]["zero"]]
                worth[s] = q * if_one + (1.0 - q) * if_zero
                influence[i, cell] += there[s] * (if_one - if_zero) if free else 0.0
        value[i] = worth[steps[0]["state"]]


def bearing_rows(tables: NodeTables, influence: Array, seen: Array) -> Array:
    """(actions,) how many rows bear on E[Y], at the node with the fewest."""
    size, rare = np.abs(influence), np.abs(influence) / (seen + 0.5)
    total, weighed = (np.add.reduceat(part, tables.tables["first"], axis=1) for part in (size, rare))
    rows = np.divide(total, weighed, out=np.full(total.shape, np.inf), where=total > _LITTLE)
    return rows.min(axis=1)


def contrast_variances(belief: Belief, tables: NodeTables, influence: Array) -> Array:
    """(rows,) the variance of what the influences of each row make of the cells' errors."""
    columns, by_cell = len(influence), np.ascontiguousarray(influence.T)
    along, sums, total = np.zeros((len(tables.row), columns)), np.zeros((3, columns)), np.zeros(columns)
    for node, first, patterns in tables.tables.tolist():
        node_variances(
            belief.nodes, belief.slots, belief.pairs, belief.members, tables.mean, tables.patterns, by_cell, along,
            sums, node, first, patterns, first,
        )  # fmt: skip
        total += sums[2]
    return total
