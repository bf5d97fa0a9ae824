"""The engine of the policies that treat each set as an arm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dobandit.oracle.sets import all_sets
from dobandit.policy.arms import ArmsPlan, ArmsState, propose_arm, update_arm
from dobandit.policy.base import Engine, Problem


class ArmsEngine(Engine):
    """One arm a set of exactly K controllable variables, or the sets given."""

    def __init__(self, problem: Problem, kind: int, parameter: float, sets: NDArray[np.int32] | None = None) -> None:
        graph = problem.graph
        self.sets = all_sets(graph.arrays.controllable.tolist(), problem.budget) if sets is None else sets
        arms = len(self.sets)
        self.plan = ArmsPlan(kind, parameter, graph.arrays.target, self.sets, np.zeros(arms))
        self.state = ArmsState(np.zeros(arms, dtype=np.int64), np.zeros(arms), np.zeros(1, dtype=np.int64))

    @property
    def rounds(self) -> int:
        return int(self.state.clock[0])

    def propose(self, uniforms: NDArray[np.float64]) -> int:
        return int(propose_arm(self.plan, self.state, uniforms))

    def update(self, index: int, values: NDArray[np.float64], was_set: NDArray[np.bool_]) -> None:
        update_arm(self.plan, self.state, index, float(values[self.plan.target]))
