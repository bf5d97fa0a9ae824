"""CausalUCB: the default. Optimism about E[Y | do(S)] as a whole, for any links, signs, levers and contexts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobandit.errors import PolicyError
from dobandit.policy.base import Policy, require_bool
from dobandit.policy.causal_engine import CausalEngine, causal_engine, members_of
from dobandit.policy.engine import Engine
from dobandit.policy.problem import Problem
from dobandit.policy.revising import RevisingEngine
from dobandit.policy.revision import Flags
from dobandit.policy.safe_engine import safe_engine

_C = 2.0  # standard errors


@dataclass(frozen=True)
class CausalUCB(Policy):
    """Play the action whose E[Y] plus two standard errors is largest.

    guarantee  choose by the upper end of intervals that hold at every round, all of them together, with 95%: more is
               tried before it settles, and what is tried rests on no approximation. For variables of 0 and 1
    safe       insured against a graph that is wrong in ways no round shows by itself: what an action did corrects what
               the model says of it, and about sqrt(t) of t rounds try what its own outcomes alone speak for. It costs
               some regret where the graph is right

    Each node is believed to be what the links say; with links="auto", the default, a mixture of a straight line, a
    logistic curve and a table by parent pattern, weighted by how well each has predicted. The standard error is that of
    E[Y | do(S)], in which the errors of all nodes add up as variances do. Where links are promised to be the identity
    and effects to be nonnegative, every node's own two standard errors are carried upwards instead (Algorithm 4 with
    this radius), and before there are data its weights may be anything nonnegative with a sum of at most 1. There is
    nothing to tune and no horizon.
    Where the rounds refute the graph, the cause that it lacks is reckoned with from then on (`policy.revising`).

    >>> import dobandit as dob
    >>> learner = dob.CausalUCB().start(dob.paper.G1.graph, budget=3, seed=0)
    >>> set(learner.propose()) <= set(dob.paper.G1.graph.controllable)
    True
    """

    name: ClassVar[str] = "causal-ucb"
    links: ClassVar[str] = "auto"
    guarantee: bool = False
    safe: bool = False

    def __post_init__(self) -> None:
        require_bool("guarantee", self.guarantee)
        require_bool("safe", self.safe)
        if self.guarantee and self.safe:
            raise PolicyError(
                "guarantee=True chooses by the model's intervals alone, and safe=True does not trust the model alone: "
                "they do not go together. Leave one of them out."
            )

    @property
    def label(self) -> str:
        return "CausalUCB" + (" (guarantee)" if self.guarantee else " (safe)" if self.safe else "")

    def engine(self, problem: Problem) -> Engine:
        return RevisingEngine(problem, self._on)

    def _on(self, problem: Problem, flags: Flags) -> CausalEngine:
        if self.safe:
            return safe_engine(problem, _C, flags)
        return causal_engine(problem, members_of(problem), _C, self.guarantee, flags)
