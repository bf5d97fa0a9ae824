"""Engines of the optimistic policies: what they share. They build the plan, hold the state, call the kernels."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.statistics import layout_of, start_statistics
from dobandit.oracle.closed_form import closed_form
from dobandit.oracle.sets import SetTree, set_tree, tree_of_sets
from dobandit.policy.base import Choice, Engine, Problem, copied
from dobandit.policy.optimist import (
    LinearPlan,
    LinearState,
    Settings,
    set_radii,
)

_KEPT_PLANS = 32  # lists of sets for different available variables


def linear_plan(
    problem: Problem, settings: Settings, thresholds: NDArray[np.float64] | None = None, listed: bool = True
) -> LinearPlan:
    """`listed`: with the list of all sets; engines that search need none."""
    graph = problem.graph
    layout, tree = layout_of(graph), set_tree(graph, problem.rules if listed else 0)
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

    def __init__(self, problem: Problem, linear: LinearPlan, ridge: float) -> None:
        self.problem, self.linear, self.sets, self.ridge = problem, linear, linear.tree.sets, ridge
        self.state = LinearState(start_statistics(linear.layout, ridge), np.zeros(2, dtype=np.int64))
        self._plans: dict[tuple[str, ...], Any] = {}
        self._expected: tuple[int, list[tuple[int, ...]], LinearState | None] = (0, [], None)

    @property
    def linear_state(self) -> LinearState:
        """The sums."""
        state: LinearState = self.state
        return state

    @property
    def rounds(self) -> int:
        return int(self.linear_state.clock[0])

    def theta(self) -> NDArray[np.float64]:
        """The estimate, one weight a slot of the graph's parents."""
        return self.linear_state.stats.theta

    def status(self, v: int) -> str:
        """What is known of node v's estimate: whether the data alone, without the ridge, tell its weights apart."""
        layout, stats = self.linear.layout, self.linear_state.stats
        d, at = int(layout.ptr[v + 1] - layout.ptr[v]), int(layout.square[v])
        data = stats.gram[at : at + d * d].reshape(d, d) - self.ridge * np.eye(d)
        return "solved" if d == 0 or np.linalg.matrix_rank(data, hermitian=True) == d else "singular"

    def radii(self) -> NDArray[np.float64]:
        rho = np.zeros(len(self.linear.rho))
        set_radii(self.linear.settings, self.linear.layout.ptr, self.rounds, rho)
        return rho

    def choose(
        self,
        uniforms: NDArray[np.float64],
        available: tuple[str, ...] | None = None,
        pending: Sequence[Sequence[int]] = (),
    ) -> Choice:
        state = self.expecting(pending) if pending else self.state
        return self._choose(self.plan_for(available), state, float(uniforms[0]))

    def plain_best(self, available: tuple[str, ...] | None = None) -> list[int]:
        """The ids of the best set under the estimate alone; the first of equals."""
        plan = self.plan_for(available)
        tree = self._score(plan, self.state, -1)
        return ids_of(tree.sets[int(np.argmax(tree.values))])

    def optimistic_value(self, ids: Sequence[int], pending: Sequence[Sequence[int]] = ()) -> float:
        """The value of one set with today's optimism."""
        order = self.linear.tree.order.tolist()
        tree = tree_of_sets(order, np.array([sorted(ids)], dtype=np.int32).reshape(1, len(ids)))
        state = self.expecting(pending) if pending else self.state
        t = self.rounds + len(pending)
        return float(self._score(self._with_tree(self.plan, tree), state, t).values[0])

    def expecting(self, pending: Sequence[Sequence[int]]) -> Any:
        """The state with what the pending sets are expected to teach. To be read at once: the next call changes it.

        Kept from call to call while no round was told and sets were only added, so that many asks in a row are quick;
        every set takes the same steps either way, so that the result is the same, bit for bit.
        """
        rounds, known, linear = self._expected
        if linear is None or rounds != self.rounds or known != [tuple(ids) for ids in pending[: len(known)]]:
            known, linear = [], copied(self.linear_state)
        if new := [tuple(ids) for ids in pending[len(known) :]]:
            width, nodes = max(map(len, new)), len(self.linear.rho)
            sets = np.array([(*ids, *[0] * (width - len(ids))) for ids in new], dtype=np.int64).reshape(len(new), width)
            scratch = np.zeros(nodes, dtype=np.bool_), np.ones(nodes), np.zeros(len(linear.stats.row))
            self._expect(linear, sets, *scratch)
        self._expected = (self.rounds, known + new, linear)
        return self._with_linear(linear)

    def copy(self) -> Self:
        twin = super().copy()
        twin._expected = (0, [], None)
        return twin

    def plan_for(self, available: tuple[str, ...] | None) -> Any:
        """The plan over the sets that can be chosen now."""
        if available is None:
            return self.plan
        if available not in self._plans:
            if len(self._plans) >= _KEPT_PLANS:
                self._plans.pop(next(iter(self._plans)))
            self._plans[available] = self._planned(replace(self.problem, rules=self.problem.rules.limited(available)))
        return self._plans[available]

    def _planned(self, problem: Problem) -> Any:
        return self._with_tree(self.plan, set_tree(problem.graph, problem.rules))

    def _nothing(self) -> Choice:
        return Choice(self.problem.required_ids(), math.nan)

    def _listed(self, tree: SetTree, index: int) -> Choice:
        return Choice(ids_of(tree.sets[index]), float(tree.values[index])) if index >= 0 else self._nothing()

    @abstractmethod
    def _choose(self, plan: Any, state: Any, uniform: float) -> Choice:
        """Propose under a plan and a state."""

    @abstractmethod
    def _score(self, plan: Any, state: Any, t: int) -> SetTree:
        """The plan's tree with the values at the radii of round t (t < 0: without optimism)."""

    @abstractmethod
    def _with_tree(self, plan: Any, tree: SetTree) -> Any:
        """The plan for other sets."""

    @abstractmethod
    def _with_linear(self, linear: LinearState) -> Any:
        """The state with other sums."""

    @abstractmethod
    def _expect(self, linear: LinearState, sets: NDArray[np.int64], was_set: Any, means: Any, row: Any) -> None:
        """Take what pending sets are expected to teach into `linear`; the rest is scratch."""


def ids_of(row: NDArray[np.int32]) -> list[int]:
    """A row of `sets` without the zeros that fill it up."""
    return [i for i in row.tolist() if i]
