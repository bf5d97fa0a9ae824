"""Engines of the optimistic policies: build the plan, hold the state, call the kernels."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError
from dobandit.estimation.mle import STATUS_WORDS, grown, is_full, start_patterns
from dobandit.estimation.statistics import layout_of, start_statistics
from dobandit.model.link_kernels import link_arrays
from dobandit.model.links import identity
from dobandit.oracle.boxed import boxed
from dobandit.oracle.closed_form import closed_form
from dobandit.oracle.optimistic_search import OptimisticSearch, optimistic_search
from dobandit.oracle.per_pattern import per_pattern
from dobandit.oracle.sets import MOST_SETS, set_tree
from dobandit.policy.base import Engine, Problem
from dobandit.policy.optimist import (
    BoxedPlan,
    GeneralPlan,
    GeneralState,
    LinearPlan,
    LinearState,
    SearchPlan,
    Settings,
    propose_boxed,
    propose_general,
    propose_linear,
    propose_search,
    score_boxed,
    score_general,
    score_linear,
    set_radii,
    update_general,
    update_linear,
)

_FIRST_ROOM = 256  # patterns a node, for learners without a horizon; doubled when it runs out


def linear_plan(
    problem: Problem, settings: Settings, thresholds: NDArray[np.float64] | None = None, singles: bool = False
) -> LinearPlan:
    """`singles`: list no sets but single variables, for engines that search."""
    graph = problem.graph
    layout, tree = layout_of(graph), set_tree(graph, min(problem.budget, 1) if singles else problem.budget)
    nodes = len(graph) + 1
    return LinearPlan(
        settings=settings,
        layout=layout,
        tree=tree,
        form=closed_form(graph, tree),
        rho=np.zeros(nodes),
        thresholds=np.zeros(nodes) if thresholds is None else thresholds,
    )


class OptimistEngine(Engine):
    """What the optimistic engines share: sums for every node, and regions around the estimates."""

    linear: LinearPlan
    linear_state: LinearState

    @property
    def rounds(self) -> int:
        return int(self.linear_state.clock[0])

    def theta(self) -> NDArray[np.float64]:
        """The estimate, one weight a slot of the graph's parents."""
        return self.linear_state.stats.theta

    def status(self, v: int) -> str:
        """What is known of node v's estimate."""
        d = int(self.linear.layout.ptr[v + 1] - self.linear.layout.ptr[v])
        return "solved" if self.linear_state.stats.rank[v] == d else "singular"

    def radii(self) -> NDArray[np.float64]:
        rho = np.zeros(len(self.linear.rho))
        set_radii(self.linear.settings, self.linear.layout.ptr, self.rounds, rho)
        return rho

    def plain_values(self) -> NDArray[np.float64]:
        """E[Y | do(set)] of every set under the estimate alone."""
        self._score(-1)
        return self.linear.tree.values.copy()

    def plain_best(self) -> list[int]:
        """The ids of the best set under the estimate alone; the first of equals."""
        best: list[int] = self.sets[int(np.argmax(self.plain_values()))].tolist()
        return best

    @abstractmethod
    def _score(self, t: int) -> None:
        """Fill the tree's values with the radii of round t (t < 0: without optimism)."""


class LinearEngine(OptimistEngine):
    """Identity links, regions without the box."""

    def __init__(self, plan: LinearPlan, ridge: float) -> None:
        self.plan = self.linear = plan
        self.state = self.linear_state = LinearState(start_statistics(plan.layout, ridge), np.zeros(2, dtype=np.int64))
        self.sets = plan.tree.sets

    def propose(self, uniforms: NDArray[np.float64]) -> int:
        return int(propose_linear(self.plan, self.state, uniforms[0]))

    def update(self, index: int, values: NDArray[np.float64], was_set: NDArray[np.bool_]) -> None:
        plan = self.linear
        update_linear(plan.settings.initial, plan.layout, plan.thresholds, self.linear_state, values, was_set)

    def _score(self, t: int) -> None:
        score_linear(self.plan, self.linear_state.stats, t)


class BoxedEngine(LinearEngine):
    """Identity links, regions within the box."""

    def __init__(self, plan: LinearPlan, ridge: float) -> None:
        super().__init__(plan, ridge)
        self.plan = BoxedPlan(plan, boxed(plan.layout))

    def propose(self, uniforms: NDArray[np.float64]) -> int:
        return int(propose_boxed(self.plan, self.state, uniforms[0]))

    def _score(self, t: int) -> None:
        score_boxed(self.plan, self.linear_state.stats, t)


