"""E[target] of one action at a time: its value, its standard deviation under the joint belief, and how many rows bear
on it (`policy.influences`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.mixture import TABLE
from dobandit.oracle.actions import Action, Actions
from dobandit.oracle.joint_pattern import JointPattern
from dobandit.oracle.listing import listing_of, write_row
from dobandit.policy.influences import bearing_rows, contrast_variances, influences_of
from dobandit.policy.model_engine import OracleMaker
from dobandit.policy.model_rounds import ModelPlan, score_actions
from dobandit.policy.posterior import count_patterns, patterns_of
from dobandit.policy.problem import Problem
from dobandit.policy.region import Bonus

Array = NDArray[np.float64]
_AT_ONCE = 1 << 21  # actions x states


class Moments(NamedTuple):
    """value: E[Y], perhaps outside of [0, 1].  sd: its standard deviation.  rows: that bear on it, at the node with the
    fewest."""

    value: float
    sd: float
    rows: float


class SingleAction:
    """The passes over one action, whichever: the list has room for every variable.

    value   the maker of the oracle whose estimate is told
    spread  the maker of the oracle whose standard deviation is
    """

    def __init__(self, problem: Problem, plan: ModelPlan, value: OracleMaker, spread: OracleMaker) -> None:
        self.problem, self.layout = problem, plan.layout
        room = np.zeros((1, len(problem.graph)))
        self._listing = listing_of(problem.order, Actions(room.astype(np.int32), room))
        self._value = plan._replace(oracle=value(problem, self._listing, None), index=Bonus(1.0))
        self._spread = self._value._replace(oracle=spread(problem, self._listing, None))
        self._seen: tuple[int, Array] | None = None
        self._told: tuple[tuple[int, bytes], dict[Action, Moments]] = ((-1, b""), {})

    def value(self, state: Any, action: Action, context: Array) -> float:
        """E[Y] alone."""
        write_row(self._listing, self.problem.flagged(action))
        score_actions(self._value, state, context, -1)
        return float(self._listing.values[0])

    def moments(self, state: Any, action: Action, context: Array) -> Moments:
        """All of it. Kept until the next round is taken in, or another context is asked for."""
        key = int(state.clock[0]), context.tobytes()
        if self._told[0] != key:
            self._told = key, {}
        known = self._told[1]
        if action not in known:
            known[action] = self._moments(state, action, context)
        return known[action]

    def _moments(self, state: Any, action: Action, context: Array) -> Moments:
        value = self.value(state, action, context)
        score_actions(self._spread, state, context, -1)
        middle = float(self._listing.values[0])
        score_actions(self._spread, state, context, 0)
        fixed = self.problem.flagged(action).over(context)
        return Moments(value, float(self._listing.values[0]) - middle, self._rows(state, fixed))

    def moments_of_many(
        self, state: Any, actions: Sequence[Action], context: Array, less: Action | None = None
    ) -> tuple[Array, Array, Array] | None:
        """(value, sd, rows) of many actions, a row each, whose common work is done once; None where that cannot be.

        less  an action: all is of what the others are ahead of it
        """
        patterns = self.patterns(state, context)
        if patterns is None:
            return None
        frontier, tables, order = patterns.frontier, patterns.tables, patterns.listing.order

        def passed(some: Sequence[Action]) -> tuple[Array, Array, Array]:
            held = np.array([self.problem.flagged(action).over(context)[order] for action in some])
            value, influence, _ = influences_of(frontier, tables.mean, held)
            return value, influence, bearing_rows(frontier.table_ptr, influence, self.seen(state))

        base = None if less is None else passed([less])
        found, size = [], max(_AT_ONCE // int(frontier.state_ptr[-1]), 1)
        for start in range(0, len(actions), size):
            value, influence, rows = passed(actions[start : start + size])
            if base is not None:
                value, influence, rows = value - base[0], influence - base[1], np.minimum(rows, base[2])
            variance = np.zeros(len(value))
            contrast_variances(self.layout, order, tables, state, influence, variance)
            found.append((value, np.sqrt(np.maximum(variance, 0.0)), rows))
        value, sd, rows = (np.concatenate(part) for part in zip(*found, strict=True))
        return value, sd, rows

    def _rows(self, state: Any, fixed: Array) -> float:
        oracle = self._spread.oracle
        if not isinstance(oracle, JointPattern):
            free = [v for v in self.problem.order if math.isnan(fixed[v])]
            return min((float(state.stats.rows[v]) for v in free), default=math.inf)
        for depth, v in enumerate(self.problem.order):
            if not math.isnan(fixed[v]):
                oracle.tables.influence[slice(*oracle.frontier.table_ptr[depth : depth + 2])] = 0.0
        return float(bearing_rows(oracle.frontier.table_ptr, oracle.tables.influence[None], self.seen(state))[0])

    def patterns(self, state: Any, context: Array) -> JointPattern | None:
        """The frontier with tables that say what is believed now; None where the graph is too wide, or all lines."""
        if not isinstance(self._spread.oracle, JointPattern):
            return None
        write_row(self._listing, Action())
        score_actions(self._spread, state, context, -1)
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
                parents = layout.parent[layout.ptr[v] : layout.ptr[v + 1]]
                if oracle.tables.mix.has[v, TABLE] and len(parents):
                    count_patterns(
                        state.patterns,
                        v,
                        len(parents),
                        patterns_of(parents),
                        found[part],
                        np.zeros(part.stop - part.start),
                    )
                else:
                    found[part] = state.stats.rows[v]
            self._seen = rounds, found
        return self._seen[1]
