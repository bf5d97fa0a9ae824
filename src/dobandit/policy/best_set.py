"""BestSet: for those who only want the answer. It plays what tells the leader from its rival soonest.

C = influence of the rival - influence of the leader, cell by cell (`policy.influences`).
What a round of S is expected to take off the variance of E[Y | rival] - E[Y | leader]:
    gain(S) = sum over cells of visits(S, c) C(c)^2 p (1 - p) / (n(c) + 1)^2.
Half of the rounds go to the action with the largest gain, a quarter to the second, an eighth to the leader, the rest to
any. The rival is the action whose upper end, ahead of the leader, is highest: an asymptotic confidence sequence of the
difference, delta shared by all other actions. As soon as that is at most epsilon, the leader is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import PolicyError
from dobandit.estimation.confidence import asymptotic_reach
from dobandit.oracle.actions import Action
from dobandit.policy.base import Policy, checked_answer, require_bool, words_of_two
from dobandit.policy.causal_engine import CausalEngine, parts_of
from dobandit.policy.engine import HANDFUL, Array, Choice, Draws, Engine, Gap, Rounds, Situation
from dobandit.policy.influences import bearing_rows, contrast_variances, influences_of
from dobandit.policy.problem import Problem
from dobandit.policy.proved_best_set import ProvedBestSetEngine
from dobandit.policy.recording import Recorder
from dobandit.policy.world import World

_C = 2.0  # standard errors, of the intervals of weights
_SHARES = 0.5, 0.75, 0.875  # of the rounds: the largest gain, the second, the leader; the rest for any action
_TELLS_APART = "this round is to tell them apart"
_LEAST_SPREAD = 0.02  # p (1 - p) of a cell that seems certain


@dataclass(frozen=True)
class BestSet(Policy):
    """Find an action that no allowed one is better than by more than epsilon, in as few rounds as can be; then play it.

    epsilon  how much the answer may fall short of the best, above 0 and below 1
    delta    with what probability the answer may fall short by more, above 0 and below 1
    proof    whether the answer is to be proved: it then takes several times as many rounds. Without, its intervals are
             asymptotic confidence sequences, whose coverage is shown by simulation

    It plays the actions that tell the one that looks best from its closest rival soonest. What is played on the way is
    of no account: for rounds that should pay, use CausalUCB.

    >>> import dobandit as dob
    >>> learner = dob.BestSet(epsilon=0.1, delta=0.05).start(dob.paper.G4.graph, budget=2, seed=0)
    >>> learner.gap()
    1.0
    """

    name: ClassVar[str] = "best-set"
    links: ClassVar[str] = "auto"

    epsilon: float = 0.05
    delta: float = 0.05
    proof: bool = False

    def __post_init__(self) -> None:
        checked_answer(self.epsilon, self.delta)
        require_bool("proof", self.proof)

    @property
    def label(self) -> str:
        return f"BestSet ({self.epsilon:g}{', proof' if self.proof else ''})"

    @property
    def stop_within(self) -> float:
        return float(self.epsilon)

    def engine(self, problem: Problem) -> Engine:
        if problem.continuous:
            raise PolicyError(
                "BestSet rests on counts of variables of 0 and 1, but these are numbers between. Use LUCB, which takes "
                "each action for an arm, or give continuous=False."
            )
        of = ProvedBestSetEngine if self.proof else BestSetEngine
        return of(problem, float(self.epsilon), float(self.delta))


class Standing(NamedTuple):
    """The actions, which of them leads, which may be ahead of it the most, by how much at most, and what each is
    expected to take off the variance of the difference."""

    actions: Sequence[Action]
    leader: int
    rival: int
    gap: float
    gain: Array


class BestSetEngine(CausalEngine):
    """A causal engine that plays what tells the leader from its rival soonest."""

    def __init__(self, problem: Problem, epsilon: float, delta: float) -> None:
        super().__init__(problem, partial(parts_of, scale=_C))
        self.epsilon, self.delta = epsilon, delta
        self._set_to: dict[tuple[int, float], int] = {}  # rounds in which a variable was set to a value

    def copy(self) -> Self:
        twin = super().copy()
        twin._set_to = dict(self._set_to)
        return twin

    def _take(self, rounds: Rounds, sizes: NDArray[np.int64] | None) -> None:
        for row, v in np.argwhere(rounds.was_set).tolist():
            key = v, float(rounds.values[row, v])
            self._set_to[key] = self._set_to.get(key, 0) + int(rounds.counts[row])
        super()._take(rounds, sizes)

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, now: Situation) -> Choice:
        found = self._standing(now)
        if found.gap <= self.epsilon or len(found.actions) == 1:
            return Choice(found.actions[found.leader], math.nan)
        untried = self._untried(found.actions, now)
        if untried:
            return Choice(untried[min(int(now.draws[2] * len(untried)), len(untried) - 1)], math.nan)
        second, first = np.argsort(found.gain, kind="stable")[-2:].tolist()
        best, next_best, leads = _SHARES
        u = now.draws[1]
        row = first if u < best else second if u < next_best else found.leader
        if u >= leads:
            row = min(int(now.draws[2] * len(found.actions)), len(found.actions) - 1)
        return Choice(found.actions[row], math.nan)

    def _untried(self, actions: Sequence[Action], now: Situation) -> list[Action]:
        """Actions that set most of what hardly any round has set yet: that it was so by itself does not count, since
        what made it so may also move the target."""
        under_way: dict[tuple[int, float], int] = {}
        for one in now.pending:
            for key in zip(one.action.ids, one.action.values, strict=True):
                under_way[key] = under_way.get(key, 0) + one.size
        news = [
            sum(
                self._set_to.get(key, 0) + under_way.get(key, 0) < HANDFUL
                for key in zip(action.ids, action.values, strict=True)
            )
            for action in actions
        ]
        most = max(news)
        return [action for action, new in zip(actions, news, strict=True) if new == most] if most else []

    def compared(self, now: Situation) -> Sequence[tuple[Action, float]]:
        return []

    def runner_up(self, action: Action, now: Situation) -> tuple[Action, float] | None:
        """The other one of leader and rival, with the upper end of its interval."""
        found = self._standing(now)
        rows = [found.actions[i] for i in (found.leader, found.rival)]
        other = next((one for one in rows if one != action), None)
        return None if other is None else (other, self.predict(other, now.context).high)

    def reason(self, action: Action, now: Situation) -> str:
        found = self._standing(now)
        best, rival = found.actions[found.leader], found.actions[found.rival]
        return words_of_two(self.problem, best, rival, found.gap, self.epsilon, bool(now.pending), _TELLS_APART)

    def gap(self, action: Action, now: Situation, within: float | None = None) -> Gap:
        found = self._standing(now._replace(pending=()), action)
        if self._untried(found.actions, now._replace(pending=())):
            return Gap(1.0)
        room = self.epsilon if within is None else within
        return Gap(found.gap, max(math.ceil(((found.gap / room) ** 2 - 1.0) * self.rounds), 0))

    def _standing(self, now: Situation, leader: Action | None = None) -> Standing:
        actions, state = self.rivals(now), self.state_with_pending(now.pending)
        if leader is not None and leader not in actions:
            actions = [*actions, leader]
        context = self.believed.known(now.context)
        patterns = self._moments.patterns(state)
        if patterns is None:
            return self._by_draws(actions, leader, context)
        order, tables, steps = patterns.actions.order, patterns.tables, patterns.steps
        held = np.array([self.believed.flagged(action).over(context)[order] for action in actions])
        value, influence, visits = influences_of(steps, patterns.states, tables.mean, held)
        best = int(np.argmax(value)) if leader is None else actions.index(leader)
        apart = influence - influence[best]
        variance = contrast_variances(state, steps, tables, apart)
        seen = self._moments.seen(state)
        upper = value - value[best] + self._shared_reach(len(actions)) * np.sqrt(np.maximum(variance, 0.0))
        rows = bearing_rows(steps, influence, seen)
        upper[np.minimum(rows, rows[best]) < HANDFUL] = 1.0
        upper[best] = -math.inf
        rival = int(np.argmax(upper)) if len(actions) > 1 else best
        spread = np.maximum(tables.mean * (1.0 - tables.mean), _LEAST_SPREAD)
        gain = visits @ (apart[rival] ** 2 * spread / (seen + 1.0) ** 2)
        return Standing(actions, best, rival, min(max(float(upper[rival]), 0.0), 1.0), gain)

    def _shared_reach(self, count: int) -> float:
        return asymptotic_reach(max(self.rounds, 1), self.delta / max(count - 1, 1))

    def _by_draws(self, actions: Sequence[Action], leader: Action | None, context: Array) -> Standing:
        """Where there are no tables: leader and rival are played by turns."""
        values = self._moments.of(self.state, actions, context).value
        best = int(np.argmax(values)) if leader is None else list(actions).index(leader)
        told = self.contrast(actions[best], actions, context)
        wider = self._shared_reach(len(actions)) / self.reach if self.rounds else 1.0
        upper = told.value + wider * (told.high - told.value)
        upper[best] = -math.inf
        rival, gain = int(np.argmax(upper)), np.zeros(len(actions))
        gain[[rival, best]] = 2.0, 1.0
        return Standing(actions, best, rival, min(max(float(upper[rival]), 0.0), 1.0), gain)

    # -- simulation ----------------------------------------------------------------------------------------------

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        Engine.run(self, world, recorder, draws)  # the compiled rounds are those of the causal engine
