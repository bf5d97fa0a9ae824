"""Insurance against a wrong graph (`CausalUCB(safe=True)`): an action's own outcomes correct what the model says of it.

n, y: rounds with exactly this action (in this context) and their mean of Y.  m, e: the model's value and its standard
error.  d: by how much the model is off for this action. Its prior is 0 with the chance 1 - OFF, else normal with the
standard deviation SPREAD. y is normal around m with the variance V = v / n + e^2 where d is 0, and V + SPREAD^2 where
it is not; v is m (1 - m), or what the outcomes themselves say where that is more, so that an unlucky start against a
model that is sure of itself cannot settle anything. P(d is not 0) then has a closed form, which is OFF while n is 0; w
is what it has risen above OFF, as a share of what it could.
index = (1 - w) (m + c e) + w (m + E[d] + c' sd(d)), the last two where d is not 0; c' = sqrt(2 REACH log N) or c, if
that is more, since own outcomes have no model to bring an action back that had bad luck.
What a model says of actions that are never played can only be refuted by playing them. So a round is, with the chance
1 / (2 sqrt(N + 1)), N rounds so far in which something was set, one in which the action is played that KL-UCB on own
outcomes alone would choose: about sqrt(t) of t rounds, however many were recorded before without setting anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dobandit import limits
from dobandit.errors import PolicyError
from dobandit.estimation.kl import kl_upper
from dobandit.kernels import kernel
from dobandit.oracle.action_list import pick_action
from dobandit.oracle.actions import Action
from dobandit.policy.answers import Contrast
from dobandit.policy.causal_engine import CausalEngine, parts_of
from dobandit.policy.engine import Array, Choice, Estimate, Rounds, Situation
from dobandit.policy.evaluators import Evaluator, every_action
from dobandit.policy.model_engine import Parts
from dobandit.policy.own_outcomes import (
    OwnOutcomes,
    note_rounds,
    numbered,
    outcomes_of,
    own_outcomes,
    pattern_of,
    require_room,
)
from dobandit.policy.problem import Problem
from dobandit.policy.recording import Sizes
from dobandit.texts import setting

OWN = "an insurance round, in which only the outcomes of each action itself count"
OFF, SPREAD, SHARE, REACH = 0.05, 0.2, 1.0, 0.5
_LEAST = 0.02  # what the model says of Y counts as at least this far from 0 and 1


@kernel
def deviation(m: float, error: float, n: float, y: float, c: float) -> tuple[float, float]:
    """(w, E[d] + c sd(d) where d is not 0), from n > 0 rounds with the mean y."""
    p = min(max(m, _LEAST), 1.0 - _LEAST)
    q = (n * y + 1.0) / (n + 2.0)
    noise = max(p * (1.0 - p), q * (1.0 - q)) / n
    slab = SPREAD * SPREAD
    known = noise + error * error
    far = (y - m) * (y - m)
    odds = 0.5 * (math.log(known / (known + slab)) + far * (1.0 / known - 1.0 / (known + slab)))
    odds += math.log(OFF / (1.0 - OFF))
    chance = 1.0 / (1.0 + math.exp(-min(max(odds, -50.0), 50.0)))
    w = max((chance - OFF) / (1.0 - OFF), 0.0)
    share = slab / (slab + noise)
    return w, share * (y - m) + c * math.sqrt(share * noise)


@kernel
def by_own_outcomes(own: Any, uniform: float) -> bool:
    """Whether the model has no say in this round."""
    return uniform * 2.0 * math.sqrt(own.rounds[0] + 1.0) < SHARE


@kernel
def score_own(plan: Any, own: Any, fixed: Any) -> None:
    """KL-UCB's index of every action."""
    scores, k = plan.actions.scores, pattern_of(own.context, fixed)
    level = 0.0
    for i in range(len(scores)):
        level += own.plays[k, i]
    level = math.log(level + 1.0)
    for i in range(len(scores)):
        n = own.plays[k, i]
        scores[i]["index"] = kl_upper(own.total[k, i] / n if n > 0.0 else 0.0, n, level)


@kernel
def insure(plan: Any, own: Any, fixed: Any, reach: Any) -> None:
    """Correct the model's index of every action by its own outcomes."""
    scores, k, c = plan.actions.scores, pattern_of(own.context, fixed), reach[own.target]
    far = max(c, math.sqrt(2.0 * REACH * math.log(own.rounds[0] + 1.0))) if c > 0.0 else 0.0
    for i in range(len(scores)):
        n = own.plays[k, i]
        if n > 0.0:
            m, error = scores[i]["mean"], scores[i]["sd"]
            w, alone = deviation(m, error, n, own.total[k, i] / n, far)
            scores[i]["index"] = m + (1.0 - w) * c * error + w * alone


