"""The engine of policies that keep a model: an estimator, an index and an oracle that know nothing of each other.

estimator  what the rounds say of each node (`estimation.estimators`)
index      how far optimism reaches around the estimate (`policy.region`)
oracle     which allowed action has the largest optimistic E[Y] (closed form, boxed, per pattern, local search)
BLM-LR = least squares + region(rho_t) + closed form. The parts are named tuples; kernels pick the code for each part by
its type, so that any combination runs compiled, in `ask`/`tell` and in simulations alike.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import InterventionError
from dobandit.estimation.belief import Belief, layout_of, with_room
from dobandit.estimation.estimators import Estimator, WeightedSquares
from dobandit.estimation.mixture import Mixture
from dobandit.oracle.actions import Action, Actions, actions_of
from dobandit.oracle.frontier import Frontier
from dobandit.oracle.listing import IDLE, Listing
from dobandit.oracle.local_search import LocalSearch
from dobandit.policy.beliefs import Beliefs
from dobandit.policy.engine import (
    Array,
    Choice,
    Draws,
    Engine,
    Estimate,
    Pending,
    Rounds,
    Situation,
    copied,
    without_helpers,
)
from dobandit.policy.insurance import own_of
from dobandit.policy.intervals import target_interval
from dobandit.policy.model_rounds import ModelPlan, learn_rounds, propose_action, run_rounds, score_actions
from dobandit.policy.pending import expect_round
from dobandit.policy.problem import Problem
from dobandit.policy.recording import Recorder, Tape
from dobandit.policy.region import initialising, words_of
from dobandit.policy.unordered import spread_batches
from dobandit.policy.world import World

_NOT_KEPT: NDArray[np.int8] = np.zeros((0, 0), dtype=np.int8)
KEPT_ORACLES = 32  # lists of actions for different available variables
OracleMaker = Callable[[Problem, Listing | None, tuple[int, ...] | None], Any]


class ModelEngine(Engine):
    """An estimator, an index and an oracle at work.

    make_oracle  the oracle for the variables that can be set now, or for the actions of a given list
    believed     the problem, with the causes that an engine found to be missing in its graph (`policy.revising`)
    """

    _borrowed = False
    _plan: ModelPlan

    def __init__(
        self,
        problem: Problem,
        estimator: Estimator,
        state: Belief,
        index: Any,
        make_oracle: OracleMaker,
        thresholds: NDArray[np.float64] | None = None,
    ) -> None:
        nodes, idle = len(problem.graph) + 1, actions_of([problem.idle()])
        self.problem = self.believed = problem
        self.state, self.make_oracle = state, make_oracle
        self.plan = ModelPlan(
            estimator,
            index,
            make_oracle(problem, None, None),
            layout_of(problem.graph),
            np.zeros(nodes) if thresholds is None else thresholds,
            np.zeros(nodes),
            *idle,
        )
        self._plans: dict[tuple[int, ...], ModelPlan] = {}
        self._expected: tuple[int, tuple[Pending, ...], Belief | None] = (0, (), None)

    @property
    def rounds(self) -> int:
        return int(self.state.clock[0])

    @property
    def searches(self) -> bool:
        """Whether the oracle searches, without a list of all actions."""
        return isinstance(self.plan.oracle, LocalSearch)

    def actions(self) -> Actions | None:
        return None if self.searches else self.plan.oracle.listing.actions

    def copy(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(without_helpers(self.__dict__, type(self)))
        twin.state, twin._expected = copied(self.state), (0, (), None)
        twin._borrowed, twin._plans = True, {}
        return twin

    @property
    def plan(self) -> ModelPlan:
        """Its parts have room to work things out. A copy borrows them until it is used, and then has its own: kernels
        run without the interpreter's lock, so that another thread may use the first one's meanwhile."""
        if self._borrowed:
            written = isinstance(self._plan.oracle, LocalSearch)  # what a search finds goes into its list
            shared = {} if written else {id(array): array for array in never_written(self._plan)}
            self._plan, self._borrowed = copied(self._plan, shared), False
        return self._plan

    @plan.setter
    def plan(self, plan: ModelPlan) -> None:
        self._plan = plan

    # -- learning ------------------------------------------------------------------------------------------------

    def update(self, rounds: Rounds) -> None:
        if (rounds.counts > 1).any():
            self.update_unordered(rounds)
        else:
            self._take(rounds, None)

    def update_unordered(self, rounds: Rounds) -> None:
        self._take(rounds, np.array([len(rounds.counts)]))

    def update_batches(self, rounds: Rounds, sizes: NDArray[np.int64]) -> None:
        self._take(rounds, sizes)

    @property
    def weighs_by_order(self) -> bool:
        return isinstance(self._plan.estimator, (WeightedSquares, Mixture))

    @property
    def _hidden(self) -> list[int]:
        """Variables that the log keeps and nothing is learned from."""
        graph = self.problem.graph
        return [graph.index(name) for name in self.problem.hidden if name in graph]

    def _take(self, rounds: Rounds, sizes: NDArray[np.int64] | None) -> None:
        """Rounds in their order, or, with sizes, batches one after another whose own order is lost."""
        self._teach(rounds, sizes)

    def _teach(self, rounds: Rounds, sizes: NDArray[np.int64] | None) -> None:
        """What such rounds say of the nodes."""
        if sizes is None or not self.weighs_by_order or max(sizes.max(initial=1), rounds.counts.max(initial=1)) == 1:
            self._learn(rounds)
        else:
            for part in spread_batches(rounds, sizes, self._hidden):
                self._learn(part)

    def _learn(self, rounds: Rounds) -> None:
        """Rounds in their order, as many at a time as there is room for."""
        plan, done, ends = self.plan, 0, rounds.counts.cumsum().tolist()
        parts = plan.estimator, plan.layout, plan.watch, plan.index.initial, plan.thresholds
        while done < len(ends):
            self.state, room = with_room(self.state)
            start = ends[done - 1] if done else 0
            stop = max(bisect_right(ends, start + room), done + 1)  # equal rows are one pattern
            learn_rounds(*parts, self.state, *rounds.part(slice(done, stop)))
            done = stop

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, now: Situation) -> Choice:
        return self._choice(*self._proposed(now))

    def best(self, now: Situation) -> Choice:
        plan, context = self.plan_now(now._replace(pending=())), self.believed.known(now.context)
        if self.searches:
            return self._choice(plan, int(propose_action(plan, self.state, context, np.zeros(self.draws), 0, False)))
        score_actions(plan, self.state, context, 0, optimistic=False)
        return self._choice(plan, int(np.argmax(plan.oracle.listing.values)))

    def compared(self, now: Situation) -> Sequence[tuple[Action, float]]:
        if initialising(self.plan.index, self.state_with_pending(now.pending).clock):
            return []
        if self.searches:
            return self._searched(now)
        listing = self._proposed(now)[0].oracle.listing
        return [(listing.actions.row(i), value) for i, value in enumerate(listing.values.tolist())]

    def _proposed(self, now: Situation) -> tuple[ModelPlan, int]:
        """The plan over the actions that can be chosen now, with the index of each, and the row to play."""
        plan, state = self.plan_now(now), self.state_with_pending(now.pending)
        context = self.believed.known(now.context)
        return plan, int(propose_action(plan, state, context, now.draws, int(state.clock[0]), True))

    def plan_now(self, now: Situation) -> ModelPlan:
        """The plan over the actions that can be chosen now."""
        return self._plan_for(now.available)

    def _choice(self, plan: ModelPlan, index: int) -> Choice:
        if index == IDLE:
            return Choice(self.problem.idle(), math.nan)
        action = plan.oracle.listing.actions.row(index)
        if not self.searches:
            return Choice(action, float(plan.oracle.listing.values[index]))
        order = np.argsort(action.ids)
        action = Action(tuple(action.ids[i] for i in order), tuple(action.values[i] for i in order))
        return Choice(action, float(plan.oracle.listing.values[index]), proved=False)

    def _searched(self, now: Situation) -> list[tuple[Action, float]]:
        """A search has no list: what it finds is compared with what it finds without one of the chosen variables."""
        best = self.choose(now)
        graph, found = self.problem.graph, [(best.action, best.value)]
        for v in best.action.ids:
            ids = now.available if now.available is not None else tuple(map(graph.index, graph.controllable))
            try:
                other = self.choose(now._replace(available=tuple(i for i in ids if i != v)))
            except InterventionError:  # a required variable, or no set without it
                continue
            found.append((other.action, other.value))
        return found

    def _plan_for(self, available: tuple[int, ...] | None) -> ModelPlan:
        """The plan over the actions of these variables; None: of all."""
        if available is None:
            return self.plan
        if available not in self._plans:
            if len(self._plans) >= KEPT_ORACLES:
                self._plans.pop(next(iter(self._plans)))
            self._plans[available] = self.plan._replace(oracle=self.make_oracle(self.believed, None, available))
        return self._plans[available]

    def state_with_pending(self, pending: tuple[Pending, ...]) -> Belief:
        """The state with what pending actions are expected to teach. To be read at once: the next call changes it.

        Kept from call to call while no round was told and actions were only added, so that many asks in a row are
        quick; every action takes the same steps either way, so that the result is the same, bit for bit.
        """
        if not pending:
            return self.state
        rounds, known, state = self._expected
        if state is None or rounds != self.rounds or not _same(known, pending[: len(known)]):
            known, state = (), copied(self.state)
        for one in pending[len(known) :]:
            was_set = np.zeros(len(self.plan.rho), dtype=np.bool_)
            action = self.believed.flagged(one.action)
            was_set[list(action.ids)] = True
            state = self._expect(state, action.over(self.believed.known(one.context)), was_set, one.size)
        self._expected = (self.rounds, pending, state)
        return state

    def _expect(self, state: Belief, fixed: Array, was_set: NDArray[np.bool_], size: int) -> Belief:
        """Take in what so many rounds of an action are expected to teach."""
        plan, graph = self.plan, self.believed.graph
        order = np.array([graph.index(name) for name in graph.topological_order], dtype=np.int64)
        means, row, squares = np.ones(len(plan.rho)), np.zeros(len(state.row)), self.state.slots["line"]
        parts = plan.estimator, plan.layout, order, plan.index.initial, plan.thresholds, state, squares
        for _ in range(size):
            expect_round(*parts, fixed, was_set, means, row, not self.problem.continuous)
        return state

    # -- answers -------------------------------------------------------------------------------------------------

    def predict(self, action: Action, context: NDArray[np.float64]) -> Estimate:
        low, value, high = target_interval(self.beliefs(), self.problem, action.over(context))
        return Estimate(value, low, high)

    @property
    def interval_words(self) -> str:
        return words_of(self._plan.index)

    def beliefs(self) -> Beliefs:
        return Beliefs(self.plan, self.state, self.believed.links, self.believed.flags)

    # -- simulation ----------------------------------------------------------------------------------------------

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        if self.searches and not world.model.is_linear:  # what is not listed is valued by a linear pass there
            super().run(world, recorder, draws)
            return
        self.play(world, recorder.tape, draws, _NOT_KEPT)

    def play(self, world: World, tape: Tape, draws: Draws, codes: NDArray[np.int8]) -> None:
        """Compiled rounds; what is seen goes into `codes`, rows of a log (`policy.recording`), where it has any."""
        done = 0
        while True:  # also without rounds, which only compiles
            self.state, room = with_room(self.state)
            part = slice(done, done + room)
            chance = draws.world[part], draws.policy[part]
            run_rounds(self.plan, self.state, own_of(self.plan.oracle), world.arrays, tape, *chance, codes[part])
            done += room
            if done >= len(draws.world):
                return


def never_written(part: Any) -> Iterator[NDArray[Any]]:
    """The large arrays of a plan that stay as they are: of the lists of actions, and of frontiers."""
    if isinstance(part, Frontier):
        yield from (part.table_ptr, part.state_ptr, part.states)
    elif isinstance(part, Listing):
        yield from (part.order, part.ids, part.to, part.member, part.member_to, part.first, part.rank)
    elif isinstance(part, tuple):
        for one in part:
            yield from never_written(one)


def _same(known: tuple[Pending, ...], given: tuple[Pending, ...]) -> bool:
    return len(known) == len(given) and all(
        a.action == b.action and a.size == b.size and np.array_equal(a.context, b.context, equal_nan=True)
        for a, b in zip(known, given, strict=True)
    )
