"""What the tests of policies share: one of each kind, and problems for them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dobandit import (
    BGLMOFU,
    BLMLR,
    KLUCB,
    UCB,
    BinaryGLM,
    CausalGraph,
    EpsilonGreedy,
    Fixed,
    Oracle,
    Random,
    ThompsonSampling,
)
from dobandit.model.links import exponential, logistic
from dobandit.policy.engine import Rounds, Situation
from helpers.worlds import ARCTAN

LOGISTIC = logistic(1.5)


class Case:
    """A policy with the links it is started with. `make` gets the graph: Fixed and Oracle depend on it."""

    def __init__(self, name, make, links=None):
        self.name, self.make, self.links = name, make, links

    def start(self, graph, budget, horizon=1000, seed=0, **options):
        return self.make(graph, budget).start(graph, budget, horizon=horizon, seed=seed, links=self.links, **options)


def a_model(graph, links):
    """Any model on the graph."""
    sizes = np.diff(graph.arrays.parent_ptr)
    theta = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    return BinaryGLM(graph, theta, links=links)


CASES = [
    Case("BLMLR", lambda g, k: BLMLR(radius_scale=0.1)),
    Case("BLMLR boxed", lambda g, k: BLMLR(radius_scale=0.1, region="boxed")),
    Case("BLMLR search", lambda g, k: BLMLR(radius_scale=0.1, region="boxed", oracle="greedy")),
    Case("BLMLR lemma", lambda g, k: BLMLR(radius="lemma")),
    Case("BLMOFU after 5", lambda g, k: BGLMOFU(radius_scale=0.1, initial=5)),
    Case("BLMOFU lambda-min", lambda g, k: BGLMOFU(radius_scale=0.1)),
    Case("BLMOFU boxed", lambda g, k: BGLMOFU(radius_scale=0.1, initial=3, region="boxed")),
    Case("BGLMOFU logistic", lambda g, k: BGLMOFU(radius_scale=0.1, initial=4, kappa=0.1), LOGISTIC),
    Case("BGLMOFU exponential", lambda g, k: BGLMOFU(radius_scale=0.1, initial=4, kappa=0.1), exponential),
    Case("BGLMOFU custom", lambda g, k: BGLMOFU(radius_scale=0.1, initial=4, kappa=0.1), ARCTAN),
    Case("UCB", lambda g, k: UCB(scale=0.5)),
    Case("KL-UCB", lambda g, k: KLUCB()),
    Case("Thompson sampling", lambda g, k: ThompsonSampling()),
    Case("eps-greedy", lambda g, k: EpsilonGreedy(0.2)),
    Case("Fixed", lambda g, k: Fixed(g.controllable[:k])),
    Case("Random", lambda g, k: Random()),
    Case("Oracle", lambda g, k: Oracle(a_model(g, None))),
]
every_policy = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def arrays_of(state):
    """Every array of a state, in order."""
    if isinstance(state, np.ndarray):
        return [state]
    return [array for part in state for array in arrays_of(part)] if isinstance(state, tuple) else []


SCRATCH = {"row", "work"}


def kept(state):
    """The arrays that count: not the scratch."""
    if not isinstance(state, tuple):
        return [state] if isinstance(state, np.ndarray) else []
    return [array for name in state._fields if name not in SCRATCH for array in kept(getattr(state, name))]


def now(learner, context=None, draws=(0.37, 0.9, 0.5), **rest):
    """A situation; the second number lets epsilon-greedy compare."""
    more = np.full(max(learner.engine.draws - len(draws), 0), 0.5)
    return Situation(np.append(draws, more), learner.context(context), **rest)


def assert_same_bits(one, other):
    """Two learners that know the same, to the last bit, and say so too."""
    for left, right in zip(arrays_of(one.engine.state), arrays_of(other.engine.state), strict=True):
        np.testing.assert_array_equal(left, right)
    assert one.rounds == other.rounds
    graph = one.graph
    for names in itertools.chain.from_iterable(itertools.combinations(graph.controllable, k) for k in range(3)):
        assert repr(one.predict(names)) == repr(other.predict(names))


def assert_sound(learner, action, budget):
    """At most K controllable variables, each set to 1, and no NaN anywhere."""
    assert len(action) <= budget
    assert set(action) <= set(learner.graph.controllable)
    assert set(action.values()) <= {1}
    for array in kept(learner.engine.state):
        for part in [array[name] for name in array.dtype.names] if array.dtype.names else [array]:
            assert np.all(np.isfinite(part))
    if learner.keeps_model:
        assert np.all(np.isfinite([value for _, value in learner.engine.compare(now(learner))]))


def random_round(rng, graph, action, missing=0.0, never=()):
    """Values of a round: what was set is 1, `never` is 0, and some are not seen."""
    values = {name: int(rng.integers(2)) for name in graph.nodes} | dict.fromkeys(never, 0) | action
    return {name: value for name, value in values.items() if rng.random() >= missing}


def play(learner, rng, rounds, missing=0.0, never=(), always=None):
    """Propose, draw anything, update; returns the actions. `always` is set whatever is proposed."""
    actions = []
    for _ in range(rounds):
        action = learner.propose()
        assert_sound(learner, action, learner.problem.budget)
        done = dict(action) | (always or {})
        learner.update(done, random_round(rng, learner.graph, done, missing, never))
        actions.append(action)
    return actions


def counted_rows(rng, graph, count, continuous=False):
    """Rounds with any action, values not seen, and how often each happened."""
    shape = (count, len(graph) + 1)
    values = rng.random(shape) if continuous else rng.integers(0, 2, shape).astype(float)
    was_set = np.isin(np.arange(shape[1]), graph.arrays.controllable) & (rng.random(shape) < 0.2)
    values[was_set & (rng.random(shape) < 0.8)] = 1.0
    values[(rng.random(shape) < 0.1) & ~was_set] = np.nan
    values[:, 0] = 1.0
    return Rounds(values, was_set, rng.integers(1, 9, count))


def parallel(parents: int, **options):
    return CausalGraph([(f"P{i}", "Y") for i in range(parents)], target="Y", **options)
