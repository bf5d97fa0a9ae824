"""Policies that treat each action as an arm and ignore what causes what: UCB and epsilon-greedy, the paper's baselines,
KL-UCB and Thompson sampling, the strongest of them; and their engine, which the yardsticks share that play at random or
always the same.

Arms are the allowed actions: exactly K variables where nothing can do harm, else every size. A round in which fewer
variables are available can leave none of these; then the allowed actions of that round are arms of their own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import InterventionError, listed
from dobandit.estimation.confidence import asymptotic_reach, beta_binomial, standard_error
from dobandit.estimation.kl import kl_upper
from dobandit.kernels import borrowed, inlined, kernel, with_kernels
from dobandit.oracle.action_list import pick
from dobandit.oracle.actions import Action, Actions
from dobandit.oracle.posterior_draw import draw_beta
from dobandit.policy.answers import Contrast, percent
from dobandit.policy.base import Policy, positive, require_bool
from dobandit.policy.engine import UNIFORMS, Choice, Draws, Engine, Estimate, Rounds, Situation, copied
from dobandit.policy.own_outcomes import NO_CONTEXT, note_rounds, numbered, outcomes_of, own_outcomes
from dobandit.policy.problem import Problem, possible_arms
from dobandit.policy.questions import HANDFUL, contrast_of_intervals
from dobandit.policy.recording import Recorder, record_round
from dobandit.policy.world import World, draw_round, see_context

Array = NDArray[np.float64]
# A rule takes (plays, total, index, settings, t, draws): rounds and sum of Y by arm; room for the index of each arm,
# which stays as it is where nothing is compared; the policy's settings; rounds so far; the round's random numbers: to
# break ties, whether to explore, where, and as many more as the engine asks for. It returns the arm to play.
_MOST_DRAWN = 1_000  # arms with random numbers of their own
CHOOSE: Any = None  # the rule, which `kernels.with_kernels` puts into the loop


@kernel
def ucb_arm(plays: Any, total: Any, index: Any, settings: Any, t: int, draws: Any) -> int:
    """settings: scale."""
    log_t, scale = math.log(t + 1.0), settings[0]
    for i in range(len(index)):
        n = max(plays[i], 1.0)  # processors work out several at a time where nothing depends on what comes first
        value = total[i] / n + scale * math.sqrt(log_t / n)
        index[i] = value if plays[i] > 0.0 else math.inf
    return pick(index, draws[0])


@kernel
def kl_ucb_arm(plays: Any, total: Any, index: Any, settings: Any, t: int, draws: Any) -> int:
    """settings: c."""
    log_t = math.log(t + 1.0)
    level = log_t + settings[0] * math.log(max(log_t, 1.0))
    for i in range(len(index)):
        index[i] = kl_upper(total[i] / plays[i], plays[i], level) if plays[i] > 0.0 else math.inf
    return pick(index, draws[0])


@kernel
def epsilon_greedy_arm(plays: Any, total: Any, index: Any, settings: Any, t: int, draws: Any) -> int:
    """settings: epsilon."""
    if draws[1] < settings[0]:
        return any_arm(index, draws[2])
    for i in range(len(index)):
        mean = total[i] / max(plays[i], 1.0)
        index[i] = mean if plays[i] > 0.0 else 1.0
    return pick(index, draws[0])


@kernel
def thompson_arm(plays: Any, total: Any, index: Any, settings: Any, t: int, draws: Any) -> int:
    """A draw from Beta(1 + successes, 1 + failures) for each arm; many arms share numbers."""
    for i in range(len(index)):
        at = UNIFORMS + (2 * i) % (len(draws) - UNIFORMS)
        index[i] = draw_beta(1.0 + total[i], 1.0 + plays[i] - total[i], draws[at], draws[at + 1])
    return pick(index, draws[0])


@inlined
def any_arm(index: Any, uniform: float) -> int:
    """Any of the arms."""
    return min(int(uniform * len(index)), len(index) - 1)


@kernel
def play_arms(
    settings: Any, ids: Any, to: Any, plays: Any, total: Any, t: int, target: int, world: Any, tape: Any,
    world_draws: Any, policy_draws: Any,
) -> None:  # fmt: skip
    """See the context, choose, act, record, learn, after t rounds; world and tape: the arrays of a world and a tape."""
    nodes, slots, points, seen, context, known, _, _, _ = borrowed(world)
    expected, best, played, curve, totals = borrowed(tape)
    ids, to, plays, total, settings = borrowed(ids), borrowed(to), borrowed(plays), borrowed(total), borrowed(settings)
    world_draws, policy_draws, scratch = borrowed(world_draws), borrowed(policy_draws), np.zeros(len(ids))
    index = borrowed(scratch)
    for row in range(len(world_draws)):
        pattern = see_context(nodes, slots, points, context, known, world_draws, row)
        arm = CHOOSE(plays, total, index, settings, t + row, policy_draws[row])
        draw_round(nodes, slots, points, seen, ids, to, arm, world_draws, row)
        reward = nodes[seen[target]["node"]]["value"]
        record_round(best, played, curve, totals, pattern, arm, expected[pattern, arm], reward)
        plays[arm] += 1.0
        total[arm] += reward


class ArmsEngine(Engine):
    """One arm per allowed action, or the actions given.

    rule      chooses the arm to play; see `CHOOSE`
    more      how many random numbers it takes of each arm
    settings  of the rule
    prune     whether sets fall away that cannot be best by what causes what
    state     what the arms brought, and, in columns behind them, actions told that are none
    """

    bonus_words = "for having been tried so little"
    rounds = 0

    def __init__(
        self,
        problem: Problem,
        rule: Any,
        settings: Sequence[float],
        arms: Actions | None = None,
        prune: bool = False,
        more: int = 0,
    ) -> None:
        self.problem, self.rule, self.settings, self.prune = problem, rule, np.array(settings, dtype=float), prune
        self.arms, self.fixed = problem.allowed(relevant=False).rows() if arms is None else arms, arms is not None
        if prune:
            kept = possible_arms(problem, self.arms)
            self.arms = Actions(self.arms.ids[kept], self.arms.values[kept])
        self.state = own_outcomes(NO_CONTEXT, problem.graph.arrays.target, self.arms)
        self._number = numbered(self.arms)
        self.draws = UNIFORMS + more * min(len(self.arms.ids), _MOST_DRAWN)

    def actions(self) -> Actions:
        return self.arms

    def copy(self) -> Self:
        twin = copy.copy(self)
        twin.state, twin._number = copied(self.state), dict(self._number)
        return twin

    def update(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None) -> None:
        self.state = note_rounds(self.state, self._number, rounds, every=True)
        self.rounds += int(rounds.counts.sum())

    def choose(self, now: Situation) -> Choice:
        arms, index, arm = self._indices(now)
        return Choice(arms.row(arm), float(index[arm]))

    def compare(self, now: Situation, optimistic: bool = True) -> Sequence[tuple[Action, float]]:
        if optimistic:
            draws = now.draws.copy()
            draws[1] = 1.0  # greedy ones do not explore
            arms, index, _ = self._indices(now._replace(draws=draws))
        else:
            arms, plays, total = self.playable(now._replace(pending=()))
            index = np.divide(total, plays, out=np.full(len(plays), math.nan), where=plays > 0)
        return [] if optimistic and np.isnan(index).any() else list(zip(numbered(arms), index.tolist(), strict=True))

    def _indices(self, now: Situation) -> tuple[Actions, Array, int]:
        """The arms that can be played now, their indices, NaN where nothing is compared, and the arm to play."""
        arms, plays, total = self.playable(now)
        t, index = self.rounds + sum(one.size for one in now.pending), np.full(len(plays), math.nan)
        return arms, index, int(self.rule(plays, total, index, self.settings, t, now.draws))

    def playable(self, now: Situation) -> tuple[Actions, Array, Array]:
        """The arms that can be played now, with their rounds and sums of Y. Those under way count as played."""
        if now.available is None and not now.pending:
            return self.arms, self.state.plays[0, : len(self.arms.ids)], self.state.total[0, : len(self.arms.ids)]
        arms = self.arms if now.available is None else self._available(now.available)
        return arms, *outcomes_of(self.state, self._number, list(numbered(arms)), now.context, now.pending)

    def _available(self, available: tuple[int, ...]) -> Actions:
        """The arms of these variables; where there are none, the allowed actions of this round."""
        ids, usable = self.arms.ids, np.zeros(len(self.problem.graph) + 1, dtype=bool)
        usable[[0, *available]] = True
        kept = np.flatnonzero(usable[ids].all(axis=1))
        if len(kept) and not self.prune:  # what was dropped may be best where something cannot be set
            return Actions(ids[kept], self.arms.values[kept])
        if self.fixed:
            names = list(self.arms.row(0).named(self.problem.graph))
            raise InterventionError(f"{listed(names)} is always set, but not all of it is available. Wait until it is.")
        return self.problem.allowed(available, relevant=False).rows()

    def predict(self, action: Action, context: Array) -> Estimate:
        """The mean of the arm's own rounds, with a confidence sequence; 1/2 where there are none."""
        (plays, total), *_ = self._told_of([action], context)
        if not plays:
            return Estimate(0.5, 0.0, 1.0)
        mean = min(max(total / plays, 0.0), 1.0)
        return Estimate(mean, *beta_binomial(mean, int(plays), self.delta))

    def _told_of(self, actions: Sequence[Action], context: Array) -> list[tuple[float, float]]:
        """(rounds, sum of Y) of each action."""
        outcomes = outcomes_of(self.state, self._number, actions, context)
        return list(zip(*(part.tolist() for part in outcomes), strict=True))

    def contrast(self, action: Action, others: Sequence[Action], context: Array) -> Contrast:
        """By the standard error of the difference of two means, where both arms were played a handful of times."""
        ahead = contrast_of_intervals(self, action, others, context)
        mine, *theirs = self._told_of([action, *others], context)
        for i, their in enumerate(theirs):
            if min(mine[0], their[0]) >= HANDFUL:
                error = math.hypot(standard_error(*mine), standard_error(*their))
                half = asymptotic_reach(int(mine[0] + their[0])) * error
                ahead.low[i], ahead.high[i], ahead.half[i] = ahead.value[i] - half, ahead.value[i] + half, half
        return ahead

    def rivals(self, now: Situation) -> list[Action]:
        return list(numbered(self.playable(now._replace(pending=()))[0]))

    @property
    def interval_words(self) -> str:
        return f"holds with {percent(self.delta)} at every round you look"

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        own = self.state
        plays, total, play = own.plays[0], own.total[0], with_kernels(play_arms, CHOOSE=self.rule)
        play(self.settings, *self.arms, plays, total, self.rounds, own.target, world.arrays, recorder.tape, *draws)
        own.rounds[0] = own.sets @ plays
        self.rounds += len(draws.world)


