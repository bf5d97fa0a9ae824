"""The engine of BGLM-OFU on models with any links: maximum likelihood and the per-pattern oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.mle import STATUS_WORDS, grown, rows_that_fit, start_patterns
from dobandit.model.link_kernels import link_arrays
from dobandit.model.links import identity
from dobandit.oracle.per_pattern import per_pattern
from dobandit.oracle.sets import SetTree
from dobandit.policy.base import Choice, Problem
from dobandit.policy.optimist import (
    GeneralPlan,
    GeneralState,
    LinearPlan,
    LinearState,
    propose_general,
    score_general,
    update_general_many,
)
from dobandit.policy.optimist_engine import OptimistEngine
from dobandit.policy.pending import expect_general

_FIRST_ROOM = 256  # patterns a node, for learners without a horizon; doubled when it runs out


class GeneralEngine(OptimistEngine):
    """Any links; needs 0/1 observations."""

    def __init__(self, problem: Problem, linear: LinearPlan, samples: int) -> None:
        super().__init__(problem, linear, 0.0)
        degrees = np.diff(linear.layout.ptr)
        nonlinear = np.array([False] + [link != identity for link in problem.links])
        rng = np.random.default_rng([problem.seed, 0xC0FFEE])
        self.plan = GeneralPlan(
            linear=linear,
            links=link_arrays(problem.links, [float(max(d, 1)) for d in degrees[1:]]),
            oracle=per_pattern(problem.graph, linear.tree, rng, samples),
            nonlinear=nonlinear,
        )
        room_at_first = problem.horizon + 1 if problem.horizon is not None else _FIRST_ROOM
        patterns = start_patterns(linear.layout, nonlinear, min(room_at_first, 1 << 20))
        self.state = GeneralState(self.state, patterns)

    def update(self, values: NDArray[np.float64], was_set: NDArray[np.bool_]) -> None:
        self.update_many(values[None, :], was_set[None, :])

    def update_many(self, values: NDArray[np.float64], was_set: NDArray[np.bool_]) -> None:
        done = 0
        while done < len(values):
            fitting = rows_that_fit(self.linear.layout, self.state.patterns)
            if fitting == 0:
                patterns = grown(self.linear.layout, self.state.patterns, self.plan.nonlinear)
                self.state = self.state._replace(patterns=patterns)
                continue
            end = min(done + fitting, len(values))
            update_general_many(self.plan, self.state, values[done:end], was_set[done:end])
            done = end

    @property
    def linear_state(self) -> LinearState:
        state: LinearState = self.state.linear
        return state

    def theta(self) -> NDArray[np.float64]:
        theta: NDArray[np.float64] = self.state.patterns.theta
        return theta

    def status(self, v: int) -> str:
        if not self.plan.nonlinear[v]:
            return super().status(v)
        return STATUS_WORDS[self.state.patterns.status[v]]

    def _choose(self, plan: Any, state: Any, uniform: float) -> Choice:
        return self._listed(plan.linear.tree, int(propose_general(plan, state, uniform)))

    def _score(self, plan: Any, state: Any, t: int) -> SetTree:
        score_general(plan, state, t)
        tree: SetTree = plan.linear.tree
        return tree

    def _with_tree(self, plan: Any, tree: SetTree) -> Any:
        return plan._replace(linear=plan.linear._replace(tree=tree))

    def _with_linear(self, linear: LinearState) -> Any:
        return self.state._replace(linear=linear)

    def _expect(self, linear: LinearState, sets: NDArray[np.int64], was_set: Any, means: Any, row: Any) -> None:
        squares = self.linear_state.stats.theta
        expect_general(self.plan, linear, self.theta(), squares, sets, was_set, means, row)
