"""LUCB on arms: BestSet for those who do not know what causes what, or do not believe it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dobandit.compiled import kernel
from dobandit.estimation.kl import kl_level, kl_lower, kl_upper
from dobandit.oracle.actions import Action, Actions
from dobandit.oracle.listing import pick
from dobandit.policy.arms import BY_UCB, ArmsEngine
from dobandit.policy.base import BY_COIN, Policy, checked_answer, require_bool, words_of_two
from dobandit.policy.engine import Choice, Draws, Engine, Gap, Guaranteed, Interval, Situation
from dobandit.policy.own_outcomes import numbered
from dobandit.policy.problem import Problem
from dobandit.policy.recording import Recorder
from dobandit.policy.world import World


@dataclass(frozen=True)
class LUCB(Policy):
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

    epsilon: float = 0.05
    delta: float = 0.05
    prune: bool = False

    def __post_init__(self) -> None:
        checked_answer(self.epsilon, self.delta)
        require_bool("prune", self.prune)

    @property
    def label(self) -> str:
        return f"LUCB ({self.epsilon:g}{', pruned' if self.prune else ''})"

    @property
    def stop_within(self) -> float:
        return float(self.epsilon)

    def engine(self, problem: Problem) -> Engine:
        return LUCBEngine(problem, float(self.epsilon), float(self.delta), self.prune)


@kernel
def stand_arms(plays: Any, total: Any, arms: int, delta: float, best: int, upper: Any, uniform: float) -> Any:
    """(best, rival, gap): the first arm with the largest mean, or the one given; the other arm with the largest upper
    end, ties by the given number; by how much that is above the lower end of the best, at least 0."""
    if best < 0:
        best, most = 0, -1.0
        for i in range(len(plays)):
            mean = total[i] / plays[i] if plays[i] > 0 else -1.0
            if mean > most:
                best, most = i, mean
    for i in range(len(plays)):
        known = plays[i] > 0 and i != best
        upper[i] = kl_upper(total[i] / plays[i], plays[i], kl_level(plays[i], arms, delta)) if known else 1.0
    upper[best] = -1.0
    if len(plays) < 2:
        return best, best, 0.0
    low = 0.0
    if plays[best] > 0:
        low = kl_lower(total[best] / plays[best], plays[best], kl_level(plays[best], arms, delta))
    rival = pick(upper, uniform)
    return best, rival, max(upper[rival] - low, 0.0)


class LUCBEngine(ArmsEngine):
    """Two arms compete until one is the answer."""

    def __init__(self, problem: Problem, epsilon: float, delta: float, prune: bool = False) -> None:
        super().__init__(problem, BY_UCB, 0.0, prune=prune)
        self.epsilon, self.delta = epsilon, delta

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, now: Situation) -> Choice:
        actions, best, rival, gap = self._standing(now)
        return Choice(actions.row(rival if gap > self.epsilon and now.draws[1] < 0.5 else best), math.nan)

    def compared(self, now: Situation) -> Sequence[tuple[Action, float]]:
        return []

    def reason(self, action: Action, now: Situation) -> str:
        actions, best, rival, gap = self._standing(now)
        return words_of_two(
            self.problem, actions.row(best), actions.row(rival), gap, self.epsilon, bool(now.pending), BY_COIN
        )

    def _standing(self, now: Situation, action: Action | None = None) -> tuple[Actions, int, int, float]:
        plan, plays, total = self.playable(now)
        actions = Actions(plan.ids, plan.to)
        best = -1 if action is None else numbered(actions)[action]
        found = stand_arms(plays, total, len(self.plan.ids), self.delta, best, plan.values, now.draws[0])
        return actions, int(found[0]), int(found[1]), float(found[2])

    # -- answers and simulation ----------------------------------------------------------------------------------

    def gap(self, action: Action, now: Situation, within: float | None = None) -> Gap:
        """What is proved, where it is: then nothing else stops it."""
        told = self.guaranteed(action, now)
        return super().gap(action, now, within) if told is None or told.gap is None else Gap(told.gap)

    def guaranteed(self, action: Action, now: Situation, delta: float | None = None) -> Guaranteed | None:
        """The gap alone; None with a context, over which an arm's mean is taken."""
        now = now._replace(pending=())
        plan, *_ = self.playable(now)
        playable = numbered(Actions(plan.ids, plan.to))
        if (
            self.problem.graph.context
            or action not in playable
            or not playable.keys() <= numbered(self.actions()).keys()
        ):
            return None
        gap = self._standing(now._replace(draws=np.zeros(self.draws)), action)[3]
        return Guaranteed(Interval(*self.predict(action, now.context)[1:]), None, None, gap)

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        Engine.run(self, world, recorder, draws)  # the compiled rounds are those of UCB
