"""The engine of `CausalUCB(safe=True)`: the causal learner, insured against a wrong graph (`policy.insurance`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.errors import PolicyError
from dobandit.oracle.actions import Action
from dobandit.oracle.listing import Listing, listing_of
from dobandit.policy.causal_engine import CausalEngine, joint_oracle, parts_of
from dobandit.policy.engine import Array, Choice, Contrast, Estimate, Rounds, Situation, copied
from dobandit.policy.insurance import by_own_outcomes, deviation, insured
from dobandit.policy.model_engine import OracleMaker
from dobandit.policy.model_rounds import ModelPlan
from dobandit.policy.own_outcomes import OwnOutcomes, note_rounds, numbered, pattern_of, require_room
from dobandit.policy.problem import Problem
from dobandit.policy.revising import Parts

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
    return parts_of(problem, scale, insured_oracle, growth=growth)


def insured_oracle(estimator: Any) -> OracleMaker:
    """An oracle of all actions with what each did by itself; of the model alone for actions that are given."""
    joint = joint_oracle(estimator)

    def make(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
        if listing is None:
            rows = problem.allowed(available, relevant=False).rows()
            listing = listing_of(problem.order, rows, flags=problem.flags)
        target, nodes = problem.graph.arrays.target, len(problem.graph) + 1
        return insured(joint(problem, listing, available), problem.context_ids, target, nodes)

    return make


class SafeEngine(CausalEngine):
    """A causal engine whose plan has the outcomes of every action by itself."""

    keeps_outcomes = True

    @property
    def _own(self) -> OwnOutcomes:
        own: OwnOutcomes = self.plan.oracle.own
        return own

    @cached_property
    def _number(self) -> dict[Action, int]:
        return numbered(self.plan.oracle.listing.actions)

    def copy(self) -> Self:
        twin = super().copy()
        twin.plan = self.plan._replace(oracle=self.plan.oracle._replace(own=copied(self._own)))
        return twin

    # -- learning ------------------------------------------------------------------------------------------------

    def _take(self, rounds: Rounds, sizes: NDArray[np.int64] | None) -> None:
        super()._take(rounds, sizes)
        note_rounds(self._own, self._number, rounds)

    def update_history(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None) -> None:
        super()._take(rounds, sizes)

    def _begin(self, believed: Problem) -> None:
        """With the outcomes of before: another graph may list the same actions in another order."""
        before = self.plan.oracle if "_plan" in self.__dict__ else None
        super()._begin(believed)
        if before is not None:
            column = numbered(before.listing.actions)
            columns = [column[action] for action in self._number]
            self._own.plays[:], self._own.total[:] = before.own.plays[:, columns], before.own.total[:, columns]
            self._own.rounds[:] = before.own.rounds

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, now: Situation) -> Choice:
        plan, index = self._proposed(now)
        choice = self._choice(plan, index)
        return choice._replace(note=OWN) if by_own_outcomes(plan.oracle.own, now.draws[1]) else choice

    def plan_now(self, now: Situation) -> ModelPlan:
        """Those under way are expected to be as predicted."""
        if now.available is None and not now.pending:
            return self.plan
        plan, own = self._plan_for(now.available), self._own
        actions = plan.oracle.listing.actions
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
        own = own._replace(plays=plays, total=total, rounds=rounds)
        return plan._replace(oracle=plan.oracle._replace(own=own))

    # -- answers -------------------------------------------------------------------------------------------------

    def predict(self, action: Action, context: Array) -> Estimate:
        """The model's answer, corrected by the action's own outcomes; the interval is the model's, and lets it in."""
        value, low, high = super().predict(action, context)
        number, own = self._number.get(action, -1), self._own
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