class SearchEngine(LinearEngine):
    """Identity links, boxed regions, too many sets to list: branch and bound, or greedy; at most K variables."""

    def __init__(self, plan: LinearPlan, ridge: float, search: OptimisticSearch, most_sets: int, greedy: bool) -> None:
        super().__init__(plan, ridge)
        self.plan = SearchPlan(plan, boxed(plan.layout), search, most_sets, greedy)
        self.sets = np.zeros((0, 0), dtype=np.int32)

    def choose(self, uniforms: NDArray[np.float64]) -> list[int]:
        return self._found(propose_search(self.plan, self.state, uniforms[0], self.rounds))

    def propose(self, uniforms: NDArray[np.float64]) -> int:
        raise PolicyError("a search does not number its sets. Use choose.")

    def plain_best(self) -> list[int]:
        return self._found(propose_search(self.plan, self.state, 0.0, -1))

    def certificate(self) -> tuple[float, float, int]:
        """(value, bound, sets looked at) of the last choice; value = bound where it is proved (inf: greedy)."""
        value, bound, looked = self.plan.search.report.tolist()
        return value, bound, int(looked)

    def _found(self, count: int) -> list[int]:
        return sorted(self.plan.search.best[:count].tolist())


_REGIONS: dict[str, type[LinearEngine]] = {"closed-form": LinearEngine, "boxed": BoxedEngine}
REGIONS, ORACLES = tuple(_REGIONS), ("auto", "exhaustive", "branch-and-bound", "greedy")
_SETS_ONE_BY_ONE = 2_000  # boxed regions: beyond this a search is faster
_SETS_A_ROUND = 500  # looked at by a search before it settles for the best so far (see `certificate`)


def linear_engine(
    problem: Problem,
    settings: Settings,
    ridge: float,
    region: str,
    oracle: str,
    thresholds: NDArray[np.float64] | None = None,
) -> LinearEngine:
    """The engine for a linear problem: every set one by one, or a search."""
    useful = len(set(problem.graph.controllable) - set(problem.graph.irrelevant))
    count = math.comb(useful, min(problem.budget, useful))
    searched = oracle in ("branch-and-bound", "greedy")
    if searched or (oracle == "auto" and region == "boxed" and count > _SETS_ONE_BY_ONE):
        if region != "boxed":
            raise PolicyError(
                f"oracle={oracle!r} needs regions within the box, where a larger mean never hurts. Give region='boxed'."
            )
        plan = linear_plan(problem, settings, thresholds, singles=True)
        search = optimistic_search(problem.graph, plan.tree, problem.budget)
        return SearchEngine(plan, ridge, search, _SETS_A_ROUND, oracle == "greedy")
    if count > MOST_SETS:
        raise PolicyError(
            f"there are {count:,} sets to choose from, and they are looked at one by one only up to {MOST_SETS:,}. "
            "Give region='boxed' (branch and bound), or lower the budget."
        )
    return _REGIONS[region](linear_plan(problem, settings, thresholds), ridge)


class GeneralEngine(OptimistEngine):
    """Any links; needs 0/1 observations."""

    def __init__(self, plan: LinearPlan, problem: Problem, samples: int) -> None:
        degrees = np.diff(plan.layout.ptr)
        nonlinear = np.array([False] + [link != identity for link in problem.links])
        rng = np.random.default_rng([problem.seed, 0xC0FFEE])
        self.plan = GeneralPlan(
            linear=plan,
            links=link_arrays(problem.links, [float(max(d, 1)) for d in degrees[1:]]),
            oracle=per_pattern(problem.graph, plan.tree, rng, samples),
            nonlinear=nonlinear,
        )
        room = problem.horizon + 1 if problem.horizon is not None else _FIRST_ROOM
        self.linear, self.sets = plan, plan.tree.sets
        self.linear_state = LinearState(start_statistics(plan.layout, 0.0), np.zeros(2, dtype=np.int64))
        self.state = GeneralState(self.linear_state, start_patterns(plan.layout, nonlinear, min(room, 1 << 20)))

    def propose(self, uniforms: NDArray[np.float64]) -> int:
        return int(propose_general(self.plan, self.state, uniforms[0]))

    def update(self, index: int, values: NDArray[np.float64], was_set: NDArray[np.bool_]) -> None:
        if is_full(self.linear.layout, self.state.patterns):
            patterns = grown(self.linear.layout, self.state.patterns, self.plan.nonlinear)
            self.state = self.state._replace(patterns=patterns)
        update_general(self.plan, self.state, values, was_set)

    def theta(self) -> NDArray[np.float64]:
        theta: NDArray[np.float64] = self.state.patterns.theta
        return theta

    def status(self, v: int) -> str:
        if not self.plan.nonlinear[v]:
            return super().status(v)
        return STATUS_WORDS[self.state.patterns.status[v]]

    def _score(self, t: int) -> None:
        score_general(self.plan, self.state, t)
