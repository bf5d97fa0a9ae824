"""E[target] of many actions under draws of all that is not known: how likely an action is to be the best, and how far
two actions can be apart, in which what they share cancels.

D: draws.  Each draw gives every node one of its members, by their weights, and that member's parameters:
straight   theta ~ N(estimate, inverse of M), the probabilities cut to [0, 1]
curved     theta ~ N(maximum a posteriori, inverse Hessian)
table      each cell ~ Beta(s + k p + h / 2, c - s + k (1 - p) + h / 2): c rows, s of them ones, k = BACK imagined
           rows with the probability p that the draw gives another member, h = EVEN with 1/2
E[Y | do(S)] of every draw is exact: a pass over the frontier, or over means where everything is a line.
The random numbers are a function of the problem's seed and the number of rounds, so that asking twice answers the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import Belief, Layout, cells_of
from dobandit.estimation.estimators import MIXED, Estimator
from dobandit.estimation.mixture import BACK, CURVED, EVEN, OWN_LINES, STRAIGHT, TABLE, members_of, weights_of
from dobandit.kernels import kernel
from dobandit.model.links import auto, logistic
from dobandit.oracle.action_list import held_at
from dobandit.oracle.actions import Action, actions_of
from dobandit.oracle.exact_pass import expect_actions
from dobandit.oracle.frontier import columns_for, patterns_in
from dobandit.policy.answers import Chance
from dobandit.policy.beliefs import patterns_of
from dobandit.policy.problem import Problem

Array = NDArray[np.float64]
DRAWS = 400
MOST_COMPARED = 200  # actions
_FEWEST_COMPARED = 20
_MOST_WORK = 1e8  # draws x actions x states
_MOST_STATES = 1 << 14
_TIE = 1e-9
_STREAM = 0xBE57  # keeps these random numbers apart from those that choose


class Posterior:
    """Draws for one problem. Asking changes nothing of the state."""

    def __init__(self, problem: Problem, estimator: Estimator, layout: Layout) -> None:
        self.problem, self.layout = problem, layout
        self._drawn: tuple[int, Array] | None = None
        self.frontier = problem.frontier(_MOST_STATES) if estimator.kind == MIXED else None

    @property
    def possible(self) -> bool:
        """Whether E[Y] of a draw can be computed: a frontier that is not too wide, or lines."""
        return self.frontier is not None or self.problem.is_linear

    @property
    def most_compared(self) -> int:
        """How many actions are worth the work."""
        states = len(self.problem.order) if self.frontier is None else len(self.frontier.states)
        return int(min(max(_MOST_WORK / (DRAWS * states), _FEWEST_COMPARED), MOST_COMPARED))

    def chance(self, state: Belief, action: Action, others: list[Action], context: Array) -> Chance:
        """How often `action` is best among all, equals in equal parts, and how much is lost by it on average."""
        rows = [action, *(other for other in others if other != action)]
        values = self.values(state, rows, context)
        best = values.max(axis=1)
        equals = values >= best[:, None] - _TIE
        return Chance(float(np.mean(equals[:, 0] / equals.sum(axis=1))), float(np.mean(best - values[:, 0])))

    def spread_of_differences(self, state: Belief, action: Action, others: Sequence[Action], context: Array) -> Array:
        """(others,) the standard deviation of E[Y | do(other)] - E[Y | do(action)]."""
        values = self.values(state, [action, *others], context)
        return np.std(values[:, 1:] - values[:, :1], axis=0)

    def values(self, state: Belief, actions: Sequence[Action], context: Array) -> Array:
        """(DRAWS, actions) E[Y] of each action under each draw."""
        rows = list(dict.fromkeys(actions))
        listed = self.problem.listed(actions_of(rows))
        drawn, out = self.drawn(state), np.zeros((DRAWS, len(rows)))
        if self.frontier is None:
            means = np.zeros(len(context))
            draw_means(state.nodes, state.slots, listed.order, listed.held, drawn, context, means, out)
        else:
            states = len(self.frontier.states)
            columns = columns_for(len(rows), states)
            known, value = np.full((len(listed.order), columns), math.nan), np.zeros((states, columns))
            steps, table_states, _ = self.frontier
            draw_values(steps, table_states, listed.held, listed.scores, drawn, context, known, value, out)
        row_of = {listed.actions.row(i): i for i in range(len(rows))}  # a list may be in another order
        return out[:, [row_of[action] for action in actions]]

    def drawn(self, state: Belief) -> Array:
        """A row per draw: the probability of every pattern in the frontier's numbering, or all weights where everything
        is a line. Kept until the next round is taken in."""
        rounds = int(state.clock[0])
        if self._drawn is None or self._drawn[0] != rounds:
            rng = np.random.default_rng([self.problem.seed, rounds, _STREAM])
            draw = self._weights if self.frontier is None else self._tables
            self._drawn = rounds, draw(state, rng, DRAWS)
        return self._drawn[1]

    def _weights(self, state: Belief, rng: np.random.Generator, draws: int) -> Array:
        """(draws, weights) where everything is a line."""
        theta = np.zeros((draws, len(state.slots["line"])))
        for v in self.problem.order:
            part = slice(self.layout.ptr[v], self.layout.ptr[v + 1])
            theta[:, part] = _normal(rng, draws, state.slots["line"][part], self._square(state.pairs["inverse"], v))
        return theta

    def _tables(self, state: Belief, rng: np.random.Generator, draws: int) -> Array:
        """(draws, patterns) the probability of every pattern of every node, in the frontier's numbering."""
        frontier: Any = self.frontier
        tables = np.zeros((draws, patterns_in(frontier.tables)))
        for v, first, patterns in frontier.tables.tolist():
            if self.layout.ptr[v + 1] > self.layout.ptr[v]:  # else it cannot happen by itself
                tables[:, first : first + patterns] = self._node(state, rng, draws, v)
        return tables

    def _node(self, state: Belief, rng: np.random.Generator, draws: int, v: int) -> Array:
        layout, has = self.layout, members_of(state)
        part = slice(layout.ptr[v], layout.ptr[v + 1])
        rows = patterns_of(layout.parent[part])
        said: dict[int, Array] = {}
        if has[v, STRAIGHT]:
            theta = _normal(rng, draws, state.slots["line"][part], self._square(state.pairs["inverse"], v))
            said[STRAIGHT] = np.clip(theta @ rows.T, 0.0, 1.0)
        if has[v, CURVED]:
            theta = _normal(rng, draws, state.slots["curve"][part], self._square(state.pairs["covariance"], v))
            link = self.problem.links[v - 1]
            said[CURVED] = np.clip((logistic() if link == auto else link).probability(theta @ rows.T), 0.0, 1.0)
        if has[v, OWN_LINES]:
            said[OWN_LINES] = self._own_lines(state, rng, draws, v, rows)
        weight = weights_of(state)[v]
        if has[v, TABLE]:
            lines = np.array([weight[k] if k in said else 0.0 for k in range(len(weight))])
            lines = lines if lines.sum() > 1e-12 else np.array([float(k in said) for k in range(len(weight))])
            prior = _picked(rng, said, lines) if lines.sum() > 0.0 else np.full((draws, len(rows)), 0.5)
            prior = np.clip(prior, 1e-3, 1.0 - 1e-3)
            cells = cells_of(state, v)
            seen, ones = state.cells["seen"][cells], state.cells["total"][cells]
            one, zero = BACK * prior + 0.5 * EVEN, BACK * (1.0 - prior) + 0.5 * EVEN
            said[TABLE] = rng.beta(ones + one, seen - ones + zero)
        return _picked(rng, said, weight)

    def _own_lines(self, state: Belief, rng: np.random.Generator, draws: int, v: int, rows: Array) -> Array:
        """(draws, patterns) a straight line in each segment."""
        out, d = np.zeros((draws, len(rows))), rows.shape[1]
        bit = state.slots["segment"][self.layout.ptr[v] : self.layout.ptr[v + 1]]
        of = state.nodes["segments"][v] + (rows[:, bit >= 0] @ (1 << bit[bit >= 0])).astype(np.int64)
        for line in np.unique(of):
            start, at = int(state.nodes["start"][line]), int(state.nodes["square"][line])
            inverse = state.pairs["inverse"][at : at + d * d].reshape(d, d)
            theta = _normal(rng, draws, state.slots["line"][start : start + d], inverse)
            out[:, of == line] = np.clip(theta @ rows[of == line].T, 0.0, 1.0)
        return out

    def _square(self, flat: Array, v: int) -> Array:
        size, at = int(self.layout.ptr[v + 1] - self.layout.ptr[v]), int(self.layout.square[v])
        return flat[at : at + size * size].reshape(size, size)


