"""Beliefs: what a policy that keeps a model knows of each node, and an interval for E[target | do(...)] from the nodes'
confidence regions. The only place that knows offsets into flat arrays.

Weights are nonnegative, so E[target] grows with every conditional mean. Upwards and downwards each node takes, given
its parents, the largest and the smallest value that its region allows:
linear links    e . theta -+ rho ||e||_{M^+} with e the parents' lowest (highest) means, within [0, 1];
any link        f(v . theta -+ rho ||v||_{M^+}) for each parent pattern v, and a pass over the frontier.
If every region holds its true weights, the interval holds the true mean. Directions that no row has shown are
unbounded by the data, whatever prior or radius a policy has: there a node's mean runs from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import Belief, Layout
from dobandit.estimation.estimators import Estimator, begins_with_prior, estimate_of, status_of, unseen_directions
from dobandit.estimation.mixture import form_in_words, is_curve
from dobandit.kernels import kernel
from dobandit.model.links import Link
from dobandit.oracle.frontier import frontier_of
from dobandit.policy.problem import Problem
from dobandit.policy.radii import STANDARD_ERRORS, set_radii

Array = NDArray[np.float64]
_WAYS = (-1.0, 0.0, 1.0)  # down, the estimate, up


class NodeBelief(NamedTuple):
    """A node's weights and how well they are known: {theta: ||theta - estimate||_M <= radius}.

    parents  ids, 0 for the constant; below 0: whether that variable was set (`policy.revising`)
    theta    the weights: of the curve where one was promised, else of the straight line
    gram     M (d, d), the sums of rows;  inverse: M^+, or the covariance of the curve's weights
    null     the projector on the directions that no row has shown, a prior being none
    rows     rounds that said something about the node
    form     what the node looks like by the data, in words; "" where that was promised
    status   "solved", "singular" (some combination of parents was never seen) or "separable" (the data alone would ask
             for infinite weights)
    """

    parents: list[int]
    theta: Array
    gram: Array
    inverse: Array
    null: Array
    rows: int
    status: str
    radius: float
    link: Link
    form: str = ""


class Beliefs:
    """What is known of every node."""

    def __init__(
        self,
        estimator: Estimator,
        layout: Layout,
        state: Belief,
        reach: NDArray[Any],
        links: tuple[Link, ...],
        flags: Iterable[tuple[int, int]] = (),
    ) -> None:
        self.layout, self.links, self._flags = layout, links, dict(flags)
        self._estimator, self.state, self._reach = estimator, state, reach

    @cached_property
    def radii(self) -> Array:
        """How far each node's region reaches, by id; worked out when they are first asked for."""
        rho = np.zeros(len(self.layout.ptr) - 1)
        grows = self._reach["kind"][0] == STANDARD_ERRORS  # optimism that grows is for choosing
        set_radii(self._reach, self.state.nodes, 0 if grows else int(self.state.clock[0]), True, rho)
        return rho

    @property
    def theta(self) -> Array:
        """Every weight, in the order of the graph's slots."""
        return estimate_of(self._estimator, self.state)

    def unseen(self, nodes: Iterable[int]) -> Array:
        """The projectors on the directions that no row of these nodes has shown, flat, for compiled passes."""
        if not begins_with_prior(self._estimator):
            return self.state.pairs["null"]
        found, square = np.zeros(len(self.state.pairs["null"])), self.layout.square
        for v in nodes:
            part = slice(int(square[v]), int(square[v + 1]))
            found[part] = unseen_directions(self._estimator, self.layout, self.state, v).ravel()
        return found

    def node(self, v: int) -> NodeBelief:
        """What is known of node v."""
        layout, state = self.layout, self.state
        slots = slice(int(layout.ptr[v]), int(layout.ptr[v + 1]))
        square = slice(int(layout.square[v]), int(layout.square[v + 1]))
        d = slots.stop - slots.start
        unseen = unseen_directions(self._estimator, layout, self.state, v)
        theta, covariance = self.theta, state.pairs["inverse"]
        if is_curve(self._estimator, state, v):
            theta, covariance = state.slots["curve"], state.pairs["covariance"]
        return NodeBelief(
            [-self._flags.get(p, -p) for p in layout.parent[slots].tolist()],
            theta[slots],
            state.pairs["gram"][square].reshape(d, d),
            covariance[square].reshape(d, d),
            unseen,
            int(state.nodes["rows"][v]),
            status_of(self._estimator, self.state, v, unseen),
            float(self.radii[v]),
            self.links[v - 1],
            form_in_words(self._estimator, self.state, v),
        )


