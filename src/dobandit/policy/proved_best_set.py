"""The engine of `BestSet(proof=True)`: LUCB over actions on intervals that hold at every round.

b: largest E[Y] under the estimate.  U, L: the ends of an action's interval, each the tighter of two: what the nodes'
intervals allow (`oracle.interval_pass`), and the Kullback-Leibler interval of the action's own outcomes at the level
of LUCB on arms.  A(c, b) = min(what c can be ahead of b by the nodes' intervals (`difference_bound`), U(c) - L(b)).
c: the action with the largest A(c, b). b is the answer as soon as A(c, b) <= epsilon; until then one of both is played,
by a fair coin (Kalyanakrishnan and others 2012 play both).
The nodes' intervals fail with probability delta / 2, the ends by own outcomes that an answer rests on (the upper one of
the truly best action, the lower ones of the others) with delta / 2 together: an answer is wrong with delta at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.kl import kl_level, kl_lower, kl_upper
from dobandit.kernels import kernel
from dobandit.oracle.action_list import pick_action
from dobandit.oracle.actions import Action
from dobandit.oracle.difference_bound import PairScratch, advantage, pair_scratch
from dobandit.oracle.interval_pass import IntervalPass, bound_kept
from dobandit.policy.base import BY_COIN, words_of_two
from dobandit.policy.engine import Choice, Draws, Engine, Gap, Rounds, Situation, copied
from dobandit.policy.evaluators import Evaluator
from dobandit.policy.guaranteed_engine import GuaranteedEngine
from dobandit.policy.model_engine import KEPT_EVALUATORS
from dobandit.policy.own_outcomes import (
    columns_of,
    expect_outcomes,
    note_rounds,
    numbered,
    outcomes_of,
    own_outcomes,
    require_room,
)
from dobandit.policy.problem import Problem
from dobandit.policy.recording import Recorder
from dobandit.policy.world import World

_C = 2.0  # standard errors, of the intervals of weights


class ProvedBestSetEngine(GuaranteedEngine):
    """A causal engine that lets two actions compete until it has the answer. Half of delta is for the nodes' intervals,
    half for the actions' own outcomes."""

    watches_graph = False
    keeps_outcomes = True

    def __init__(self, problem: Problem, epsilon: float, delta: float) -> None:
        super().__init__(problem, delta / 2, _C)
        self.epsilon, self.delta = epsilon, delta
        actions = self.listed.actions
        require_room("BestSet", len(actions.ids), len(problem.context_ids))
        self._number = numbered(actions)
        self._own = own_outcomes(problem.context_ids, problem.graph.arrays.target, actions)
        self._contests: dict[int, tuple[IntervalPass, PairScratch, NDArray[np.int64]]] = {}

    def copy(self) -> Self:
        twin = super().copy()
        twin._own, twin._contests = copied(self._own), {}
        return twin

    def _take(self, rounds: Rounds, sizes: NDArray[np.int64] | None) -> None:
        note_rounds(self._own, self._number, rounds)
        super()._take(rounds, sizes)

    def update_history(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None) -> None:
        super()._take(rounds, sizes)

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, now: Situation) -> Choice:
        best, rival, gap = self._standing(now)
        row = rival if gap > self.epsilon and now.draws[1] < 0.5 else best
        return Choice(row, math.nan)  # one of two, not the largest of many

    def compared(self, now: Situation) -> Sequence[tuple[Action, float]]:
        return []

    def runner_up(self, action: Action, now: Situation) -> tuple[Action, float] | None:
        """The other one of the two that competed, with the upper end of its interval."""
        best, rival, _ = self._standing(now)
        other = next((one for one in (best, rival) if one != action), None)
        return None if other is None else (other, self.predict(other, now.context).high)

    def reason(self, action: Action, now: Situation) -> str:
        best, rival, gap = self._standing(now)
        return words_of_two(self.problem, best, rival, gap, self.epsilon, bool(now.pending), BY_COIN)

    def _standing(self, now: Situation, best: Action | None = None) -> Standing:
        """Who is best (None: by the estimate), and who may be better."""
        evaluator, state = self.evaluator_for(now.available), self.state_with_pending(now.pending)
        (_, plan), actions = evaluator, evaluator.plan.actions
        work, columns = self._contest(evaluator)
        context = self.believed.known(now.context)
        if best is None:
            self.score(evaluator, state, context, optimistic=False)
            leader = int(np.argmax(actions.scores["index"]))
        else:
            leader = numbered(actions.actions)[best]
        outcomes = expect_outcomes(self._own, self._number, now.pending)
        plays, total = outcomes_of(outcomes, columns, now.context)
        bound_kept(state, plan, context)
        tighten(actions.scores, plays, total, outcomes.plays.size, self.delta / 2)
        rival, gap = rival_of(plan, work, context, leader, now.draws[0])
        return Standing(actions.actions.row(leader), actions.actions.row(int(rival)), float(gap))

    def _contest(self, evaluator: Evaluator) -> tuple[PairScratch, NDArray[np.int64]]:
        """What it takes to compare two of an evaluator's actions, and the columns of their own outcomes."""
        plan: IntervalPass = evaluator.plan
        kept = self._contests.get(id(plan))
        if kept is None or kept[0] is not plan:
            if len(self._contests) >= KEPT_EVALUATORS:
                self._contests.pop(next(iter(self._contests)))
            columns = columns_of(self._number, numbered(plan.actions.actions))
            kept = self._contests[id(plan)] = plan, pair_scratch(plan), columns
        return kept[1:]

    # -- answers and simulation ----------------------------------------------------------------------------------

    def gap(self, action: Action, now: Situation, within: float | None = None) -> Gap:
        if action not in numbered(self.evaluator_for(now.available).plan.actions.actions):
            return super().gap(action, now, within)
        return Gap(self._standing(now._replace(draws=np.zeros(self.draws), pending=()), action).gap)

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        Engine.run(self, world, recorder, draws)  # the compiled rounds are those of the guaranteed engine


