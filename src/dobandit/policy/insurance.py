"""Insurance against a wrong graph: an action's own outcomes correct what the model says of it.

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
from typing import Any

from dobandit.estimation.kl import kl_upper
from dobandit.kernels import kernel
from dobandit.oracle.action_list import pick_action
from dobandit.policy.own_outcomes import pattern_of

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
