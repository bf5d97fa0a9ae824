"""The engine of the policies that treat each set as an arm."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import InterventionError, listed
from dobandit.oracle.sets import sets_allowed
from dobandit.policy.arms import EPSILON_GREEDY, UCB, ArmsPlan, ArmsState, propose_arm, update_arm
from dobandit.policy.base import Choice, Engine, Problem, copied


class ArmsEngine(Engine):
    """One arm an allowed set to which nothing can be added (exactly K variables where K is the only rule), or the sets
    given."""

    def __init__(self, problem: Problem, kind: int, parameter: float, sets: NDArray[np.int32] | None = None) -> None:
        graph = self.graph = problem.graph
        self.problem = problem
        self.sets = sets_allowed(graph, problem.rules) if sets is None else sets
        arms = len(self.sets)
        self.plan = ArmsPlan(kind, parameter, graph.arrays.target, self.sets, np.zeros(arms))
        self.state = ArmsState(np.zeros(arms, dtype=np.int64), np.zeros(arms), np.zeros(1, dtype=np.int64))
        self._arm_of = {frozenset(filter(None, row)): i for i, row in enumerate(self.sets.tolist())}

    @property
    def rounds(self) -> int:
        return int(self.state.clock[0])

    def arm(self, ids: Sequence[int]) -> int:
        """The arm that sets exactly these variables to 1; -1 for none."""
        return self._arm_of.get(frozenset(ids), -1)

    def choose(
        self,
        uniforms: NDArray[np.float64],
        available: tuple[str, ...] | None = None,
        pending: Sequence[Sequence[int]] = (),
    ) -> Choice:
        sets, values, index = self.compare(uniforms, available, pending)
        compared = self.plan.kind == UCB or (self.plan.kind == EPSILON_GREEDY and uniforms[1] >= self.plan.parameter)
        return Choice([i for i in sets[index].tolist() if i], float(values[index]) if compared else math.nan)

    def compare(
        self,
        uniforms: NDArray[np.float64],
        available: tuple[str, ...] | None = None,
        pending: Sequence[Sequence[int]] = (),
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        """The sets that can be played, what they were judged by, and the one chosen."""
        state = self._expecting(pending) if pending else self.state
        arms, plan = self._playable(available), self.plan
        if len(arms) < len(self.sets):
            plan = plan._replace(sets=self.sets[arms], values=np.zeros(len(arms)))
            state = state._replace(plays=state.plays[arms], total=state.total[arms])
        index = int(propose_arm(plan, state, uniforms))
        return plan.sets, plan.values, index

    def best_arm(self, available: tuple[str, ...] | None = None) -> list[int]:
        """The ids of the arm with the largest mean; the first of equals."""
        arms = self._playable(available)
        plays, total = self.state.plays[arms], self.state.total[arms]
        means = np.divide(total, plays, out=np.full(len(plays), -1.0), where=plays > 0)
        return [i for i in self.sets[arms[int(np.argmax(means))]].tolist() if i]

    def update(self, values: NDArray[np.float64], was_set: NDArray[np.bool_]) -> None:
        ids = np.flatnonzero(was_set)
        arm = self.arm(ids.tolist()) if np.all(values[ids] == 1.0) else -1
        update_arm(self.plan, self.state, arm, float(values[self.plan.target]))

    def update_many(self, values: NDArray[np.float64], was_set: NDArray[np.bool_]) -> None:
        for row, mask in zip(values, was_set, strict=True):
            self.update(row, mask)

    def _playable(self, available: tuple[str, ...] | None) -> NDArray[np.int64]:
        if available is None:
            return np.arange(len(self.sets))
        usable = np.zeros(len(self.graph) + 1, dtype=bool)
        usable[[0, *map(self.graph.index, available)]] = True
        arms = np.flatnonzero(usable[self.sets].all(axis=1))
        if not len(arms):
            raise InterventionError(
                f"this policy plays whole sets of {self.sets.shape[1]} variables, and none of them can be played "
                f"with only {listed(available) or 'nothing'} available. Make more available, or use BLMLR or BGLMOFU."
            )
        return arms

    def _expecting(self, pending: Sequence[Sequence[int]]) -> ArmsState:
        """A pending set counts as played, with the mean it has (with 1/2 where it has none)."""
        state: ArmsState = copied(self.state)
        state.clock[0] += len(pending)
        for ids, times in Counter(tuple(ids) for ids in pending).items():
            arm = self.arm(ids)
            if arm >= 0:
                plays = self.state.plays[arm]
                state.plays[arm] += times
                state.total[arm] += times * (self.state.total[arm] / plays if plays else 0.5)
        return state
