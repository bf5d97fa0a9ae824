"""Epsilon-greedy over all allowed actions: the paper's second baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobandit.policy.arms import EPSILON_GREEDY, ArmsEngine
from dobandit.policy.base import Policy, positive, require_bool
from dobandit.policy.engine import Engine
from dobandit.policy.problem import Problem


@dataclass(frozen=True)
class EpsilonGreedy(Policy):
    """With probability epsilon a random arm, else the one with the largest mean; an arm not yet played counts as 1.

    epsilon  how often a random arm is played
    prune    whether only sets are played that can be best by what causes what (`possibly_optimal`)

    >>> import dobandit as dob
    >>> len(dob.EpsilonGreedy(0.1).start(dob.paper.G1.graph, budget=3, effects="nonnegative").propose())
    3
    """

    name: ClassVar[str] = "eps-greedy"
    any_graph: ClassVar[bool] = True

    epsilon: float = 0.1
    prune: bool = False

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, zero=True, most=1.0)
        require_bool("prune", self.prune)

    @property
    def label(self) -> str:
        return f"eps-greedy ({self.epsilon:g}{', pruned' if self.prune else ''})"

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, EPSILON_GREEDY, float(self.epsilon), prune=self.prune)
