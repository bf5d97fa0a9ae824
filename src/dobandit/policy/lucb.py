"""LUCB on arms: BestSet for those who do not know what causes what, or do not believe it; and what all engines have in
common that let two actions compete until one is the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dobandit.errors import PolicyError
from dobandit.estimation.confidence import checked_delta
from dobandit.estimation.kl import kl_level, kl_lower, kl_upper
from dobandit.kernels import kernel
from dobandit.oracle.action_list import pick
from dobandit.oracle.actions import Action
from dobandit.policy.answers import Gap, Guaranteed
from dobandit.policy.arms import ArmsEngine
from dobandit.policy.base import Policy, positive, require_bool
from dobandit.policy.engine import Choice, Engine, Interval, Situation
from dobandit.policy.own_outcomes import numbered
from dobandit.policy.problem import Problem
from dobandit.policy.questions import gap_to_rivals
from dobandit.texts import decimals, fixed


@dataclass(frozen=True)
class FindsAnswer(Policy):
    """A policy that looks for an action which falls short of the best by more than epsilon with probability delta at
    most."""

    epsilon: float = 0.05
    delta: float = 0.05

    def __post_init__(self) -> None:
        if positive("epsilon", self.epsilon) >= 1.0:
            raise PolicyError(f"epsilon must be above 0 and below 1, but got {self.epsilon!r}. Try 0.05.")
        checked_delta(self.delta)

    @property
    def stop_within(self) -> float:
        return float(self.epsilon)


@dataclass(frozen=True)
class LUCB(FindsAnswer):
    """Find an arm that none is better than by more than epsilon, by each arm's own outcomes alone; then play it.

    epsilon  how much the answer may fall short of the best, above 0 and below 1
    delta    with what probability the answer may fall short by more, above 0 and below 1
    prune    whether only sets are played that can be best by what causes what (`possibly_optimal`)

    KL-LUCB (Kaufmann and Kalyanakrishnan 2013): the arm with the largest mean against the other with the largest upper
    end; a fair coin says which of them is played. The ends are where n KL(mean, q) = log(11 K n^1.1 / delta), n the
    arm's own plays and K the arms. By Chernoff's inequality an end of one arm fails at some n with probability at most
    delta / K, as the sum of n^-1.1 is below 11, and a wrong answer needs one end of one arm to have failed: the upper
    one of the best, or the lower one of another.

    >>> import dobandit as dob
    >>> len(dob.LUCB(epsilon=0.1).start(dob.paper.G1.graph, budget=3, effects="nonnegative").propose())
    3
    """

    name: ClassVar[str] = "lucb"
    any_graph: ClassVar[bool] = True

    prune: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_bool("prune", self.prune)

    @property
    def label(self) -> str:
        return f"LUCB ({self.epsilon:g}{', pruned' if self.prune else ''})"

    def engine(self, problem: Problem) -> Engine:
        return LUCBEngine(problem, float(self.epsilon), float(self.delta), self.prune)


class Standing(NamedTuple):
    """The best action and its rival, and by how much the rival can be ahead at most; at least 0."""

    best: Action
    rival: Action
    gap: float


class TwoCompete(Engine):
    """Two actions compete until one is the answer: no other is better by more than epsilon.

    played  why a round is played before that, for people
    """

    epsilon: float
    played = "a coin chose between them"

    def standing(self, now: Situation, best: Action | None = None) -> Standing:
        """Who is best (None: by the estimate), and who may be better."""
        raise NotImplementedError

    def choose(self, now: Situation) -> Choice:
        best, rival, gap = self.standing(now)
        action = rival if gap > self.epsilon and now.draws[1] < 0.5 else best
        return Choice(action, math.nan)  # one of two, not the largest of many

    def compare(self, now: Situation, optimistic: bool = True) -> Sequence[tuple[Action, float]]:
        return [] if optimistic else super().compare(now, optimistic)  # type: ignore[safe-super]

    def runner_up(self, action: Action, now: Situation) -> tuple[Action, float] | None:
        """The other one of the two that competed, with the upper end of its interval."""
        other = next((one for one in self.standing(now)[:2] if one != action), None)
        return None if other is None else (other, self.predict(other, now.context).high)

    def reason(self, now: Situation) -> str:
        best, rival, gap = self.standing(now)
        if gap <= self.epsilon:
            return "it is the answer" + (" if the rounds under way bring what is expected" if now.pending else "")
        pairs = (action.named(self.problem.graph).items() for action in (best, rival))
        leader, other = (", ".join(f"{name}={value:g}" for name, value in pair) or "nothing" for pair in pairs)
        better = fixed(gap, decimals(gap))
        return f"setting {leader} looks best, but setting {other} may be better by up to {better}; {self.played}"


@kernel
def leading_arm(plays: Any, total: Any, arms: int) -> int:
    """The first arm with the largest mean."""
    best, most = 0, -1.0
    for i in range(arms):
        if plays[i] > 0.0 and total[i] / plays[i] > most:
            best, most = i, total[i] / plays[i]
    return best


@kernel
def rival_of(best: int, plays: Any, total: Any, upper: Any, settings: Any, tie: float) -> tuple[int, float]:
    """(rival, gap): the other arm with the largest upper end, where there is one; by how much that is above the lower
    end of `best`, at least 0. upper: room for the upper ends; settings: as in `lucb_arm`."""
    delta, arms = settings[1], settings[2]
    for i in range(len(upper)):
        upper[i] = kl_upper(total[i] / max(plays[i], 1.0), plays[i], kl_level(plays[i], arms, delta))
    low = kl_lower(total[best] / max(plays[best], 1.0), plays[best], kl_level(plays[best], arms, delta))
    upper[best] = -1.0
    rival = pick(upper, tie)
    return rival, max(upper[rival] - low, 0.0)


@kernel
def lucb_arm(plays: Any, total: Any, index: Any, settings: Any, t: int, draws: Any) -> int:
    """settings: epsilon, delta, K. The leading arm once it is the answer; until then it or its rival, by a coin."""
    best = leading_arm(plays, total, len(index))
    rival, gap = rival_of(best, plays, total, index, settings, draws[0])
    return rival if gap > settings[0] and draws[1] < 0.5 else best


class LUCBEngine(TwoCompete, ArmsEngine):
    """The arms are the actions that compete."""

    def __init__(self, problem: Problem, epsilon: float, delta: float, prune: bool = False) -> None:
        super().__init__(problem, lucb_arm, (), prune=prune)
        self.settings = np.array([epsilon, delta, len(self.arms.ids)])
        self.epsilon, self.delta = epsilon, delta

    def standing(self, now: Situation, best: Action | None = None) -> Standing:
        arms, plays, total = self.playable(now)
        leader = int(leading_arm(plays, total, len(plays))) if best is None else numbered(arms)[best]
        rival, gap = rival_of(leader, plays, total, np.zeros(len(plays)), self.settings, now.draws[0])
        return Standing(arms.row(leader), arms.row(int(rival)), float(gap))

    def runner_up(self, action: Action, now: Situation) -> None:
        return None

    def gap(self, action: Action, now: Situation, within: float | None = None) -> Gap:
        """What is proved, where it is: then nothing else stops it."""
        proof = self.guaranteed(action, now)
        return gap_to_rivals(self, action, now, within) if proof is None or proof.gap is None else Gap(proof.gap)

    def guaranteed(self, action: Action, now: Situation, delta: float | None = None) -> Guaranteed | None:
        """The gap alone; None with a context, over which an arm's mean is taken."""
        now = now._replace(draws=np.zeros(self.draws), pending=())
        playable, listed = numbered(self.playable(now)[0]).keys(), numbered(self.arms).keys()
        if self.problem.graph.context or action not in playable or not playable <= listed:
            return None
        interval = Interval(*self.predict(action, now.context)[1:])
        return Guaranteed(interval, None, None, self.standing(now, action).gap)
