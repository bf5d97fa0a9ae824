"""Draws of Thompson's rule from Beta distributions, by two uniform numbers each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from dobandit import CausalGraph, CausalTS, CausalUCB, ThompsonSampling
from dobandit.oracle.posterior_draw import draw_beta
from dobandit.policy.engine import Situation

SIDES = {"effects": "any", "levers": dict.fromkeys("ABPQ", (0, 1))}
EDGES = [(cause, effect) for cause in "AB" for effect in "PQ"] + [("P", "Y"), ("Q", "Y")]
MARK = CausalGraph(EDGES, target="Y", controllable=list("ABPQ"))


@pytest.mark.parametrize(("a", "b"), [(0.75, 0.75), (1.0, 1.0), (0.5, 20.0), (3.0, 0.75), (20.0, 5.0), (0.75, 300.0)])
def test_draws_are_beta(a, b):
    uniforms = np.random.default_rng(3).random((4000, 2))
    drawn = beta.cdf([draw_beta(a, b, *pair) for pair in uniforms.tolist()], a, b)
    apart = np.abs(np.sort(drawn) - (np.arange(4000) + 0.5) / 4000).max()
    assert apart < 1.95 / np.sqrt(4000) + 0.005  # Kolmogorov's bound at 0.1%, and what the approximation may be off


@pytest.mark.parametrize("policy", [CausalUCB(prune=True), CausalTS(prune=True), ThompsonSampling(prune=True)])
def test_pruned_learners_play_only_what_can_be_best(policy):
    learner = policy.start(MARK, 4, **SIDES)
    assert policy.label.endswith("(pruned)")
    assert {frozenset(action.named(MARK)) for action, _ in learner.engine.compare(now(learner))} == {frozenset("PQ")}


def test_many_arms_have_draws_of_their_own():
    learner = ThompsonSampling().start(MARK, 4, **SIDES)
    index = [value for _, value in learner.engine.compare(now(learner))]
    assert len(set(index)) == len(index) == 81
    assert learner.engine.choose(now(learner)).value == max(index)


def now(learner):
    return Situation(np.random.default_rng(5).random(learner.engine.draws), learner.context(None))
