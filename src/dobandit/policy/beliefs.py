"""Beliefs: what a policy that keeps a model knows of each node. The only place that knows offsets into flat arrays."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.belief import Belief, Layout
from dobandit.estimation.estimators import Estimator, begins_with_prior, estimate_of, status_of, unseen_directions
from dobandit.estimation.mixture import form_in_words, is_curve
from dobandit.model.links import Link
from dobandit.policy.radii import STANDARD_ERRORS, set_radii

Array = NDArray[np.float64]


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