@dataclass(frozen=True)
class UCB(Policy):
    """Play the arm with the largest mean + scale * sqrt(ln t / plays); arms not yet played come first.

    scale  multiplies the bonus
    prune  whether only sets are played that can be best by what causes what (`possibly_optimal`)

    An arm is an allowed action; nothing is learned from one about another, and any graph will do.

    >>> import dobandit as dob
    >>> len(dob.UCB().start(dob.paper.G1.graph, budget=3, effects="nonnegative").propose())
    3
    """

    name: ClassVar[str] = "ucb"
    any_graph: ClassVar[bool] = True

    scale: float = 1.0
    prune: bool = False

    def __post_init__(self) -> None:
        positive("scale", self.scale, zero=True)
        require_bool("prune", self.prune)

    @property
    def label(self) -> str:
        notes = [f"{self.scale:g}"] * (self.scale != 1) + ["pruned"] * self.prune
        return f"UCB ({', '.join(notes)})" if notes else "UCB"

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, ucb_arm, [self.scale], prune=self.prune)


@dataclass(frozen=True)
class KLUCB(Policy):
    """Play the arm with the largest q for which plays KL(mean, q) <= log t + c log log t; arms not yet played first.

    c      the weight of log log t: the proof of Garivier and Cappé (2011) is for 3, and they advise 0 in practice,
           which is the default here. Below round 3, where log log t is negative, it counts as 0
    prune  whether only sets are played that can be best by what causes what (`possibly_optimal`)

    >>> import dobandit as dob
    >>> len(dob.KLUCB().start(dob.paper.G1.graph, budget=3, effects="nonnegative").propose())
    3
    """

    name: ClassVar[str] = "kl-ucb"
    any_graph: ClassVar[bool] = True

    c: float = 0.0
    prune: bool = False

    def __post_init__(self) -> None:
        positive("c", self.c, zero=True)
        require_bool("prune", self.prune)

    @property
    def label(self) -> str:
        notes = [f"{self.c:g}"] * (self.c != 0) + ["pruned"] * self.prune
        return f"KL-UCB ({', '.join(notes)})" if notes else "KL-UCB"

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, kl_ucb_arm, [self.c], prune=self.prune)


