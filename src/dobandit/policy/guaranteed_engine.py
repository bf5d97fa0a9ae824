"""The engine of `CausalUCB(guarantee=True)`: choices by intervals that hold at every round (`oracle.interval_pass`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError
from dobandit.estimation.kept_intervals import keep_intervals, look_again
from dobandit.oracle.actions import Action
from dobandit.policy.causal_engine import CausalEngine, parts_of
from dobandit.policy.engine import Array, Choice, Rounds, Situation, batches
from dobandit.policy.evaluators import guaranteed
from dobandit.policy.model_engine import Parts
from dobandit.policy.problem import Problem

NEARLY = "of the actions whose intervals reach up far enough, estimate and standard errors speak most for this one"


class GuaranteedEngine(CausalEngine):
    """Chooses by the intervals that hold at every round, which its state keeps.

    delta  with what probability one of them fails
    scale  how many standard errors the optimism reaches, where it is by those
    share  the leeway, within which that optimism chooses; 0: the upper ends of the intervals alone choose
    """

    trusts_intervals = True

    def __init__(self, problem: Problem, delta: float, scale: float, share: float = 0.0, growth: float = 0.0) -> None:
        if problem.continuous:
            raise PolicyError(
                "guarantee=True rests on counts of variables of 0 and 1, but these are numbers between. Leave it out, "
                "or give continuous=False."
            )
        self._delta, self._share, self._scale, self._growth = delta, share, scale, growth
        super().__init__(problem, self._guaranteed_parts)

    def _guaranteed_parts(self, problem: Problem) -> Parts:
        estimator, state, reach, _ = parts_of(problem, self._scale, growth=self._growth)
        learn = keep_intervals(state, problem.order, self._delta)
        return Parts(estimator._replace(learn=learn), state, reach, guaranteed(state, self._share))

    def choose(self, now: Situation) -> Choice:
        choice = super().choose(now)
        return choice._replace(note=NEARLY) if self._share > 0.0 else choice

    def compared(self, now: Situation) -> Sequence[tuple[Action, float]]:
        return [(action, index) for action, index in super().compared(now) if index > -math.inf]

    def _teach(self, rounds: Rounds, sizes: NDArray[np.int64] | None) -> None:
        if sizes is None:
            super()._teach(rounds, None)
            return
        for rows in batches(sizes):  # the kept intervals are looked at after each batch
            super()._teach(rounds.part(rows), np.array([rows.stop - rows.start]))
            look_again(self.state)

    def _expect(self, state: Any, fixed: Array, was_set: NDArray[np.bool_], size: int) -> Any:
        state = super()._expect(state, fixed, was_set, size)
        look_again(state)
        return state
