"""The engine of policies that keep a model: an estimator, a reach of optimism, an evaluator and a rule to choose.

estimator  what the rounds say of each node (`estimation.estimators`)
reach      how far optimism reaches around the estimate (`policy.radii`)
evaluator  the optimistic E[Y] of every allowed action (`policy.evaluators`)
choose     the rule that picks one of them (`policy.rounds`)
BLM-LR = least squares + rho_t + the closed form of Algorithm 4 + the largest. Asked round by round and simulated, the
same kernels run.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import MOST_ROUNDS_EVER
from dobandit.errors import InterventionError
from dobandit.estimation.belief import Belief, layout_of, with_room
from dobandit.estimation.estimators import Estimator
from dobandit.kernels import with_kernels
from dobandit.oracle.action_list import IDLE, ActionList
from dobandit.oracle.actions import Action, Actions, actions_of
from dobandit.policy.beliefs import Beliefs, target_interval
from dobandit.policy.engine import Array, Choice, Draws, Engine, Estimate, Pending, Rounds, Situation, copied
from dobandit.policy.evaluators import Evaluator, EvaluatorMaker
from dobandit.policy.graph_evidence import Finding
from dobandit.policy.own_outcomes import NOT_KEPT, OwnOutcomes
from dobandit.policy.pending import expect_pending
from dobandit.policy.problem import Problem
from dobandit.policy.questions import play_rounds
from dobandit.policy.radii import initialising, set_radii, words_of
from dobandit.policy.recording import Recorder, Sizes, Tape
from dobandit.policy.rounds import pick_best, play
from dobandit.policy.unordered import spread_batches
from dobandit.policy.world import World

_NO_CODES: NDArray[np.int8] = np.zeros((0, 0), dtype=np.int8)
KEPT_EVALUATORS = 32  # lists of actions for different available variables


class Parts(NamedTuple):
    """What an engine is made of: an estimator, its belief before any round, a reach and a maker of evaluators."""

    estimator: Estimator
    state: Belief
    reach: NDArray[Any]
    make: EvaluatorMaker


class ModelEngine(Engine):
    """An estimator, a reach and an evaluator at work.

    state     what has been learned
    believed  the problem, with the causes that an engine found to be missing in its graph (`policy.revising`)
    own       what each action brought by itself, where a rule wants to know
    """

    choose_rule: Any = staticmethod(pick_best)
    own: OwnOutcomes = NOT_KEPT
    trusts_intervals = watches_graph = False
    revisions: tuple[Finding, ...] = ()
    most_expected = MOST_ROUNDS_EVER  # rounds of one pending action; more teach nothing that would matter
    _borrowed = False
    _evaluator: Evaluator

    def __init__(self, problem: Problem, parts: Parts) -> None:
        self.problem = self.believed = problem
        self.estimator, self.state, self.optimism, self.make_evaluator = parts
        self.layout, self.rho = layout_of(problem.graph), np.zeros(len(problem.graph) + 1)
        self.evaluator = parts.make(problem, None, None)
        self._evaluators: dict[tuple[int, ...], Evaluator] = {}
        self._expected: tuple[int, list[tuple[Action, bytes, int]], Belief] = (-1, [], self.state)

    @property
    def rounds(self) -> int:
        return int(self.state.clock[0])

    @property
    def searches(self) -> bool:
        """Whether actions are searched for, without a list of all of them."""
        return self._evaluator.searches

    @property
    def listed(self) -> ActionList:
        """The actions that are scored."""
        actions: ActionList = self.evaluator.plan.actions
        return actions

    def actions(self) -> Actions | None:
        return None if self.searches else self.listed.actions

    def copy(self) -> Self:
        twin = self._bare()
        # Nothing that loops are given is shared: threads would wait for each other to count references to it.
        twin.state, twin.rho, twin.optimism, twin.own = copied((self.state, self.rho, self.optimism, self.own))
        twin._expected = (-1, [], twin.state)
        twin._borrowed, twin._evaluators = True, {}
        return twin

    def _bare(self) -> Self:
        """One with the same attributes, but for the helpers that were made when they were first needed."""
        of = type(self)
        twin = of.__new__(of)
        made = {name for name in vars(self) if isinstance(getattr(of, name, None), cached_property)}
        vars(twin).update({name: value for name, value in vars(self).items() if name not in made})
        return twin

    @property
    def evaluator(self) -> Evaluator:
        """Its plan has room to work things out. A copy borrows it until it is used, and then has its own: kernels run
        without the interpreter's lock, so that another thread may use the first one's meanwhile."""
        if self._borrowed:
            self._evaluator, self._borrowed = copied(self._evaluator), False
        return self._evaluator

    @evaluator.setter
    def evaluator(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    # -- learning ------------------------------------------------------------------------------------------------

    def update(self, rounds: Rounds, sizes: Sizes = None) -> None:
        self._take(rounds, np.array([len(rounds.counts)]) if sizes is None and (rounds.counts > 1).any() else sizes)

    @property
    def weighs_by_order(self) -> bool:
        return self.estimator.weighs_by_order

    def _take(self, rounds: Rounds, sizes: Sizes) -> None:
        """Rounds in their order, or, with sizes, batches one after another whose own order is lost."""
        self._teach(rounds, sizes)

    def _teach(self, rounds: Rounds, sizes: Sizes) -> None:
        """What such rounds say of the nodes."""
        if sizes is None or not self.weighs_by_order or max(sizes.max(initial=1), rounds.counts.max(initial=1)) == 1:
            self._learn(rounds)
            return
        graph = self.problem.graph
        hidden = [graph.index(name) for name in self.problem.hidden if name in graph]
        for part in spread_batches(rounds, sizes, hidden):
            self._learn(part)

    def _learn(self, rounds: Rounds) -> None:
        """Rounds in their order, as many at a time as there is room for."""
        done, ends = 0, rounds.counts.cumsum().tolist()
        while done < len(ends):
            self.state, room = with_room(self.state)
            start = ends[done - 1] if done else 0
            stop = max(bisect_right(ends, start + room), done + 1)  # equal rows are one pattern
            self.estimator.learn(self.state, *(np.ascontiguousarray(part[done:stop]) for part in rounds))
            done = stop

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, now: Situation) -> Choice:
        return self._choice(*self._proposed(now))

    def score(
        self, evaluator: Evaluator, state: Belief, context: Array, draws: Array | None = None, optimistic: bool = True
    ) -> None:
        """The index of every action of an evaluator; without optimism, its plain estimate."""
        set_radii(self.optimism, state.nodes, int(state.clock[0]), optimistic, self.rho)
        evaluator.evaluate(state, evaluator.plan, context, self.rho, np.zeros(self.draws) if draws is None else draws)

    def compare(self, now: Situation, optimistic: bool = True) -> Sequence[tuple[Action, float]]:
        if optimistic and initialising(self.optimism, self.state_with_pending(now.pending).clock):
            return []
        if optimistic and self.searches:
            return self._searched(now)
        evaluator = self._proposed(now)[0] if optimistic else self._estimated(now._replace(pending=()))
        actions = evaluator.plan.actions
        if self.searches:
            choice = self._choice(evaluator, int(np.argmax(actions.scores["index"])))
            return [(choice.action, choice.value)]
        return [(actions.actions.row(i), value) for i, value in enumerate(actions.scores["index"].tolist())]

    def _proposed(self, now: Situation) -> tuple[Evaluator, int]:
        """The evaluator of the actions that can be chosen now, with the index of each, and the row to play."""
        evaluator, state = self.evaluator_for(now.available), self.state_with_pending(now.pending)
        if initialising(self.optimism, state.clock):
            return evaluator, IDLE
        context = self.believed.known(now.context)
        self.score(evaluator, state, context, now.draws)
        return evaluator, int(self.choose_rule(evaluator.plan, self._own_now(now), context, self.rho, now.draws))

    def _estimated(self, now: Situation) -> Evaluator:
        """The evaluator of the actions that can be chosen now, with the estimate of each."""
        evaluator = self.evaluator_for(now.available)
        self.score(evaluator, self.state, self.believed.known(now.context), optimistic=False)
        return evaluator

    def _own_now(self, now: Situation) -> OwnOutcomes:
        """What each action of now brought by itself."""
        return self.own

    def _choice(self, evaluator: Evaluator, index: int) -> Choice:
        if index == IDLE:
            return Choice(self.problem.idle(), math.nan)
        actions = evaluator.plan.actions
        action, value = actions.actions.row(index), float(actions.scores["index"][index])
        if not self.searches:
            return Choice(action, value)
        order = np.argsort(action.ids)
        action = Action(tuple(action.ids[i] for i in order), tuple(action.values[i] for i in order))
        return Choice(action, value, proved=False)

    def _searched(self, now: Situation) -> list[tuple[Action, float]]:
        """A search has no list: what it finds is compared with what it finds without one of the chosen variables, where
        that could be chosen as well."""
        best = self.choose(now)
        graph, pairs = self.problem.graph, [(best.action, best.value)]
        for v in best.action.ids:
            ids = now.available if now.available is not None else tuple(map(graph.index, graph.controllable))
            try:
                other = self.choose(now._replace(available=tuple(i for i in ids if i != v)))
            except InterventionError:  # a required variable, or no set without it
                continue
            if self.problem.can_be_chosen(other.action, now.available):
                pairs.append((other.action, other.value))
        return pairs

    def evaluator_for(self, available: tuple[int, ...] | None) -> Evaluator:
        """The evaluator of the actions of these variables; None: of all."""
        if available is None:
            return self.evaluator
        if available not in self._evaluators:
            if len(self._evaluators) >= KEPT_EVALUATORS:
                self._evaluators.pop(next(iter(self._evaluators)))
            self._evaluators[available] = self.make_evaluator(self.believed, None, available)
        return self._evaluators[available]

    def state_with_pending(self, pending: tuple[Pending, ...]) -> Belief:
        """The state with what pending actions are expected to teach. To be read at once: the next call changes it.

        Kept from call to call while no round was told and actions were only added, so that many asks in a row are
        quick; every action takes the same steps either way, so that the result is the same, bit for bit.
        """
        if not pending:
            return self.state
        keys = [(one.action, one.context.tobytes(), one.size) for one in pending]
        rounds, known, state = self._expected
        if rounds != self.rounds or known != keys[: len(known)]:
            known, state = [], copied(self.state)
        for one in pending[len(known) :]:
            state = self._expect(state, one)
        self._expected = (self.rounds, keys, state)
        return state

    def _expect(self, state: Belief, pending: Pending) -> Belief:
        """Take in what the rounds of an action are expected to teach."""
        state, _ = with_room(state)
        estimate = np.ascontiguousarray(self.state.slots["line"])
        expect_pending(state, estimate, self.believed, pending, self.weighs_by_order, self.most_expected)
        return state

    # -- answers -------------------------------------------------------------------------------------------------

    def predict(self, action: Action, context: NDArray[np.float64]) -> Estimate:
        low, value, high = target_interval(self.beliefs(), self.problem, action.over(context))
        return Estimate(value, low, high)

    @property
    def interval_words(self) -> str:
        return words_of(self.optimism)

    def findings(self) -> Sequence[Finding]:
        return ()

    def beliefs(self) -> Beliefs:
        return Beliefs(self.estimator, self.layout, self.state, self.optimism, self.believed.links, self.believed.flags)

    # -- simulation ----------------------------------------------------------------------------------------------

    @cached_property
    def _idle(self) -> Actions:
        """What is set while initialising: what is required."""
        return actions_of([self.problem.idle()])

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        if self.searches and not world.model.is_linear:  # what is not listed is valued by a linear pass there
            play_rounds(self, world, recorder, draws)
            return
        self.play(world, recorder.tape, draws, _NO_CODES)

    def play(self, world: World, tape: Tape, draws: Draws, codes: NDArray[np.int8]) -> None:
        """Compiled rounds; what is seen goes into `codes`, rows of a log (`policy.recording`), where it has any."""
        (evaluate, plan), done = self.evaluator, 0
        loop = with_kernels(play, LEARN=self.estimator.learn, EVALUATE=evaluate, CHOOSE=self.choose_rule)
        while True:  # also without rounds, which only compiles
            self.state, room = with_room(self.state)
            part = slice(done, done + room)
            chance = draws.world[part], draws.policy[part], codes[part], np.ones(1, dtype=np.int64)
            loop(self.state, plan, self.optimism, self.rho, self._idle, self.own, world.arrays, tape, *chance)
            done += room
            if done >= len(draws.world):
                return