def _picked(rng: np.random.Generator, said: dict[int, Array], weight: Array) -> Array:
    """Of each draw the rows of one member, picked by the weights."""
    kinds = sorted(k for k in said if k < len(weight))
    shares = np.cumsum([weight[k] for k in kinds])
    uniform = rng.random(len(next(iter(said.values())))) * shares[-1]
    which = np.minimum(np.searchsorted(shares, uniform, side="right"), len(kinds) - 1)
    return np.stack([said[k] for k in kinds])[which, np.arange(len(which))]


def _normal(rng: np.random.Generator, draws: int, mean: Array, covariance: Array) -> Array:
    """By eigenvalues: rounding may leave a covariance with one that is slightly below 0."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    return mean + rng.standard_normal((draws, len(mean))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T


@kernel
def draw_values(
    steps: Any, states: Any, held: Any, scores: Any, tables: Any, fixed: Any, known: Any, value: Any, out: Any
) -> None:
    """out[d, i] = E[Y] of action i under draw d; tables[d]: the probability of every pattern."""
    for d in range(len(out)):
        expect_actions(steps, states, held, scores, tables[d], tables[d], fixed, known, value, True, out[d])


@kernel
def draw_means(nodes: Any, slots: Any, order: Any, held: Any, theta: Any, fixed: Any, means: Any, out: Any) -> None:
    """out[d, i] = E[Y] of action i under draw d, where everything is a line."""
    means[0] = 1.0
    for i in range(out.shape[1]):
        for d in range(out.shape[0]):
            at = 0
            for depth in range(len(order)):
                v = order[depth]
                means[v], at = held_at(held, i, depth, at, fixed[v])
                if math.isnan(means[v]):
                    total = 0.0
                    for slot in range(nodes[v]["start"], nodes[v]["start"] + nodes[v]["width"]):
                        total += theta[d, slot] * means[slots[slot]["parent"]]
                    means[v] = min(max(total, 0.0), 1.0)
            out[d, i] = means[order[len(order) - 1]]
