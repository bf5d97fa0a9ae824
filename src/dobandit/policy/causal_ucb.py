"""CausalUCB: the default. Optimism about E[Y | do(S)] as a whole, for any links, signs, levers and contexts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from dobandit.checks import shown
from dobandit.errors import PolicyError
from dobandit.policy.base import Policy, positive, require_bool
from dobandit.policy.causal_engine import DELTA, CausalEngine, parts_of
from dobandit.policy.engine import Engine
from dobandit.policy.guaranteed_engine import GuaranteedEngine
from dobandit.policy.problem import Problem
from dobandit.policy.safe_engine import SafeEngine, safe_parts

_C, _GROWTH = 2.0, 1.0  # standard errors at the beginning, and how fast they become more
_LEEWAY, _MOST_LEEWAY = 0.5, 10.0


@dataclass(frozen=True)
class CausalUCB(Policy):
    """Play the action whose E[Y] plus two standard errors is largest.

    guarantee  choose by intervals that hold at every round, all of them together, with 95%: more is tried before it
               settles, and what a round can lose rests on no approximation. For variables of 0 and 1
    safe       insured against a graph that is wrong in ways no round shows by itself: what an action did corrects what
               the model says of it, and about sqrt(t) of t rounds try what its own outcomes alone speak for. It costs
               some regret where the graph is right
    leeway     with guarantee=True: an action may be played whose interval's upper end falls short of the largest by at
               most this share of the interval's width; of these it plays the one that it would play without a
               guarantee. A round then loses at most (1 + leeway) times that width. Default 0.5; 0 plays the largest
               upper end, which loses more on the way and proves sooner that one may stop

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
    leeway: float | None = None

    def __post_init__(self) -> None:
        require_bool("guarantee", self.guarantee)
        require_bool("safe", self.safe)
        if self.guarantee and self.safe:
            raise PolicyError(
                "guarantee=True chooses by the model's intervals alone, and safe=True does not trust the model alone: "
                "they do not go together. Leave one of them out."
            )
        if self.leeway is not None and not self.guarantee:
            raise PolicyError(
                f"leeway says how far guarantee=True may leave the largest upper end, but got {shown(self.leeway)} "
                "without it. Leave it out, or add guarantee=True."
            )
        if self.guarantee:
            given = _LEEWAY if self.leeway is None else self.leeway
            object.__setattr__(self, "leeway", positive("leeway", given, zero=True, most=_MOST_LEEWAY))

    @property
    def label(self) -> str:
        return "CausalUCB" + (" (guarantee)" if self.guarantee else " (safe)" if self.safe else "")

    def engine(self, problem: Problem) -> Engine:
        if self.safe:
            return SafeEngine(problem, partial(safe_parts, scale=_C, growth=_GROWTH))
        if self.leeway is not None:
            return GuaranteedEngine(problem, DELTA, _C, self.leeway, _GROWTH)
        return CausalEngine(problem, partial(parts_of, scale=_C, growth=_GROWTH))
