"""What policies that look for an answer have in common: BestSet and LUCB."""

from __future__ import annotations

from dobandit.errors import PolicyError
from dobandit.estimation.confidence import checked_delta
from dobandit.oracle.actions import Action
from dobandit.policy.base import positive
from dobandit.policy.problem import Problem
from dobandit.texts import decimals, fixed

ANSWER = "it is the answer"
ANSWER_EXPECTED = "it is the answer if the rounds under way bring what is expected"
BY_COIN = "a coin chose between them"


def checked_answer(epsilon: object, delta: float) -> None:
    """Refuse what no answer can be wanted within."""
    if positive("epsilon", epsilon) >= 1.0:
        raise PolicyError(f"epsilon must be above 0 and below 1, but got {epsilon!r}. Try 0.05.")
    checked_delta(delta)


def words_of_two(
    problem: Problem, best: Action, rival: Action, gap: float, epsilon: float, pending: bool, played: str
) -> str:
    """Why a round was played that is to tell two actions apart. played: what was, for people."""
    if gap <= epsilon:
        return ANSWER_EXPECTED if pending else ANSWER
    pairs = (action.named(problem.graph).items() for action in (best, rival))
    one, other = (", ".join(f"{name}={value:g}" for name, value in pair) or "nothing" for pair in pairs)
    better = fixed(gap, decimals(gap))
    return f"setting {one} looks best, but setting {other} may be better by up to {better}; {played}"
