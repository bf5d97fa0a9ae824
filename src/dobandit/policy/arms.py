"""Policies that treat each action as an arm and ignore what causes what: UCB and epsilon-greedy, the paper's baselines,
and KL-UCB, the strongest of them; and their engine, which the yardsticks share that play at random or always the same.

Arms are the allowed actions: exactly K variables where nothing can do harm, else every size. A round in which fewer
variables are available can leave none of these; then the allowed actions of that round are arms of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.errors import InterventionError, listed
from dobandit.estimation.confidence import asymptotic_reach, beta_binomial, standard_error
from dobandit.estimation.kl import kl_upper
from dobandit.oracle.actions import Action, Actions
from dobandit.oracle.listing import pick
from dobandit.oracle.possibly_optimal import worth_playing
from dobandit.policy.base import Policy, positive, require_bool
from dobandit.policy.engine import (
    HANDFUL,
    Choice,
    Contrast,
    Draws,
    Engine,
    Estimate,
    Rounds,
    Situation,
    copied,
    words_always,
)
from dobandit.policy.own_outcomes import (
    NO_CONTEXT,
    columns_of,
    expect_outcomes,
    note_play,
    note_rounds,
    numbered,
    outcomes_of,
    own_outcomes,
    widened,
)
from dobandit.policy.problem import Problem
from dobandit.policy.recording import Recorder, record
from dobandit.policy.world import World, draw_round, see_context

BY_UCB, BY_EPSILON_GREEDY, BY_RANDOM, BY_FIXED, BY_KL_UCB = 0, 1, 2, 3, 4
Array = NDArray[np.float64]


class ArmsPlan(NamedTuple):
    """What stays fixed, and scratch."""

    kind: int
    parameter: float  # scale of UCB, epsilon of epsilon-greedy, c of KL-UCB
    ids: NDArray[np.int32]  # (arms, size)
    to: Array  # (arms, size)
    values: Array  # (arms,) scratch: the index of each arm


@inlined
def propose_arm(plan: Any, plays: Any, total: Any, t: int, uniforms: Any) -> int:
    """The arm to play after t rounds; plays and total: rounds and sum of Y by arm. An arm not yet played comes first
    for UCB and KL-UCB and counts as mean 1 for epsilon-greedy."""
    kind, parameter, arms, values = plan.kind, plan.parameter, len(plays), plan.values  # not again after each write
    if kind == BY_FIXED:
        return 0
    if kind == BY_RANDOM:
        return min(int(uniforms[0] * arms), arms - 1)
    if kind == BY_EPSILON_GREEDY and uniforms[1] < parameter:
        return min(int(uniforms[2] * arms), arms - 1)
    if kind == BY_EPSILON_GREEDY:
        for i in range(arms):
            values[i] = total[i] / plays[i] if plays[i] > 0 else 1.0
        return pick(values, uniforms[0])
    log_t = math.log(t + 1.0)
    level = log_t + parameter * math.log(max(log_t, 1.0))
    for i in range(arms):
        values[i] = math.inf
        if plays[i] > 0 and kind == BY_KL_UCB:
            values[i] = kl_upper(total[i] / plays[i], plays[i], level)
        elif plays[i] > 0:
            values[i] = total[i] / plays[i] + parameter * math.sqrt(log_t / plays[i])
    return pick(values, uniforms[0])


@kernel
def run_arms(plan: Any, own: Any, clock: Any, world: Any, tape: Any, world_draws: Any, policy_draws: Any) -> None:
    """Propose, act, record, update."""
    plays, total = own.plays[0, : len(plan.ids)], own.total[0, : len(plan.ids)]
    for t in range(len(world_draws)):
        pattern = see_context(world, world_draws[t]) if len(world.context) > 0 else 0
        arm = propose_arm(plan, plays, total, clock[0], policy_draws[t])
        draw_round(world, plan.ids[arm], plan.to[arm], world_draws[t])
        reward = world.drawn[world.seen[own.target]]
        record(tape, pattern, arm, tape.expected[pattern, arm], reward)
        note_play(own, 0, arm, reward)
        clock[0] += 1


def possible_arms(problem: Problem, actions: Actions) -> list[int]:
    """The rows of `actions` that can be best at all by what causes what: a set falls away where another of the list is
    no worse in every model (`oracle.possibly_optimal`). Numbers between 0 and 1 cannot all be tried, so that there only
    sets fall away that hold what cannot matter."""
    rules, graph = problem.rules, problem.graph
    whole = [name for name in graph.controllable if not problem.continuous and rules.values_of(name) == (0.0, 1.0)]
    return worth_playing(problem.whole or graph, graph, actions, whole)


class ArmsEngine(Engine):
    """One arm per allowed action, or the actions given.

    prune  whether sets fall away that cannot be best by what causes what
    """

    bonus_words = "for having been tried so little"

    def __init__(
        self, problem: Problem, kind: int, parameter: float, arms: Actions | None = None, prune: bool = False
    ) -> None:
        self.problem, self.prune = problem, prune
        ids, to = problem.allowed(relevant=False).rows() if arms is None else arms
        if prune:
            kept = possible_arms(problem, Actions(ids, to))
            ids, to = ids[kept], to[kept]
        self.plan = ArmsPlan(kind, parameter, ids, to, np.zeros(len(ids)))
        self.state = own_outcomes(NO_CONTEXT, problem.graph.arrays.target, self.actions())
        self.clock = np.zeros(1, dtype=np.int64)  # rounds told
        self._number = numbered(self.actions())  # and, behind the arms, actions told that are none

    @property
    def rounds(self) -> int:
        return int(self.clock[0])

    def actions(self) -> Actions:
        return Actions(self.plan.ids, self.plan.to)

    def copy(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.state, twin.clock, twin._number = copied(self.state), self.clock.copy(), dict(self._number)
        twin.plan = copied(self.plan, {id(ids): ids for ids in self.actions()})  # room to work things out in
        return twin

    # -- learning ------------------------------------------------------------------------------------------------

    def update(self, rounds: Rounds) -> None:
        self.state = note_rounds(self.state, self._number, rounds, every=True)
        self.clock[0] += rounds.counts.sum()

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, now: Situation) -> Choice:
        plan, index = self._proposed(now)
        value = float(plan.values[index]) if self._compares(now) else math.nan
        return Choice(Actions(plan.ids, plan.to).row(index), value)

    def best(self, now: Situation) -> Choice:
        plan, plays, total = self.playable(now._replace(pending=()))
        means = np.divide(total, plays, out=np.full(len(plays), -1.0), where=plays > 0)
        index = int(np.argmax(means))
        return Choice(Actions(plan.ids, plan.to).row(index), float(means[index]) if means[index] >= 0 else math.nan)

    def compared(self, now: Situation) -> Sequence[tuple[Action, float]]:
        now = now._replace(draws=np.ones(self.draws))  # 1: epsilon-greedy does not explore
        if not self._compares(now):
            return []
        plan, _ = self._proposed(now)
        return [(Actions(plan.ids, plan.to).row(i), value) for i, value in enumerate(plan.values.tolist())]

    def runner_up(self, action: Action, now: Situation) -> tuple[Action, float] | None:
        return super().runner_up(action, now) if self._compares(now) else None

    def _compares(self, now: Situation) -> bool:
        kind = self.plan.kind
        return kind in (BY_UCB, BY_KL_UCB) or (kind == BY_EPSILON_GREEDY and now.draws[1] >= self.plan.parameter)

    def _proposed(self, now: Situation) -> tuple[ArmsPlan, int]:
        plan, plays, total = self.playable(now)
        t = self.rounds + sum(one.size for one in now.pending)
        return plan, int(propose_arm(plan, plays, total, t, now.draws))

    def playable(self, now: Situation) -> tuple[ArmsPlan, Array, Array]:
        """The arms that can be played now, with their rounds and sums of Y. Those under way count as played."""
        plan, own, number = self.plan, self.state, self._number
        if now.pending:
            number = dict(number)
            own = expect_outcomes(widened(own, number, [one.action for one in now.pending]), number, now.pending)
        if now.available is None:
            return plan, own.plays[0, : len(plan.ids)], own.total[0, : len(plan.ids)]
        actions = self._available(now.available)
        plan = plan._replace(ids=actions.ids, to=actions.values, values=np.zeros(len(actions.ids)))
        return plan, *outcomes_of(own, columns_of(number, numbered(actions)), now.context)

    def _available(self, available: tuple[int, ...]) -> Actions:
        """The arms of these variables; where there are none, the allowed actions of this round."""
        plan, usable = self.plan, np.zeros(len(self.problem.graph) + 1, dtype=bool)
        usable[[0, *available]] = True
        arms = np.flatnonzero(usable[plan.ids].all(axis=1))
        if len(arms) and not self.prune:  # what was dropped may be best where something cannot be set
            return Actions(plan.ids[arms], plan.to[arms])
        if plan.kind == BY_FIXED:
            names = list(self.actions().row(0).named(self.problem.graph))
            raise InterventionError(f"{listed(names)} is always set, but not all of it is available. Wait until it is.")
        return self.problem.allowed(available, relevant=False).rows()

    # -- answers and simulation ----------------------------------------------------------------------------------

    def predict(self, action: Action, context: Array) -> Estimate:
        """The mean of the arm's own rounds, with a confidence sequence; 1/2 where there are none."""
        (plays, total), *_ = self._told_of([action], context)
        if not plays:
            return Estimate(0.5, 0.0, 1.0)
        mean = min(max(total / plays, 0.0), 1.0)
        return Estimate(mean, *beta_binomial(mean, int(plays), self.delta))

    def _told_of(self, actions: Sequence[Action], context: Array) -> list[tuple[float, float]]:
        """(rounds, sum of Y) of each action."""
        told = outcomes_of(self.state, columns_of(self._number, actions), context)
        return list(zip(*(part.tolist() for part in told), strict=True))

    def contrast(self, action: Action, others: Sequence[Action], context: Array) -> Contrast:
        """By the standard error of the difference of two means, where both arms were played a handful of times."""
        told = super().contrast(action, others, context)
        mine, *theirs = self._told_of([action, *others], context)
        for i, their in enumerate(theirs):
            if min(mine[0], their[0]) >= HANDFUL:
                half = asymptotic_reach(int(mine[0] + their[0])) * math.hypot(
                    standard_error(*mine), standard_error(*their)
                )
                told.low[i], told.high[i], told.half[i] = told.value[i] - half, told.value[i] + half, half
        return told

    def rivals(self, now: Situation) -> list[Action]:
        plan, *_ = self.playable(now._replace(pending=()))
        return list(numbered(Actions(plan.ids, plan.to)))

    @property
    def interval_words(self) -> str:
        return words_always(self.delta)

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        run_arms(self.plan, self.state, self.clock, world.arrays, recorder.tape, draws.world, draws.policy)


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
        return ArmsEngine(problem, BY_UCB, float(self.scale), prune=self.prune)


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
        return ArmsEngine(problem, BY_KL_UCB, float(self.c), prune=self.prune)


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
        return ArmsEngine(problem, BY_EPSILON_GREEDY, float(self.epsilon), prune=self.prune)
