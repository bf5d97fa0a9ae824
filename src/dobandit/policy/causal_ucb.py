"""CausalUCB: the default. Optimism about E[Y | do(S)] as a whole, for any links, signs, levers and contexts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobandit.policy.base import Policy, require_bool
from dobandit.policy.causal_engine import causal_engine, members_of
from dobandit.policy.engine import Engine
from dobandit.policy.problem import Problem

_C = 2.0  # standard errors


@dataclass(frozen=True)
class CausalUCB(Policy):
    """Play the action whose E[Y] plus two standard errors is largest.

    guarantee  choose by the upper end of intervals that hold at every round, all of them together, with 95%: more is
               tried before it settles, and what is tried rests on no approximation. For variables of 0 and 1

    Each node is believed to be what the links say; with links="auto", the default, a mixture of a straight line, a
    logistic curve and a table by parent pattern, weighted by how well each has predicted. The standard error is that of
    E[Y | do(S)], in which the errors of all nodes add up as variances do. There is nothing to tune and no horizon.

    >>> import dobandit as dob
    >>> learner = dob.CausalUCB().start(dob.paper.G1.graph, budget=3, seed=0)
    >>> sorted(learner.propose()) <= sorted(dob.paper.G1.graph.controllable)
    True
    """

    name: ClassVar[str] = "causal-ucb"
    links: ClassVar[str] = "auto"
    guarantee: bool = False

    def __post_init__(self) -> None:
        require_bool("guarantee", self.guarantee)

    @property
    def label(self) -> str:
        return "CausalUCB (guarantee)" if self.guarantee else "CausalUCB"

    def engine(self, problem: Problem) -> Engine:
        return causal_engine(problem, members_of(problem), _C, self.guarantee)
