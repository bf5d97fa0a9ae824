"""CausalTS: what CausalUCB believes, and Thompson's rule instead of a bonus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dobandit import limits
from dobandit.errors import PolicyError
from dobandit.oracle.posterior_draw import draws_of
from dobandit.policy.base import Policy
from dobandit.policy.causal_engine import CausalEngine, parts_of
from dobandit.policy.engine import Array, Engine, Situation
from dobandit.policy.evaluators import Evaluator, drawn
from dobandit.policy.model_engine import Parts
from dobandit.policy.problem import Problem

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
        return SamplingEngine(problem, _sampling)


def _sampling(problem: Problem) -> Parts:
    count = problem.allowed().count()
    if count > limits.MAX_ACTIONS:
        raise PolicyError(
            f"CausalTS looks at every allowed action, up to {limits.MAX_ACTIONS:,} of them, but there are {count:,}. "
            "Lower the budget, or use CausalUCB, which searches."
        )
    return parts_of(problem, _C, drawn)


class SamplingEngine(CausalEngine):
    """A causal engine whose index is E[Y] under a drawn model.

    draws   what a round brings, which is enough for the problem that it was started on
    needed  what a drawn model of the revised problem takes
    """

    def _begin(self, believed: Problem) -> None:
        super()._begin(believed)
        self.needed = max(draws_of(self.evaluator.plan), Engine.draws)
        self.draws = self.needed if believed is self.problem else self.draws

    def _proposed(self, now: Situation) -> tuple[Evaluator, int]:
        return super()._proposed(now._replace(draws=self.enough_draws(now.draws[None, :])[0]))

    def enough_draws(self, draws: Array) -> Array:
        """What is missing is drawn from the first number of the round."""
        more = self.needed - draws.shape[1]
        if more <= 0:
            return draws
        rest = [np.random.default_rng(int(u * 2.0**53)).random(more) for u in draws[:, 0]]
        return np.hstack([draws, np.array(rest).reshape(len(draws), more)])
