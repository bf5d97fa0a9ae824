"""The suite that is offered to others, over every policy of ours and over one that a stranger could have written."""

from __future__ import annotations

import copy
import math
import random
from dataclasses import dataclass
from unittest import SkipTest

import numpy as np
import pytest

from dobandit import (
    BGLMOFU,
    BLMLR,
    KLUCB,
    LUCB,
    UCB,
    BestSet,
    CausalTS,
    CausalUCB,
    EpsilonGreedy,
    Fixed,
    Oracle,
    Random,
    ThompsonSampling,
)
from dobandit.errors import PolicyError
from dobandit.policy.engine import Action, Choice, Estimate, Rounds
from dobandit.testing.policies import PolicySuite, name_of
from dobandit.testing.problems import CASES
from helpers.foreign import ThompsonArms, ThompsonEngine


class FamilySuite(PolicySuite):
    """Policies that share an engine, or have a simple one. The first meets every problem in every test. The others meet
    every third problem in a test, another third in the next: each still meets every problem, and goes through every
    test."""

    def pytest_generate_tests(self, metafunc):
        if "case" not in metafunc.fixturenames:
            super().pytest_generate_tests(metafunc)
            return
        turn = TESTS.index(metafunc.function.__name__)
        met = [
            pytest.param(policy, case, id=f"{name_of(policy)}-{case.name}")
            for i, policy in enumerate(self.policies)
            for j, case in enumerate(self.cases)
            if i == 0 or (i + j + turn) % 3 == 0
        ]
        metafunc.parametrize(("policy", "case"), met)


TESTS = [name for name in vars(PolicySuite) if name.startswith("test_")]


class TestLinearRegression(FamilySuite):
    policies = (
        BLMLR(radius_scale=0.1),
        BLMLR(radius_scale=0.1, clipped=True),
        BLMLR(radius_scale=0.1, region="boxed", radius="lemma", clipped=True),
        BLMLR(radius_scale=0.1, region="boxed", oracle="greedy"),
    )


class TestCausal(FamilySuite):
    policies = (CausalUCB(), CausalTS(), CausalUCB(safe=True), CausalUCB(guarantee=True))


class TestMaximumLikelihood(FamilySuite):
    policies = (
        BGLMOFU(radius_scale=0.1, initial=10),
        BGLMOFU(radius_scale=0.1, lambda_scale=0.0, clipped=True),
        BGLMOFU(radius_scale=0.1, initial=5, region="boxed", clipped=True),
    )


class TestArms(FamilySuite):
    policies = (
        UCB(),
        UCB(scale=0.1),
        KLUCB(),
        KLUCB(c=3.0),
        ThompsonSampling(),
        EpsilonGreedy(),
        EpsilonGreedy(epsilon=1.0),
    )


class TestAnswerSeekers(PolicySuite):
    policies = (BestSet(epsilon=0.3), LUCB(epsilon=0.3))


class TestYardsticks(FamilySuite):
    policies = (Random(), Fixed(["X1"]), Fixed({"X4": 0}), Oracle)


class TestForeignPolicy(FamilySuite):
    policies = (ThompsonArms(), ThompsonArms(prior=2.0))


# -- the suite finds what it is there to find ----------------------------------------------------------------------


def breaking(**methods):
    """The stranger's policy with some of its methods replaced."""
    broken = type("BrokenEngine", (ThompsonEngine,), methods)

    @dataclass(frozen=True)
    class Broken(ThompsonArms):
        def engine(self, problem):
            return broken(problem, self.prior)

    return Broken()


def counting_asks(self, now):
    self.rounds += 1
    return ThompsonEngine.choose(self, now)


def its_own_dice(self, now):
    return Choice(min(self._arms(now.available)) if random.random() < 0.5 else max(self._arms(now.available)), math.nan)


def one_row_at_most(self, rounds, sizes=None):
    ThompsonEngine.update(self, Rounds(*(part[:1] for part in rounds)))


def without_counts(self, rounds, sizes=None):
    ThompsonEngine.update(self, rounds._replace(counts=np.ones_like(rounds.counts)))


def fearing_the_unseen(self, rounds, sizes=None):
    assert not np.isnan(rounds.values).any(), "some value is NaN"
    ThompsonEngine.update(self, rounds)


def playing_the_last(self, world, recorder, draws):
    for world_draws in draws.world:
        context = world.context(world_draws)
        action = self._arms(None)[-1]
        seen = world.play(action, world_draws)
        recorder.note(action, context, float(seen.values[0, self.problem.graph.arrays.target]))


BROKEN = {
    "choose learns": ("questions_are_repeatable", {"choose": counting_asks}, "questions are no rounds"),
    "choose throws dice": ("questions_are_repeatable", {"choose": its_own_dice}, "asked twice|after many questions"),
    "sets what cannot be set now": (
        "what_it_chooses_is_allowed",
        {"compare": lambda self, now, optimistic=True: [(self._arms(None)[0], 0.0)]},
        "can be set now",
    ),
    "sets everything": (
        "what_it_chooses_is_allowed",
        {"choose": lambda self, now: Choice(Action((1, 2, 3, 4), (1.0,) * 4), math.nan)},
        "rule out",
    ),
    "sets the target": (
        "what_it_chooses_is_allowed",
        {"choose": lambda self, now: Choice(Action((5,), (1.0,)), math.nan)},
        "not controllable",
    ),
    "hides the chosen": (
        "what_it_compares",
        {"choose": lambda self, now: Choice(ThompsonEngine.compare(self, now)[0][0], 2.0)},
        "but",
    ),
    "predicts beyond 1": ("predictions_lie", {"predict": lambda self, *_: Estimate(1.2, 1.1, 1.3)}, "within"),
    "predicts outside": ("predictions_lie", {"predict": lambda self, *_: Estimate(0.9, 0.1, 0.3)}, "in its interval"),
    "drops rows": ("a_batch_single_rounds", {"update": one_row_at_most}, "in a batch"),
    "drops counts": ("a_batch_single_rounds", {"update": without_counts}, "by their counts"),
    "counts rows": ("rounds_are_counted", {"update": without_counts}, "happened 5 times"),
    "shares its memory": ("a_copy_learns", {"copy": copy.copy}, "without a copy"),
    "fears NaN": ("values_that_were_not_seen", {"update": fearing_the_unseen}, "some value is NaN"),
    "runs otherwise": (
        "a_simulated_run",
        {"run": playing_the_last, "actions": lambda self: None},
        "same random numbers",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_the_suite_finds(fault):
    test, methods, words = BROKEN[fault]
    suite = PolicySuite()
    (name,) = [name for name in dir(suite) if name.startswith(f"test_{test}")]
    with pytest.raises(AssertionError, match=words):
        getattr(suite, name)(breaking(**methods), CASES[0])


def test_the_suite_finds_a_policy_that_files_cannot_hold():
    with pytest.raises(PolicyError, match="Give the class name"):
        PolicySuite().test_files_and_the_command_line_hold_it_by_name(breaking())


def test_the_suite_finds_a_policy_that_takes_no_problem():
    class Picky(ThompsonArms):
        def engine(self, problem):
            raise PolicyError("not this one.")

    with pytest.raises(AssertionError, match="signed levers: not this one"):
        PolicySuite().test_it_takes_some_problem(Picky())
    with pytest.raises(SkipTest, match="not this one"):
        PolicySuite().test_rounds_are_counted(Picky(), CASES[0])
