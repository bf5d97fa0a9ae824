"""Epsilon-greedy over all K-subsets: the paper's second baseline."""

from __future__ import annotations

from dataclasses import dataclass

from dobandit.policy.arms import EPSILON_GREEDY
from dobandit.policy.arms_engine import ArmsEngine
from dobandit.policy.base import Engine, Policy, Problem, positive


@dataclass(frozen=True)
class EpsilonGreedy(Policy):
    """With probability epsilon a random arm, else the one with the largest mean; an arm not yet played counts as 1."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, zero=True, most=1.0)

    @property
    def label(self) -> str:
        return f"eps-greedy ({self.epsilon:g})"

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, EPSILON_GREEDY, float(self.epsilon))
