"""BestSet: for those who only want the answer. LUCB over actions on intervals that hold at every round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError
from dobandit.estimation.confidence import checked_delta
from dobandit.oracle.actions import Action
from dobandit.oracle.contest import Contest, Own, Standing, contest, standing, to_play
from dobandit.policy.base import Policy, positive
from dobandit.policy.engine import Choice, Draws, Engine, Rounds, Situation, copied
from dobandit.policy.guaranteed_engine import GuaranteedEngine
from dobandit.policy.model_engine import KEPT_ORACLES
from dobandit.policy.model_rounds import ModelPlan
from dobandit.policy.own_outcomes import expect_outcomes, note_rounds, numbered, outcomes_of, own_outcomes
from dobandit.policy.problem import Problem
from dobandit.policy.recording import Recorder
from dobandit.policy.world import World
from dobandit.texts import decimals, fixed

_C = 2.0  # standard errors, of the intervals of weights
_MOST_CELLS = 1 << 22  # actions x contexts, each with its own outcomes
ANSWER = "it is the answer"
ANSWER_EXPECTED = "it is the answer if the rounds under way bring what is expected"


@dataclass(frozen=True)
class BestSet(Policy):
    """Find an action that no allowed one is better than by more than epsilon, in as few rounds as can be; then play it.

    epsilon  how much the answer may fall short of the best, above 0 and below 1
    delta    with what probability the answer may fall short by more, above 0 and below 1

    It plays the action that looks best or the one that may be ahead of it the most, by a coin, until that lead is at
    most epsilon. The lead is bounded by what causes what and by the actions' own outcomes, whichever says more. What is
    played on the way is of no account: for rounds that should pay, use CausalUCB.

    >>> import dobandit as dob
    >>> learner = dob.BestSet(epsilon=0.1, delta=0.05).start(dob.paper.G4.graph, budget=2, seed=0)
    >>> learner.gap()
    1.0
    """

    name: ClassVar[str] = "best-set"
    links: ClassVar[str] = "auto"

    epsilon: float = 0.05
    delta: float = 0.05

    def __post_init__(self) -> None:
        checked_answer(self.epsilon, self.delta)

    @property
    def label(self) -> str:
        return f"BestSet ({self.epsilon:g})"

    @property
    def stop_within(self) -> float:
        return float(self.epsilon)

    def engine(self, problem: Problem) -> Engine:
        if problem.continuous:
            raise PolicyError(
                "BestSet rests on counts of variables of 0 and 1, but these are numbers between. Use LUCB, which takes "
                "each action for an arm, or give continuous=False."
            )
        return BestSetEngine(problem, float(self.epsilon), float(self.delta))


def checked_answer(epsilon: object, delta: float) -> None:
    """Refuse what no answer can be wanted within."""
    if positive("epsilon", epsilon) >= 1.0:
        raise PolicyError(f"epsilon must be above 0 and below 1, but got {epsilon!r}. Try 0.05.")
    checked_delta(delta)


class BestSetEngine(GuaranteedEngine):
    """A causal engine that lets two actions compete until it has the answer. Half of delta is for the nodes' intervals,
    half for the actions' own outcomes."""

    def __init__(self, problem: Problem, epsilon: float, delta: float) -> None:
        super().__init__(problem, delta / 2, _C)
        self.epsilon, self.delta = epsilon, delta
        actions = self.plan.oracle.listing.actions
        cells = len(actions.ids) << len(problem.context_ids)
        if cells > _MOST_CELLS:
            raise PolicyError(
                f"BestSet keeps the outcomes of every allowed action in every context, but {len(actions.ids):,} "
                f"actions and {len(problem.context_ids)} context variables are too many. Make fewer variables context."
            )
        self._number = numbered(actions)
        self._own = own_outcomes(problem.context_ids, problem.graph.arrays.target, len(actions.ids))
        self._contests: dict[int, tuple[Contest, NDArray[np.int64]]] = {}

    def copy(self) -> Self:
        twin = super().copy()
        twin._own, twin._contests = copied(self._own), {}
        return twin

    def _learn(self, rounds: Rounds) -> None:
        note_rounds(self._own, self._number, rounds)
        super()._learn(rounds)

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, now: Situation) -> Choice:
        game, found = self._standing(now)
        row = int(to_play(game, found, now.draws[1]))
        return Choice(game.bounds.listing.actions.row(row), math.nan)  # one of two, not the largest of many

    def compared(self, now: Situation) -> Sequence[tuple[Action, float]]:
        return []

    def runner_up(self, action: Action, now: Situation) -> tuple[Action, float] | None:
        """The other one of the two that competed, with the upper end of its interval."""
        game, found = self._standing(now)
        rows = [game.bounds.listing.actions.row(int(i)) for i in (found.best, found.rival)]
        other = next((one for one in rows if one != action), None)
        return None if other is None else (other, self.predict(other, now.context).high)

    def reason(self, action: Action, now: Situation) -> str:
        game, found = self._standing(now)
        best, rival = (game.bounds.listing.actions.row(int(i)) for i in (found.best, found.rival))
        return words_of_two(self.problem, best, rival, float(found.gap), self.epsilon, bool(now.pending))

    def _standing(self, now: Situation, best: int = -1) -> tuple[Contest, Standing]:
        plan, state = self._plan_for(now.available), self._expecting(now.pending)
        game, columns = self._contest(plan)
        outcomes = expect_outcomes(self._own, self._number, now.pending)
        own = Own(*outcomes_of(outcomes, columns, now.context), outcomes.plays.size, self.delta / 2)
        return game, standing(game, plan.layout, state, own, now.context, best, now.draws[0])

    def _contest(self, plan: ModelPlan) -> tuple[Contest, NDArray[np.int64]]:
        """The contest of a plan's actions, and the columns of their own outcomes."""
        kept = self._contests.get(id(plan.oracle))
        if kept is None or kept[0].bounds is not plan.oracle:
            if len(self._contests) >= KEPT_ORACLES:
                self._contests.pop(next(iter(self._contests)))
            there = numbered(plan.oracle.listing.actions)
            columns = np.array([self._number.get(action, -1) for action in there], dtype=np.int64)
            game = contest(plan.oracle, self.epsilon, len(self.problem.graph))
            kept = self._contests[id(plan.oracle)] = game, columns
        return kept

    # -- answers and simulation ----------------------------------------------------------------------------------

    def gap(self, action: Action, now: Situation) -> float | None:
        row = numbered(self._plan_for(now.available).oracle.listing.actions).get(action)
        if row is None:
            return super().gap(action, now)
        return float(self._standing(now._replace(draws=np.zeros(self.draws), pending=()), row)[1].gap)

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        Engine.run(self, world, recorder, draws)  # the compiled rounds are those of the guaranteed engine

    def search(self, world: World, draws: Draws, within: float) -> int | None:
        """As every engine does it, looking at the intervals once per round."""
        for t, (world_draws, policy_draws) in enumerate(zip(draws.world, draws.policy, strict=True)):
            game, found = self._standing(Situation(policy_draws, world.context(world_draws)))
            if found.gap <= within:
                return t
            row = int(to_play(game, found, policy_draws[1]))
            self.update(world.play(game.bounds.listing.actions.row(row), world_draws))
        return None


def words_of_two(problem: Problem, best: Action, rival: Action, gap: float, epsilon: float, pending: bool) -> str:
    """Why one of two that compete was played."""
    if gap <= epsilon:
        return ANSWER_EXPECTED if pending else ANSWER
    pairs = (action.named(problem.graph).items() for action in (best, rival))
    one, other = (", ".join(f"{name}={value:g}" for name, value in pair) or "nothing" for pair in pairs)
    better = fixed(gap, decimals(gap))
    return f"setting {one} looks best, but setting {other} may be better by up to {better}; a coin chose between them"
