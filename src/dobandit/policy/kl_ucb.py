"""KL-UCB over all allowed actions: the strongest learner here that ignores what causes what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobandit.policy.arms import KL_UCB as KIND
from dobandit.policy.arms import ArmsEngine
from dobandit.policy.base import Policy, positive, require_bool
from dobandit.policy.engine import Engine
from dobandit.policy.problem import Problem


@dataclass(frozen=True)
class KLUCB(Policy):
    """Play the arm with the largest q for which plays KL(mean, q) <= log t + c log log t; arms not yet played first.

    c      the weight of log log t: the proof of Garivier and Cappé (2011) is for 3, and they advise 0 in practice,
           which is the default here. Below round 3, where log log t is negative, it counts as 0
    prune  whether only sets are played that can be best by what causes what (`possibly_optimal`)

    >>> import dobandit as dob
    >>> len(dob.KLUCB().start(dob.paper.G1.graph, budget=3, effects="nonnegative").propose())
    3
    """

    name: ClassVar[str] = "kl-ucb"
    any_graph: ClassVar[bool] = True

    c: float = 0.0
    prune: bool = False

    def __post_init__(self) -> None:
        positive("c", self.c, zero=True)
        require_bool("prune", self.prune)

    @property
    def label(self) -> str:
        notes = [f"{self.c:g}"] * (self.c != 0) + ["pruned"] * self.prune
        return f"KL-UCB ({', '.join(notes)})" if notes else "KL-UCB"

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, KIND, float(self.c), prune=self.prune)
