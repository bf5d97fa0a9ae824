"""UCB over all allowed actions: the paper's first baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobandit.policy.arms import UCB as KIND
from dobandit.policy.arms import ArmsEngine
from dobandit.policy.base import Policy, positive, require_bool
from dobandit.policy.engine import Engine
from dobandit.policy.problem import Problem


@dataclass(frozen=True)
class UCB(Policy):
    """Play the arm with the largest mean + scale * sqrt(ln t / plays); arms not yet played come first.

    scale  multiplies the bonus
    prune  whether only sets are played that can be best by what causes what (`possibly_optimal`)

    An arm is an allowed action; nothing is learned from one about another, and any graph will do.

    >>> import dobandit as dob
    >>> len(dob.UCB().start(dob.paper.G1.graph, budget=3, effects="nonnegative").propose())
    3
    """

    name: ClassVar[str] = "ucb"
    any_graph: ClassVar[bool] = True

    scale: float = 1.0
    prune: bool = False

    def __post_init__(self) -> None:
        positive("scale", self.scale, zero=True)
        require_bool("prune", self.prune)

    @property
    def label(self) -> str:
        notes = [f"{self.scale:g}"] * (self.scale != 1) + ["pruned"] * self.prune
        return f"UCB ({', '.join(notes)})" if notes else "UCB"

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, KIND, float(self.scale), prune=self.prune)