class Standing(NamedTuple):
    """The best and its rival, and by how much the rival can be ahead at most; at least 0."""

    best: Action
    rival: Action
    gap: float


@kernel
def tighten(scores: Any, plays: Any, total: Any, cells: int, delta: float) -> None:
    """Bring the ends of every action in to those of its own outcomes, where these are tighter.

    plays, total  rounds and sum of Y of each action
    cells, delta  of how many such counts the intervals hold together, but with probability delta
    """
    for i in range(len(scores)):
        n = plays[i]
        if n > 0.0:
            mean, level = total[i] / n, kl_level(n, cells, delta)
            scores[i]["high"] = min(scores[i]["high"], kl_upper(mean, n, level))
            scores[i]["low"] = max(scores[i]["low"], kl_lower(mean, n, level))


@kernel
def rival_of(plan: Any, work: Any, fixed: Any, best: int, uniform: float) -> tuple[int, float]:
    """Who can be ahead of row `best` the most, and by how much, from the intervals as they stand. A row whose upper end
    is no higher above the lower end of the best than what another was found to have need not be looked at."""
    scores, most, start = plan.actions.scores, -math.inf, 0
    for i in range(len(scores)):
        scores[i]["index"] = -math.inf
        if i != best and (start == best or scores[i]["high"] > scores[start]["high"]):
            start = i
    for k in range(len(scores)):
        i = start if k == 0 else (k - 1 if k <= start else k)
        room = scores[i]["high"] - scores[best]["low"]
        if i != best and room >= most:
            scores[i]["index"] = min(advantage(plan, work, fixed, i, best), room)
            most = max(most, scores[i]["index"])
    if most == -math.inf:
        return best, 0.0
    return pick_action(scores, uniform), max(most, 0.0)
