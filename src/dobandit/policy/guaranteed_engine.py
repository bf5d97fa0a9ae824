"""The engine of `CausalUCB(guarantee=True)`: choices by intervals that hold at every round.

Leeway: of the actions whose intervals reach up nearly as far as the farthest, the one is played that an index speaks
most for.
low, high: the ends of E[Y | do(S)] that hold at every round (`oracle.anytime_values`).  w = high - low.  c: the leeway.
S may be played if high(S) + c w(S) >= max over S' of high(S'). While the intervals hold, playing it then loses
    E[Y | do(best)] - E[Y | do(S)] <= max high - low(S) <= (1 + c) w(S),
where always playing the farthest (c = 0) loses w(S) at most: what is guaranteed of the sum over all rounds, which only
needs that the widths of played actions shrink, is the same but for the factor 1 + c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.errors import PolicyError
from dobandit.estimation.belief import layout_of
from dobandit.estimation.kept_intervals import look_again, watch_of
from dobandit.oracle.actions import Action
from dobandit.oracle.anytime_values import AnytimeValues, anytime_values, bound_kept, bounded_frontier
from dobandit.oracle.joint_pattern import joint_pattern
from dobandit.oracle.listing import Listing, floor_of, pick_best, propose, score
from dobandit.policy.causal_engine import CausalEngine, optimistic_oracle, parts_of
from dobandit.policy.engine import Array, Choice, Rounds, Situation, batches
from dobandit.policy.model_engine import OracleMaker
from dobandit.policy.oracles import listed
from dobandit.policy.problem import Problem


class Leeway(NamedTuple):
    """The oracle: actions, their intervals, and the index that chooses among those that may be played."""

    listing: Listing
    bounds: AnytimeValues  # of the same actions, whose upper ends have a place of their own
    index: Any  # an oracle on `listing`
    share: float  # c


def leeway(bounds: AnytimeValues, index: Any, share: float) -> Leeway:
    """The oracle for the actions of an index, in whose list the values are its own, not those of the bounds."""
    own = index.listing._replace(values=np.zeros(len(index.listing.values)))
    return Leeway(index.listing, bounds._replace(listing=own, joint=None), index, share)


@score.of(Leeway)
def score_leeway(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """The index of every action that may be played, -inf for the others; without optimism (rho 0) of all of them."""
    score(oracle.index, layout, state, rho, fixed)
    if rho[layout.target] > 0.0:
        bound_kept(oracle.bounds, state, fixed)
        values, low, high = oracle.listing.values, oracle.bounds.lower, oracle.bounds.listing.values
        least = floor_of(high)
        for i in range(len(values)):
            if high[i] + oracle.share * (high[i] - low[i]) < least:
                values[i] = -math.inf


propose.of(Leeway)(pick_best)


NEARLY = "of the actions whose intervals reach up far enough, estimate and standard errors speak most for this one"


def anytime_oracle(estimator: Any) -> OracleMaker:
    """The upper ends of the intervals that hold at every round; without optimism, what the estimate says."""

    def make(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
        graph, count = problem.graph, problem.allowed(available).count()
        frontier = bounded_frontier(graph, np.array(problem.order, dtype=np.int64), layout_of(graph), estimator)
        if frontier is None or (listing is None and count > limits.MAX_ACTIONS):
            what, way_out = f"there are {count:,} of them", "Lower the budget, or leave guarantee out"
            if frontier is None:
                what = "the graph is too wide, or a variable has too many causes"
                way_out = "Leave guarantee out, or draw a graph with fewer causes of each variable"
            raise PolicyError(
                f"guarantee=True computes an interval for every action, up to {limits.MAX_ACTIONS:,} of them, but "
                f"{what}. {way_out}."
            )
        listing = listing or listed(problem, available)
        joint = joint_pattern(graph, listing, estimator, frontier)
        return anytime_values(listing, frontier, joint)

    return make


def leeway_oracle(estimator: Any, share: float) -> OracleMaker:
    """Within the leeway of the intervals, the index of CausalUCB without a guarantee."""
    bounds, index = anytime_oracle(estimator), optimistic_oracle(estimator)

    def make(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
        ends = bounds(problem, listing, available)  # refuses what cannot be listed
        return leeway(ends, index(problem, ends.listing, available), share)

    return make


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
        self._delta, self._share = delta, share
        make = partial(leeway_oracle, share=share) if share > 0.0 else anytime_oracle
        super().__init__(problem, partial(parts_of, scale=scale, oracle=make, growth=growth))

    def _begin(self, believed: Problem) -> None:
        super()._begin(believed)
        plan, order = self.plan, np.array(believed.order, dtype=np.int64)
        nats = math.log(len(order) / self._delta)
        self.plan = plan._replace(watch=watch_of(self.state, order, nats))

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
            look_again(self.plan.watch, self.state)

    def _expect(self, state: Any, fixed: Array, was_set: NDArray[np.bool_], size: int) -> Any:
        state = super()._expect(state, fixed, was_set, size)
        look_again(self.plan.watch, state)
        return state
