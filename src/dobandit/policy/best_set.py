"""BestSet: for those who only want the answer. It plays what tells the leader from its rival soonest.

C = influence of the rival - influence of the leader, cell by cell (`policy.influences`).
What a round of S is expected to take off the variance of E[Y | rival] - E[Y | leader]:
    gain(S) = sum over cells of visits(S, c) C(c)^2 p (1 - p) / (n(c) + 1)^2.
Half of the rounds go to the action with the largest gain, a quarter to the second, an eighth to the leader, the rest to
any. The rival is the action whose upper end, ahead of the leader, is highest: an asymptotic confidence sequence of the
difference, delta shared by all other actions. As soon as that is at most epsilon, the leader is the answer.

With a proof, it is LUCB over actions on intervals that hold at every round.
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
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dobandit.errors import PolicyError
from dobandit.estimation.confidence import asymptotic_reach
from dobandit.estimation.kl import kl_level, kl_lower, kl_upper
from dobandit.kernels import kernel
from dobandit.oracle.action_list import pick_action
from dobandit.oracle.actions import Action
from dobandit.oracle.difference_bound import advantage, pair_scratch
from dobandit.oracle.interval_pass import bound_kept
from dobandit.policy.answers import Gap
from dobandit.policy.base import require_bool
from dobandit.policy.causal_engine import CausalEngine, parts_of
from dobandit.policy.causal_ucb import GuaranteedEngine
from dobandit.policy.engine import Array, Choice, Draws, Engine, Rounds, Situation, copied
from dobandit.policy.influences import bearing_rows, contrast_variances
from dobandit.policy.lucb import FindsAnswer, Standing, TwoCompete
from dobandit.policy.own_outcomes import note_rounds, numbered, outcomes_of, own_outcomes, require_room
from dobandit.policy.problem import Problem
from dobandit.policy.questions import HANDFUL, gap_to_rivals, play_rounds
from dobandit.policy.recording import Recorder, Sizes
from dobandit.policy.world import World
from dobandit.texts import keyword

_C = 2.0  # standard errors, of the intervals of weights
_SHARES = 0.5, 0.75, 0.875  # of the rounds: the largest gain, the second, the leader; the rest for any action
_LEAST_SPREAD = 0.02  # p (1 - p) of a cell that seems certain


@dataclass(frozen=True)
class BestSet(FindsAnswer):
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
    learns_mechanisms: ClassVar[bool] = True

    proof: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_bool("proof", self.proof)

    @property
    def label(self) -> str:
        return f"BestSet ({self.epsilon:g}{', proof' if self.proof else ''})"

    def engine(self, problem: Problem) -> Engine:
        if problem.continuous:
            raise PolicyError(
                "BestSet rests on counts of variables of 0 and 1, but these are numbers between. Use LUCB, which takes "
                f"each action for an arm, or give {keyword('continuous', False)}."
            )
        of = ProvedBestSetEngine if self.proof else BestSetEngine
        return of(problem, float(self.epsilon), float(self.delta))


class Race(NamedTuple):
    """The actions, which of them leads, which may be ahead of it the most, by how much at most, and what each is
    expected to take off the variance of the difference."""

    actions: Sequence[Action]
    leader: int
    rival: int
    gap: float
    gain: Array


class BestSetEngine(TwoCompete, CausalEngine):
    """A causal engine that plays what tells the leader from its rival soonest."""

    played = "this round is to tell them apart"

    def __init__(self, problem: Problem, epsilon: float, delta: float) -> None:
        super().__init__(problem, partial(parts_of, scale=_C))
        self.epsilon, self.delta = epsilon, delta
        self._set_to = Counter[tuple[int, float]]()  # rounds in which a variable was set to a value

    def copy(self) -> Self:
        twin = super().copy()
        twin._set_to = self._set_to.copy()
        return twin

    def update(self, rounds: Rounds, sizes: Sizes = None) -> None:
        for row, v in np.argwhere(rounds.was_set).tolist():
            self._set_to[v, float(rounds.values[row, v])] += int(rounds.counts[row])
        super().update(rounds, sizes)

    def standing(self, now: Situation, best: Action | None = None) -> Standing:
        race = self._race(now, best)
        return Standing(race.actions[race.leader], race.actions[race.rival], race.gap)

    def choose(self, now: Situation) -> Choice:
        race = self._race(now)
        if race.gap <= self.epsilon or len(race.actions) == 1:
            return Choice(race.actions[race.leader], math.nan)
        untried = self._untried(race.actions, now)
        if untried:
            return Choice(untried[min(int(now.draws[2] * len(untried)), len(untried) - 1)], math.nan)
        second, first = np.argsort(race.gain, kind="stable")[-2:].tolist()
        best, next_best, leads = _SHARES
        u = now.draws[1]
        row = first if u < best else second if u < next_best else race.leader
        if u >= leads:
            row = min(int(now.draws[2] * len(race.actions)), len(race.actions) - 1)
        return Choice(race.actions[row], math.nan)

    def _untried(self, actions: Sequence[Action], now: Situation) -> list[Action]:
        """Actions that set most of what hardly any round has set yet: that it was so by itself does not count, since
        what made it so may also move the target."""
        tried = self._set_to.copy()
        for one in now.pending:
            for setting in zip(one.action.ids, one.action.values, strict=True):
                tried[setting] += one.size
        news = [
            sum(tried[setting] < HANDFUL for setting in zip(action.ids, action.values, strict=True))
            for action in actions
        ]
        most = max(news)
        return [action for action, new in zip(actions, news, strict=True) if new == most] if most else []

    def gap(self, action: Action, now: Situation, within: float | None = None) -> Gap:
        now = now._replace(pending=())
        race = self._race(now, action)
        if self._untried(race.actions, now):
            return Gap(1.0)
        room = self.epsilon if within is None else within
        return Gap(race.gap, max(math.ceil(((race.gap / room) ** 2 - 1.0) * self.rounds), 0))

    def _race(self, now: Situation, leader: Action | None = None) -> Race:
        actions, state = self.rivals(now), self.state_with_pending(now.pending)
        if leader is not None and leader not in actions:
            actions = [*actions, leader]
        context = self.believed.known(now.context)
        patterns = self._moments.patterns(state)
        if patterns is None:
            return self._by_draws(actions, leader, context)
        tables = patterns.tables
        value, influence, visits = self._moments.influences(patterns, actions, context)
        best = int(np.argmax(value)) if leader is None else actions.index(leader)
        apart = influence - influence[best]
        variance = contrast_variances(state, tables, apart)
        seen = self._moments.seen(state)
        upper = value - value[best] + self._shared_reach(len(actions)) * np.sqrt(np.maximum(variance, 0.0))
        rows = bearing_rows(tables, influence, seen)
        upper[np.minimum(rows, rows[best]) < HANDFUL] = 1.0
        upper[best] = -math.inf
        rival = int(np.argmax(upper)) if len(actions) > 1 else best
        spread = np.maximum(tables.mean * (1.0 - tables.mean), _LEAST_SPREAD)
        gain = visits @ (apart[rival] ** 2 * spread / (seen + 1.0) ** 2)
        return Race(actions, best, rival, min(max(float(upper[rival]), 0.0), 1.0), gain)

    def _shared_reach(self, count: int) -> float:
        return asymptotic_reach(max(self.rounds, 1), self.delta / max(count - 1, 1))

    def _by_draws(self, actions: Sequence[Action], leader: Action | None, context: Array) -> Race:
        """Where there are no tables: leader and rival are played by turns."""
        values = self._moments.of(self.state, actions, context).value
        best = int(np.argmax(values)) if leader is None else list(actions).index(leader)
        ahead = self.contrast(actions[best], actions, context)
        wider = self._shared_reach(len(actions)) / self.reach if self.rounds else 1.0
        upper = ahead.value + wider * (ahead.high - ahead.value)
        upper[best] = -math.inf
        rival, gain = int(np.argmax(upper)), np.zeros(len(actions))
        gain[[rival, best]] = 2.0, 1.0
        return Race(actions, best, rival, min(max(float(upper[rival]), 0.0), 1.0), gain)

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        play_rounds(self, world, recorder, draws)  # the compiled rounds are those of the causal engine


class ProvedBestSetEngine(TwoCompete, GuaranteedEngine):
    """A causal engine that lets two actions compete until it has the answer. Half of delta is for the nodes' intervals,
    half for the actions' own outcomes."""

    watches_graph = False

    def __init__(self, problem: Problem, epsilon: float, delta: float) -> None:
        super().__init__(problem, delta / 2, _C)
        self.epsilon, self.delta = epsilon, delta
        actions = self.listed.actions
        require_room("BestSet", len(actions.ids), len(problem.context_ids))
        self._number = numbered(actions)
        self._own = own_outcomes(problem.context_ids, problem.graph.arrays.target, actions)

    def copy(self) -> Self:
        twin = super().copy()
        twin._own = copied(self._own)
        return twin

    def update(self, rounds: Rounds, sizes: Sizes = None) -> None:
        note_rounds(self._own, self._number, rounds)
        super().update(rounds, sizes)

    def update_history(self, rounds: Rounds, sizes: Sizes = None) -> None:
        super().update(rounds, sizes)

    def standing(self, now: Situation, best: Action | None = None) -> Standing:
        evaluator, state = self.evaluator_for(now.available), self.state_with_pending(now.pending)
        plan, context, own = evaluator.plan, self.believed.known(now.context), self._own
        scores, rows = plan.actions.scores, numbered(plan.actions.actions)
        if best is None:
            self.score(evaluator, state, context, optimistic=False)
            leader = int(np.argmax(scores["index"]))
        else:
            leader = rows[best]
        plays, total = outcomes_of(own, self._number, list(rows), now.context, now.pending)
        bound_kept(state, plan, context)
        tighten(scores, plays, total, own.plays.size, self.delta / 2)
        rival, gap = rival_of(plan, pair_scratch(plan), context, leader, now.draws[0])
        return Standing(plan.actions.actions.row(leader), plan.actions.actions.row(int(rival)), float(gap))

    def gap(self, action: Action, now: Situation, within: float | None = None) -> Gap:
        if action not in numbered(self.evaluator_for(now.available).plan.actions.actions):
            return gap_to_rivals(self, action, now, within)
        return Gap(self.standing(now._replace(draws=np.zeros(self.draws), pending=()), action).gap)

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        play_rounds(self, world, recorder, draws)  # the compiled rounds are those of the guaranteed engine


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