@dataclass(frozen=True)
class ThompsonSampling(Policy):
    """Draw the mean of every arm from what its own rounds say, Beta(1 + successes, 1 + failures), and play the largest.

    prune  whether only sets are played that can be best by what causes what (`possibly_optimal`)

    >>> import dobandit as dob
    >>> len(dob.ThompsonSampling().start(dob.paper.G1.graph, budget=3, effects="nonnegative").propose())
    3
    """

    name: ClassVar[str] = "thompson"
    any_graph: ClassVar[bool] = True

    prune: bool = False

    def __post_init__(self) -> None:
        require_bool("prune", self.prune)

    @property
    def label(self) -> str:
        return "Thompson sampling" + (" (pruned)" if self.prune else "")

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, thompson_arm, (), prune=self.prune, more=2)


@dataclass(frozen=True)
class EpsilonGreedy(Policy):
    """With probability epsilon a random arm, else the one with the largest mean; an arm not yet played counts as 1.

    epsilon  how often a random arm is played
    prune    whether only sets are played that can be best by what causes what (`possibly_optimal`)

    >>> import dobandit as dob
    >>> len(dob.EpsilonGreedy(0.1).start(dob.paper.G1.graph, budget=3, effects="nonnegative").propose())
    3
    """

    name: ClassVar[str] = "eps-greedy"
    any_graph: ClassVar[bool] = True

    epsilon: float = 0.1
    prune: bool = False

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, zero=True, most=1.0)
        require_bool("prune", self.prune)

    @property
    def label(self) -> str:
        return f"eps-greedy ({self.epsilon:g}{', pruned' if self.prune else ''})"

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, epsilon_greedy_arm, [self.epsilon], prune=self.prune)