def target_interval(beliefs: Beliefs, problem: Problem, fixed: Array) -> tuple[float, float, float]:
    """(low, estimate, high) of E[target] where `fixed` is set or known (NaN: free)."""
    target = problem.graph.arrays.target
    if not math.isnan(fixed[target]):
        low = value = high = float(fixed[target])
    else:
        low, value, high = (_linear if problem.is_linear else _any_link)(beliefs, problem, fixed)
    # With few rows an estimate can lie outside [0, 1], and the recursions then cross: the interval holds all of them.
    return min(low, value, high), value, max(low, value, high)


def _linear(beliefs: Beliefs, problem: Problem, fixed: Array) -> list[float]:
    state, order = beliefs.state, np.array(problem.order, dtype=np.int64)
    unseen = beliefs.unseen(v for v in problem.order if math.isnan(fixed[v]))
    theta, null, out = np.ascontiguousarray(beliefs.theta), np.ascontiguousarray(unseen), np.zeros(3)
    arrays = state.nodes, state.slots, state.pairs, order, theta, null
    linear_passes(*arrays, fixed, beliefs.radii, np.ones(len(fixed)), out)
    return list(out.tolist())


@kernel
def linear_passes(
    nodes: Any, slots: Any, pairs: Any, order: Any, theta: Any, null: Any, fixed: Any, rho: Any, e: Any, out: Any
) -> None:
    """out = E[target] with every node, given its parents' means e, at the lowest, the estimate and the highest."""
    for way in range(3):
        for k in range(len(order)):
            v = order[k]
            if not math.isnan(fixed[v]):
                e[v] = fixed[v]
                continue
            start, at, d = nodes[v]["start"], nodes[v]["square"], nodes[v]["width"]
            mean = width = unseen = 0.0
            for i in range(d):
                x = e[slots[start + i]["parent"]]
                mean += x * theta[start + i]
                if way != 1:
                    for j in range(d):
                        y = e[slots[start + j]["parent"]]
                        width += x * pairs[at + i * d + j]["inverse"] * y
                        unseen += x * null[at + i * d + j] * y
            if unseen > 1e-9:
                mean = way / 2.0
            else:
                mean += (way - 1) * rho[v] * math.sqrt(max(width, 0.0))
            e[v] = min(max(mean, 0.0), 1.0)
        out[way] = e[order[len(order) - 1]]


def _any_link(beliefs: Beliefs, problem: Problem, fixed: Array) -> list[float]:
    order = np.array(problem.order, dtype=np.int64)
    frontier = frontier_of(problem.graph, order)
    assert frontier is not None  # nobody keeps such a model of a wider graph
    steps, value = frontier.steps[0], np.array([[0.0], [1.0]])  # of the target at 0 and at 1
    for depth, v in reversed(list(enumerate(problem.order))):
        states = frontier.states[steps["state"][depth] : steps["state"][depth + 1]]
        if math.isnan(fixed[v]):
            node = beliefs.node(v)
            p = _probabilities(node, patterns_of(np.array(node.parents)))[:, states["pattern"]]
        else:
            p = np.full((len(_WAYS), 1), fixed[v])
        zero, one = value if v == problem.order[-1] else (value[:, states[name]] for name in ("zero", "one"))
        value = p * one + (1.0 - p) * zero
    return list(value[:, 0].tolist())


def patterns_of(parents: NDArray[Any]) -> Array:
    """Every pattern of a node's parents, bit j that of the j-th that is not the constant."""
    first = 1 if len(parents) and parents[0] == 0 else 0
    bits = len(parents) - first
    rows = np.ones((1 << bits, len(parents)))
    rows[:, first:] = (np.arange(1 << bits)[:, None] >> np.arange(bits)) & 1
    return rows


def _probabilities(node: NodeBelief, rows: Array) -> Array:
    """f(v . theta + way rho ||v||_{M^+}) of each row v, within [0, 1] and the link's domain; 0 or 1 where the row
    has a part that was never seen, or the data ask for infinite weights, which bound nothing."""
    width = np.sqrt(np.maximum(np.einsum("...i,ij,...j->...", rows, node.inverse, rows), 0.0))
    unseen = (np.einsum("...i,ij,...j->...", rows, node.null, rows) > 1e-9) | (node.status == "separable")
    ends = []
    for way in _WAYS:
        sums = np.asarray(rows @ node.theta + way * node.radius * width, dtype=float)
        sums = np.where(unseen, way * math.inf, sums) if way else sums
        inside = np.clip(np.nan_to_num(sums, posinf=1e6, neginf=-1e6), *node.link.domain)
        p = np.clip(np.asarray(node.link.value(inside), dtype=float), 0.0, 1.0)
        ends.append(np.where(np.isposinf(sums), 1.0, np.where(np.isneginf(sums), 0.0, p)))
    return np.array(ends)