@kernel
def choose_insured(plan: Any, own: Any, fixed: Any, reach: Any, draws: Any) -> int:
    """The action with the largest corrected index; in an insurance round the one that KL-UCB would play."""
    if by_own_outcomes(own, draws[1]):
        score_own(plan, own, fixed)
    else:
        insure(plan, own, fixed, reach)
    return pick_action(plan.actions.scores, draws[0])


def safe_parts(problem: Problem, scale: float, growth: float) -> Parts:
    """What it is made of; refuses what has too many actions."""
    count = problem.allowed(relevant=False).count()
    if count > limits.MAX_ACTIONS:
        raise PolicyError(
            f"{setting('safe=True')} keeps the outcomes of every allowed action, up to {limits.MAX_ACTIONS:,} of them, "
            f"but there are {count:,}. Lower the budget, or leave safe out."
        )
    require_room("safe=True", count, len(problem.context_ids))
    return parts_of(problem, scale, every_action, growth=growth)


class SafeEngine(CausalEngine):
    """A causal engine that keeps the outcomes of every action by itself."""

    choose_rule = staticmethod(choose_insured)

    @cached_property
    def _number(self) -> dict[Action, int]:
        return numbered(self.listed.actions)

    def update(self, rounds: Rounds, sizes: Sizes = None) -> None:
        super().update(rounds, sizes)
        note_rounds(self.own, self._number, rounds)

    def update_history(self, rounds: Rounds, sizes: Sizes = None) -> None:
        super().update(rounds, sizes)

    def _begin(self, believed: Problem) -> None:
        """With the outcomes of before: another graph may list the same actions in another order."""
        before = (self.own, numbered(self.listed.actions)) if "own" in self.__dict__ else None
        super()._begin(believed)
        self.own = own_outcomes(believed.context_ids, believed.graph.arrays.target, self.listed.actions)
        if before is not None:
            own, column = before
            columns = [column[action] for action in self._number]
            self.own.plays[:], self.own.total[:] = own.plays[:, columns], own.total[:, columns]
            self.own.rounds[:] = own.rounds

    def choose(self, now: Situation) -> Choice:
        choice = super().choose(now)
        return choice._replace(note=OWN) if by_own_outcomes(self._own_now(now), now.draws[1]) else choice

    def _estimated(self, now: Situation) -> Evaluator:
        evaluator = super()._estimated(now)
        insure(evaluator.plan, self._own_now(now), self.believed.known(now.context), self.rho)
        return evaluator

    def _own_now(self, now: Situation) -> OwnOutcomes:
        """Those under way are expected to be as predicted."""
        if now.available is None and not now.pending:
            return self.own
        listed = list(numbered(self.evaluator_for(now.available).plan.actions.actions))
        plays, total = np.zeros((2, len(self.own.plays), len(listed)))
        pattern = pattern_of(self.own.context, now.context)
        plays[pattern], total[pattern] = outcomes_of(
            self.own, self._number, listed, now.context, now.pending, lambda each: self.predict(each, now.context).value
        )
        under_way = sum(one.size for one in now.pending if one.action.ids)
        return self.own._replace(plays=plays, total=total, rounds=self.own.rounds + under_way)

    def predict(self, action: Action, context: Array) -> Estimate:
        """The model's answer, corrected by the action's own outcomes; the interval is the model's, and lets it in."""
        value, low, high = super().predict(action, context)
        (plays,), (total,) = outcomes_of(self.own, self._number, [action], context)
        if plays <= 0.0:
            return Estimate(value, low, high)
        w, off = deviation(value, 0.0, float(plays), float(total / plays), 0.0)
        value = min(max(value + w * off, 0.0), 1.0)
        return Estimate(value, min(low, value), max(high, value))

    def contrast(self, action: Action, others: Sequence[Action], context: Array) -> Contrast:
        """The model's answer; its intervals let in what the corrected values say."""
        _, low, high, half = super().contrast(action, others, context)
        mine = self.predict(action, context).value
        value = np.array([self.predict(other, context).value - mine for other in others])
        return Contrast(value, np.minimum(low, value), np.maximum(high, value), half)
