"""UCB over all allowed actions: the paper's first baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobandit.policy.arms import UCB as KIND
from dobandit.policy.arms import ArmsEngine
from dobandit.policy.base import Policy, positive
from dobandit.policy.engine import Engine
from dobandit.policy.problem import Problem


@dataclass(frozen=True)
class UCB(Policy):
    """Play the arm with the largest mean + scale * sqrt(ln t / plays); arms not yet played come first."""

    name: ClassVar[str] = "ucb"

    scale: float = 1.0

    def __post_init__(self) -> None:
        positive("scale", self.scale, zero=True)

    @property
    def label(self) -> str:
        return "UCB" if self.scale == 1 else f"UCB ({self.scale:g})"

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, KIND, float(self.scale))
