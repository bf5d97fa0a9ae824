"""The engine of `CausalUCB(safe=True)`: the causal learner, insured against a wrong graph (`policy.insurance`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.errors import PolicyError
from dobandit.oracle.actions import Action
from dobandit.policy.causal_engine import CausalEngine, parts_of
from dobandit.policy.engine import Array, Choice, Contrast, Estimate, Rounds, Situation
from dobandit.policy.evaluators import every_action
from dobandit.policy.insurance import by_own_outcomes, choose_insured, deviation, insure
from dobandit.policy.model_engine import Parts
from dobandit.policy.own_outcomes import OwnOutcomes, note_rounds, numbered, own_outcomes, pattern_of, require_room
from dobandit.policy.problem import Problem

OWN = "an insurance round, in which only the outcomes of each action itself count"


def safe_parts(problem: Problem, scale: float, growth: float) -> Parts:
    """What it is made of; refuses what has too many actions."""
    count = problem.allowed(relevant=False).count()
    if count > limits.MAX_ACTIONS:
        raise PolicyError(
            f"safe=True keeps the outcomes of every allowed action, up to {limits.MAX_ACTIONS:,} of them, but there "
            f"are {count:,}. Lower the budget, or leave safe out."
        )
    require_room("safe=True", count, len(problem.context_ids))
    return parts_of(problem, scale, every_action, growth=growth)


class SafeEngine(CausalEngine):
    """A causal engine that keeps the outcomes of every action by itself."""

    keeps_outcomes = True
    choose_rule = staticmethod(choose_insured)

    @cached_property
    def _number(self) -> dict[Action, int]:
        return numbered(self.listed.actions)

    # -- learning ------------------------------------------------------------------------------------------------

    def _take(self, rounds: Rounds, sizes: NDArray[np.int64] | None) -> None:
        super()._take(rounds, sizes)
        note_rounds(self.own, self._number, rounds)

    def update_history(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None) -> None:
        super()._take(rounds, sizes)

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

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, now: Situation) -> Choice:
        choice = super().choose(now)
        return choice._replace(note=OWN) if by_own_outcomes(self._own_now(now), now.draws[1]) else choice

    def best(self, now: Situation) -> Choice:
        evaluator, context = self.evaluator_for(now.available), self.believed.known(now.context)
        self.score(evaluator, self.state, context, optimistic=False)
        insure(evaluator.plan, self._own_now(now._replace(pending=())), context, self.rho)
        return self._choice(evaluator, int(np.argmax(evaluator.plan.actions.scores["index"])))

    def _own_now(self, now: Situation) -> OwnOutcomes:
        """Those under way are expected to be as predicted."""
        if now.available is None and not now.pending:
            return self.own
        own, actions = self.own, self.evaluator_for(now.available).plan.actions.actions
        columns = np.array([self._number.get(actions.row(i), -1) for i in range(len(actions.ids))], dtype=np.int64)
        # `take` keeps rows together, as the full list's are: kernels would be compiled again for any other order.
        plays, total = (np.where(columns >= 0, part.take(columns, axis=1), 0.0) for part in (own.plays, own.total))
        there, rounds = numbered(actions), own.rounds.copy()
        for one in now.pending:
            rounds += one.size if one.action.ids else 0
            if (i := there.get(one.action, -1)) >= 0:
                pattern = pattern_of(own.context, one.context)
                plays[pattern, i] += one.size
                total[pattern, i] += one.size * self.predict(one.action, one.context).value
        return own._replace(plays=plays, total=total, rounds=rounds)

    # -- answers -------------------------------------------------------------------------------------------------

    def predict(self, action: Action, context: Array) -> Estimate:
        """The model's answer, corrected by the action's own outcomes; the interval is the model's, and lets it in."""
        value, low, high = super().predict(action, context)
        number, own = self._number.get(action, -1), self.own
        pattern = pattern_of(own.context, context)
        if number < 0 or own.plays[pattern, number] <= 0.0:
            return Estimate(value, low, high)
        n, total = float(own.plays[pattern, number]), float(own.total[pattern, number])
        w, off = deviation(value, 0.0, n, total / n, 0.0)
        value = min(max(value + w * off, 0.0), 1.0)
        return Estimate(value, min(low, value), max(high, value))

    def contrast(self, action: Action, others: Sequence[Action], context: Array) -> Contrast:
        """The model's answer; its intervals let in what the corrected values say."""
        _, low, high, half = super().contrast(action, others, context)
        mine = self.predict(action, context).value
        value = np.array([self.predict(other, context).value - mine for other in others])
        return Contrast(value, np.minimum(low, value), np.maximum(high, value), half)
