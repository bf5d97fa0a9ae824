"""Engines of the optimistic policies on linear models: every set one by one, or a search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError
from dobandit.oracle.boxed import boxed
from dobandit.oracle.exhaustive import count_sets
from dobandit.oracle.optimistic_plan import optimistic_search
from dobandit.oracle.sets import MOST_SETS, TIE, SetTree
from dobandit.policy.base import Choice, Problem
from dobandit.policy.optimist import (
    BoxedPlan,
    LinearPlan,
    LinearState,
    SearchPlan,
    Settings,
    propose_boxed,
    propose_linear,
    propose_search,
    score_boxed,
    score_linear,
    update_linear,
    update_linear_many,
)
from dobandit.policy.optimist_engine import OptimistEngine, linear_plan
from dobandit.policy.pending import expect_linear


class LinearEngine(OptimistEngine):
    """Identity links, regions without the box."""

    def __init__(self, problem: Problem, linear: LinearPlan, ridge: float) -> None:
        super().__init__(problem, linear, ridge)
        self.plan: Any = linear

    def update(self, values: NDArray[np.float64], was_set: NDArray[np.bool_]) -> None:
        plan = self.linear
        update_linear(plan.settings.initial, plan.layout, plan.thresholds, self.state, values, was_set)

    def update_many(self, values: NDArray[np.float64], was_set: NDArray[np.bool_]) -> None:
        plan = self.linear
        update_linear_many(plan.settings.initial, plan.layout, plan.thresholds, self.state, values, was_set)

    def _choose(self, plan: Any, state: Any, uniform: float) -> Choice:
        return self._listed(plan.tree, int(propose_linear(plan, state, uniform)))

    def _score(self, plan: Any, state: Any, t: int) -> SetTree:
        score_linear(plan, state.stats, t)
        tree: SetTree = plan.tree
        return tree

    def _with_tree(self, plan: Any, tree: SetTree) -> Any:
        return plan._replace(tree=tree)

    def _with_linear(self, linear: LinearState) -> Any:
        return linear

    def _expect(self, linear: LinearState, sets: NDArray[np.int64], was_set: Any, means: Any, row: Any) -> None:
        varies = not self.problem.continuous
        expect_linear(self.linear, linear, self.theta(), sets, was_set, means, row, varies)


class BoxedEngine(LinearEngine):
    """Identity links, regions within the box."""

    def __init__(self, problem: Problem, linear: LinearPlan, ridge: float) -> None:
        super().__init__(problem, linear, ridge)
        self.plan = BoxedPlan(linear, boxed(linear.layout))

    def _choose(self, plan: Any, state: Any, uniform: float) -> Choice:
        return self._listed(plan.linear.tree, int(propose_boxed(plan, state, uniform)))

    def _score(self, plan: Any, state: Any, t: int) -> SetTree:
        score_boxed(BoxedPlan(plan.linear, plan.box), state.stats, t)
        tree: SetTree = plan.linear.tree
        return tree

    def _with_tree(self, plan: Any, tree: SetTree) -> Any:
        return plan._replace(linear=plan.linear._replace(tree=tree))


class SearchEngine(BoxedEngine):
    """Identity links, boxed regions, too many sets to list: branch and bound, or greedy; at most K variables."""

    def __init__(self, problem: Problem, linear: LinearPlan, ridge: float, most_sets: int, greedy: bool) -> None:
        super().__init__(problem, linear, ridge)
        search = optimistic_search(problem.graph, linear.tree, problem.rules)
        self.plan = SearchPlan(linear, boxed(linear.layout), search, most_sets, greedy)
        self.sets = np.zeros((0, 0), dtype=np.int32)
        self._report = search.report

    def certificate(self) -> tuple[float, float, int]:
        """(value, bound, sets looked at) of the last choice; value = bound where it is proved (inf: greedy)."""
        value, bound, looked = self._report.tolist()
        return value, bound, int(looked)

    def plain_best(self, available: tuple[str, ...] | None = None) -> list[int]:
        plan = self.plan_for(available)
        return self._found(plan, propose_search(plan, self.state, 0.0, -1))

    def _planned(self, problem: Problem) -> Any:
        return self.plan._replace(search=optimistic_search(problem.graph, self.linear.tree, problem.rules))

    def _choose(self, plan: Any, state: Any, uniform: float) -> Choice:
        count = propose_search(plan, state, uniform, int(state.clock[0]))
        if count < 0:
            return self._nothing()
        self._report = plan.search.report.copy()  # a plan's own is overwritten by every search, also by `plain_best`
        value, bound, _ = self.certificate()
        return Choice(self._found(plan, count), value, bound <= value + TIE * max(1.0, abs(value)))

    def _found(self, plan: Any, count: int) -> list[int]:
        return sorted({*plan.search.best[:count].tolist(), *self.problem.required_ids()})


_REGIONS: dict[str, type[LinearEngine]] = {"closed-form": LinearEngine, "boxed": BoxedEngine}
REGIONS, ORACLES = tuple(_REGIONS), ("auto", "exhaustive", "branch-and-bound", "greedy")
_SETS_ONE_BY_ONE = 2_000  # boxed regions: beyond this a search is faster
_SETS_A_ROUND = 500  # looked at by a search before it settles for the best so far (see `certificate`)
_WORK_A_ROUND = 5e7  # multiplications or so: fewer sets where a node with many parents makes each of them dear


def sets_a_round(plan: LinearPlan) -> int:
    degrees = np.diff(plan.layout.ptr)[plan.tree.order].astype(float)
    return min(_SETS_A_ROUND, max(20, int(_WORK_A_ROUND / max(float((degrees**3).sum()), 1.0))))


def linear_engine(
    problem: Problem,
    settings: Settings,
    ridge: float,
    region: str,
    oracle: str,
    thresholds: NDArray[np.float64] | None = None,
) -> LinearEngine:
    """The engine for a linear problem: every set one by one, or a search."""
    irrelevant = set(problem.graph.irrelevant)
    useful = tuple(name for name in problem.rules.candidates(problem.graph) if name not in irrelevant)
    count = count_sets(problem.rules, useful)
    searched = oracle in ("branch-and-bound", "greedy")
    if searched or (oracle == "auto" and region == "boxed" and count > _SETS_ONE_BY_ONE):
        if region != "boxed":
            raise PolicyError(
                f"oracle={oracle!r} needs regions within the box, where a larger mean never hurts. Give region='boxed'."
            )
        plan = linear_plan(problem, settings, thresholds, listed=False)
        return SearchEngine(problem, plan, ridge, sets_a_round(plan), oracle == "greedy")
    if count > MOST_SETS:
        raise PolicyError(
            f"there are {count:,} sets to choose from, and they are looked at one by one only up to {MOST_SETS:,}. "
            "Give region='boxed' (branch and bound), or lower the budget."
        )
    return _REGIONS[region](problem, linear_plan(problem, settings, thresholds), ridge)
