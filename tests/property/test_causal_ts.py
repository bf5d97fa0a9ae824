"""CausalTS: its choice is the best action of a model drawn as the definition says, and its draws have the spread that
the intervals promise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import ndtri

from dobandit import BinaryGLM, CausalTS, CausalUCB, Random, paper, simulate
from dobandit.errors import PolicyError
from dobandit.model.links import logistic
from dobandit.oracle.posterior_draw import normal
from dobandit.policy.engine import Situation, no_context
from helpers.foreign import ThompsonArms, ThompsonEngine


def told(policy, model, budget, rounds=300, links=None, seed=0):
    """A learner that has been told rounds of random actions."""
    learner = policy.start(model.graph, budget, links=links, effects="any")
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        some = [name for name in model.graph.controllable if rng.random() < 0.3]
        drawn = model.sample(dict.fromkeys(some, 1), 1, seed * 10_000 + t)
        learner.update(some, {name: float(column[0]) for name, column in drawn.items() if name not in some})
    return learner


def situation(learner, rng):
    return Situation(rng.random(learner.engine.draws), no_context(len(learner.graph)))


def test_normal_numbers():
    u = np.concatenate([np.linspace(1e-9, 1 - 1e-9, 2001), [1e-12, 0.02425, 0.97575]])
    assert [normal(float(x)) for x in u] == pytest.approx(ndtri(u).tolist(), rel=1e-7, abs=1e-8)


def plain_value(graph, theta, do):
    """E[target | do] of a linear model with drawn weights, which need be no probabilities."""
    means = {}
    for name in graph.nodes:
        bias, weights = theta[name]
        means[name] = do.get(name, bias + sum(w * means[p] for p, w in weights.items()))
    return means[graph.target]


@pytest.mark.parametrize("model", [paper.G4, paper.G5], ids=["G4", "G5"])
def test_a_linear_choice_is_the_best_action_of_drawn_weights(model):
    learner = told(CausalTS(), model, 2, links="identity")
    graph, beliefs, rng = learner.graph, learner.engine.beliefs(), np.random.default_rng(1)
    for _ in range(20):
        now = situation(learner, rng)
        theta, at = {}, 1  # the first number is for ties; a node's first for its member
        for name in graph.nodes:
            node = beliefs.node(graph.index(name))
            d = len(node.parents)
            z = ndtri(now.draws[at + 1 : at + 1 + d])
            drawn = dict(zip(node.parents, node.theta + np.linalg.cholesky(node.inverse) @ z, strict=True))
            theta[name] = drawn.pop(0, 0.0), {graph.nodes[p - 1]: w for p, w in drawn.items()}
            at += 1 + d
        sets = [s for size in range(3) for s in combinations(graph.controllable, size)]
        values = {s: plain_value(graph, theta, dict.fromkeys(s, 1.0)) for s in sets}
        choice = learner.engine.choose(now)
        assert set(choice.action.named(graph)) == set(max(values, key=values.get))
        assert choice.value == pytest.approx(max(values.values()), abs=1e-6)
        for action, value in learner.engine.compare(now):
            assert value == pytest.approx(values[tuple(action.named(graph))], abs=1e-6)


CURVED = BinaryGLM(paper.G5.graph, paper.G5.weights, links=logistic())


@pytest.mark.parametrize("links", ["identity", "logistic", "auto"])
def test_draws_are_spread_as_the_bonus_of_causal_ucb_says(links):
    model = CURVED if links == "logistic" else paper.G5
    learner = told(CausalTS(), model, 2, rounds=1500, links=links)
    engine, rng = learner.engine, np.random.default_rng(2)
    rows = [dict(engine.compare(situation(learner, rng))) for _ in range(600)]
    bonus = CausalUCB().start(model.graph, 2, links=links)
    bonus.engine.state = engine.state
    index = dict(bonus.engine.compare(situation(bonus, rng)))
    for action in rows[0]:
        drawn = np.array([row[action] for row in rows])
        value = engine.predict(action, no_context(len(learner.graph))).value
        error = (index[action] - value) / 2  # CausalUCB adds two standard errors
        error /= np.sqrt(1.5) if links == "auto" else 1.0  # a row of a table counts as one and a half
        assert drawn.mean() == pytest.approx(value, abs=0.25 * error + 0.01)
        assert drawn.std() == pytest.approx(error, rel=0.25)


def test_it_believes_what_causal_ucb_believes():
    ours, theirs = (told(policy, paper.G5, 2, links="auto") for policy in (CausalTS(), CausalUCB()))
    for names in ((), ("X2",), ("X2", "X4")):
        assert ours.predict(names) == theirs.predict(names)
    assert ours.best() == theirs.best()


def test_it_settles_on_the_best_action():
    result = simulate(paper.G5, {"ts": CausalTS(), "random": Random()}, 2_000, 10, seed=3, links="auto", workers=1)
    assert result.regret("ts")[:, -1].mean() < 0.1 * result.regret("random")[:, -1].mean()


def test_its_numbers_do_not_depend_on_what_others_need():
    @dataclass(frozen=True)
    class Needy(ThompsonArms):
        name: ClassVar[str] = "needy"

        def engine(self, problem):
            engine = ThompsonEngine(problem, self.prior)
            engine.draws = 200
            return engine

    alone = simulate(paper.G4, {"ts": CausalTS()}, 50, 2, record="every")
    among = simulate(paper.G4, {"needy": Needy(), "ts": CausalTS()}, 50, 2, record="every")
    assert np.array_equal(alone.regret("ts"), among.regret("ts"))


def test_too_many_actions_are_refused():
    names = [f"X{i}" for i in range(40)]
    model = BinaryGLM.blm({**dict.fromkeys(names, 0.1), **{(x, "Y"): 0.02 for x in names}}, target="Y")
    with pytest.raises(PolicyError, match="use CausalUCB"):
        CausalTS().start(model.graph, 5)
