"""CausalUCB: the default. Optimism about E[Y | do(S)] as a whole, for any links, signs, levers and contexts; its engine
where choices go by intervals that hold at every round (`oracle.interval_pass`); and CausalTS, with the same beliefs and
Thompson's rule instead of a bonus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from dobandit import limits
from dobandit.checks import shown
from dobandit.errors import PolicyError
from dobandit.estimation.belief import Belief
from dobandit.estimation.kept_intervals import keep_intervals, look_again
from dobandit.oracle.actions import Action
from dobandit.oracle.posterior_draw import draws_of
from dobandit.policy.base import Policy, positive, require_bool
from dobandit.policy.causal_engine import DELTA, CausalEngine, parts_of
from dobandit.policy.engine import Array, Choice, Engine, Pending, Rounds, Situation, batches
from dobandit.policy.evaluators import Evaluator, drawn, guaranteed
from dobandit.policy.insurance import SafeEngine, safe_parts
from dobandit.policy.model_engine import Parts
from dobandit.policy.problem import Problem
from dobandit.policy.recording import Sizes
from dobandit.texts import keyword, policy_name, setting

_C, _GROWTH = 2.0, 1.0  # standard errors at the beginning, and how fast they become more
_LEEWAY, _MOST_LEEWAY = 0.5, 10.0
_NEARLY = "of the actions whose intervals reach up far enough, estimate and standard errors speak most for this one"


@dataclass(frozen=True)
class CausalUCB(Policy):
    """Play the action whose E[Y] plus two standard errors is largest.

    guarantee  choose by intervals that hold at every round, all of them together, with 95%: more is tried before it
               settles, and what a round can lose rests on no approximation. For variables of 0 and 1
    safe       insured against a graph that is wrong in ways no round shows by itself: what an action did corrects what
               the model says of it, and about sqrt(t) of t rounds try what its own outcomes alone speak for. It costs
               some regret where the graph is right
    prune      whether only sets are played that can be best by what causes what (`possibly_optimal`). None, the
               default: where observed variables share hidden causes. With True, variables with few causes are tables
    leeway     with guarantee=True: an action may be played whose interval's upper end falls short of the largest by at
               most this share of the interval's width; of these it plays the one that it would play without a
               guarantee. A round then loses at most (1 + leeway) times that width. Default 0.5; 0 plays the largest
               upper end, which loses more on the way and proves sooner that one may stop

    Each node is believed to be what the links say; with links="auto", the default, a mixture of a straight line, a
    logistic curve and a table by parent pattern, weighted by how well each has predicted. The standard error is that of
    E[Y | do(S)], in which the errors of all nodes add up as variances do. Where links are promised to be the identity
    and effects to be nonnegative, every node's own two standard errors are carried upwards instead (Algorithm 4 with
    this radius), and before there are data its weights may be anything nonnegative with a sum of at most 1. There is
    nothing to tune and no horizon.
    Where the rounds refute the graph, the cause that it lacks is reckoned with from then on (`policy.revising`).

    >>> import dobandit as dob
    >>> learner = dob.CausalUCB().start(dob.paper.G1.graph, budget=3, seed=0)
    >>> set(learner.propose()) <= set(dob.paper.G1.graph.controllable)
    True
    """

    name: ClassVar[str] = "causal-ucb"
    links: ClassVar[str] = "auto"
    learns_mechanisms: ClassVar[bool] = True
    guarantee: bool = False
    safe: bool = False
    leeway: float | None = None
    prune: bool | None = None

    def __post_init__(self) -> None:
        require_bool("guarantee", self.guarantee)
        require_bool("safe", self.safe)
        _require_prune(self.prune)
        if self.guarantee and self.safe:
            raise PolicyError(
                f"{setting('guarantee=True')} chooses by the model's intervals alone, and {setting('safe=True')} does "
                "not trust the model alone: they do not go together. Leave one of them out."
            )
        if self.leeway is not None and not self.guarantee:
            raise PolicyError(
                f"leeway says how far {setting('guarantee=True')} may leave the largest upper end, but got "
                f"{shown(self.leeway)} without it. Leave it out, or add {setting('guarantee=True')}."
            )
        if self.guarantee:
            given = _LEEWAY if self.leeway is None else self.leeway
            object.__setattr__(self, "leeway", positive("leeway", given, zero=True, most=_MOST_LEEWAY))

    @property
    def label(self) -> str:
        notes = ["guarantee"] * self.guarantee + ["safe"] * self.safe + _prune_notes(self.prune)
        return f"CausalUCB ({', '.join(notes)})" if notes else "CausalUCB"

    def engine(self, problem: Problem) -> Engine:
        problem = _pruned(problem, self.prune)
        if self.safe:
            return SafeEngine(problem, partial(safe_parts, scale=_C, growth=_GROWTH))
        if self.leeway is not None:
            return GuaranteedEngine(problem, DELTA, _C, self.leeway, _GROWTH)
        return CausalEngine(problem, partial(parts_of, scale=_C, growth=_GROWTH))


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
                f"{setting('guarantee=True')} rests on counts of variables of 0 and 1, but these are numbers between. "
                f"Leave it out, or give {keyword('continuous', False)}."
            )
        self._delta, self._share, self._scale, self._growth = delta, share, scale, growth
        super().__init__(problem, self._guaranteed_parts)

    def _guaranteed_parts(self, problem: Problem) -> Parts:
        estimator, state, reach, _ = parts_of(problem, self._scale, growth=self._growth)
        learn = keep_intervals(state, problem.order, self._delta)
        return Parts(estimator._replace(learn=learn), state, reach, guaranteed(state, self._share))

    def choose(self, now: Situation) -> Choice:
        choice = super().choose(now)
        return choice._replace(note=_NEARLY) if self._share > 0.0 else choice

    def compare(self, now: Situation, optimistic: bool = True) -> Sequence[tuple[Action, float]]:
        return [(action, index) for action, index in super().compare(now, optimistic) if index > -math.inf]

    def _teach(self, rounds: Rounds, sizes: Sizes) -> None:
        if sizes is None:
            super()._teach(rounds, None)
            return
        for rows in batches(sizes):  # the kept intervals are looked at after each batch
            super()._teach(rounds.part(rows), np.array([rows.stop - rows.start]))
            look_again(self.state)

    def _expect(self, state: Belief, pending: Pending) -> Belief:
        state = super()._expect(state, pending)
        look_again(state)
        return state


@dataclass(frozen=True)
class CausalTS(Policy):
    """Draw a model from what is believed, and play the action that is best in it.

    prune  as for CausalUCB

    The beliefs are those of CausalUCB. Which model is drawn is a function of the round's random numbers, so that runs
    are repeatable. It looks at every allowed action, of which there may be 20,000.

    >>> import dobandit as dob
    >>> learner = dob.CausalTS().start(dob.paper.G1.graph, budget=3, seed=0)
    >>> set(learner.propose()) <= set(dob.paper.G1.graph.controllable)
    True
    """

    name: ClassVar[str] = "causal-ts"
    links: ClassVar[str] = "auto"
    learns_mechanisms: ClassVar[bool] = True
    prune: bool | None = None

    def __post_init__(self) -> None:
        _require_prune(self.prune)

    @property
    def label(self) -> str:
        return " ".join(["CausalTS", *(f"({note})" for note in _prune_notes(self.prune))])

    def engine(self, problem: Problem) -> Engine:
        return SamplingEngine(_pruned(problem, self.prune), _sampling)


def _require_prune(prune: bool | None) -> None:
    if prune is not None:
        require_bool("prune", prune)


def _pruned(problem: Problem, prune: bool | None) -> Problem:
    return problem if prune is None else replace(problem, prune=prune)


def _prune_notes(prune: bool | None) -> list[str]:
    return [] if prune is None else ["pruned" if prune else "all sets"]


def _sampling(problem: Problem) -> Parts:
    count = problem.allowed().count()
    if count > limits.MAX_ACTIONS:
        raise PolicyError(
            f"{policy_name('CausalTS')} looks at every allowed action, up to {limits.MAX_ACTIONS:,} of them, but there "
            f"are {count:,}. Lower the budget, or use {policy_name('CausalUCB')}, which searches."
        )
    return parts_of(problem, _C, drawn)


class SamplingEngine(CausalEngine):
    """A causal engine whose index is E[Y] under a drawn model.

    draws   what a round brings, which is enough for the problem that it was started on
    needed  what a drawn model of the revised problem takes
    """

    def _begin(self, believed: Problem) -> None:
        super()._begin(believed)
        self.needed = max(draws_of(self.evaluator.plan), Engine.draws)
        self.draws = self.needed if believed is self.problem else self.draws

    def _proposed(self, now: Situation) -> tuple[Evaluator, int]:
        return super()._proposed(now._replace(draws=self.enough_draws(now.draws[None, :])[0]))

    def enough_draws(self, draws: Array) -> Array:
        """What is missing is drawn from the first number of the round."""
        more = self.needed - draws.shape[1]
        if more <= 0:
            return draws
        rest = [np.random.default_rng(int(u * 2.0**53)).random(more) for u in draws[:, 0]]
        return np.hstack([draws, np.array(rest).reshape(len(draws), more)])
