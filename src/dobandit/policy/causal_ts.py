"""CausalTS: what CausalUCB believes, and Thompson's rule instead of a bonus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dobandit.errors import PolicyError
from dobandit.estimation.statistics import layout_of
from dobandit.oracle.listing import Listing
from dobandit.oracle.sampled import draws_of, sampled
from dobandit.policy.base import Policy
from dobandit.policy.causal_engine import MOST_ACTIONS, CausalEngine, beliefs_at_start, joint_oracle
from dobandit.policy.engine import Engine
from dobandit.policy.model_engine import OracleMaker
from dobandit.policy.problem import Problem
from dobandit.policy.region import Bonus
from dobandit.policy.revising import RevisingEngine
from dobandit.policy.revision import Flags, with_flags

_C = 2.0  # standard errors, of the intervals of weights


@dataclass(frozen=True)
class CausalTS(Policy):
    """Draw a model from what is believed, and play the action that is best in it.

    The beliefs are those of CausalUCB. Which model is drawn is a function of the round's random numbers, so that runs
    are repeatable. It looks at every allowed action, of which there may be 20,000.

    >>> import dobandit as dob
    >>> learner = dob.CausalTS().start(dob.paper.G1.graph, budget=3, seed=0)
    >>> set(learner.propose()) <= set(dob.paper.G1.graph.controllable)
    True
    """

    name: ClassVar[str] = "causal-ts"
    links: ClassVar[str] = "auto"

    @property
    def label(self) -> str:
        return "CausalTS"

    def engine(self, problem: Problem) -> Engine:
        return RevisingEngine(problem, _sampling)


def _sampling(problem: Problem, flags: Flags) -> SamplingEngine:
    count = problem.allowed().count()
    if count > MOST_ACTIONS:
        raise PolicyError(
            f"CausalTS looks at every allowed action, up to {MOST_ACTIONS:,} of them, but there are {count:,}. "
            "Lower the budget, or use CausalUCB, which searches."
        )
    estimator, state = beliefs_at_start(problem)
    return SamplingEngine(problem, estimator, state, Bonus(_C), with_flags(sampled_oracle(estimator), flags))


def sampled_oracle(estimator: Any) -> OracleMaker:
    """The oracle of the joint bonus, with a sample in its place when something is chosen."""
    joint = joint_oracle(estimator)

    def make(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
        return sampled(layout_of(problem.graph), joint(problem, listing, available))

    return make


class SamplingEngine(CausalEngine):
    """A causal engine whose index is E[Y] under a drawn model."""

    def __init__(self, problem: Problem, *parts: Any) -> None:
        super().__init__(problem, *parts)
        self.draws = max(draws_of(self.plan.oracle), Engine.draws)
