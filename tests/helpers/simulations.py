"""What the tests of simulated studies share: worlds, policies, studies, and rounds that are played by hand."""

from __future__ import annotations

import numpy as np
import pytest

import transcription as tr
from dobandit import BGLMOFU, BLMLR, UCB, EpsilonGreedy, Random, paper
from dobandit.model.random_models import random_model
from dobandit.policy.engine import Draws
from dobandit.policy.recording import Recorder, blank_tape
from dobandit.policy.world import World
from dobandit.simulation.result import StudyResult
from dobandit.simulation.study import Study, study_of

LOGISTIC = random_model("layered", 6, seed=2, parents=2, link={"name": "logistic", "shift": 1.5})
LAYERED = random_model("layered", 8, seed=1, parents=3)
HIDDEN = random_model("layered", 7, seed=3, parents=3, latent=3)
CONTINUOUS = random_model("layered", 7, seed=4, parents=3, continuous=True)
HIDDEN_CONTINUOUS = random_model("parallel", 6, seed=5, latent=3, continuous=True)
MODELS = {
    "layered": LAYERED,
    "hidden": HIDDEN,
    "continuous": CONTINUOUS,
    "hidden continuous": HIDDEN_CONTINUOUS,
    "logistic": LOGISTIC,
}
LINEAR_POLICIES = [
    BLMLR(radius_scale=0.1),
    BLMLR(radius="lemma"),
    BLMLR(radius_scale=0.1, region="boxed"),
    BGLMOFU(radius_scale=0.1, initial=15),
    BGLMOFU(radius_scale=0.1),
    BGLMOFU(radius_scale=0.1, initial=15, region="boxed"),
    BLMLR(radius_scale=0.1, region="boxed", oracle="greedy"),
]
ANY_POLICIES = [UCB(), UCB(scale=0.1), EpsilonGreedy(0.1), EpsilonGreedy(1.0), Random()]
GENERAL_POLICIES = [BGLMOFU(radius_scale=0.02, initial=25, kappa=0.1), BGLMOFU(radius_scale=0.1, initial=0, kappa=0.1)]
PAPER_POLICIES = ["blm-lr:radius_scale=0.1", "blm-ofu:radius_scale=0.1,initial=20", "ucb", "eps-greedy:epsilon=0.1"]
CURVES = ("all_regret", "all_reward", "best_plays")


class CompiledRounds:
    """Rounds of a model that a learner plays compiled, as studies do: `test_simulation` compares them with rounds that
    are asked and told one by one."""

    def __init__(self, model, learner, seed) -> None:
        self.engine, self.world, self.rng = learner.engine, World(model, learner.graph), np.random.default_rng(seed)
        self.nodes = len(model.graph)

    def play(self, rounds) -> None:
        actions = self.engine.actions()
        tape = blank_tape(np.zeros((1, len(actions.ids) + 1)), np.zeros(1), np.array([rounds]))
        recorder = Recorder(tape, lambda *_: 0.0, np.zeros(0, dtype=np.int32), actions)
        uniforms = self.rng.random((rounds, self.nodes)), self.rng.random((rounds, self.engine.draws))
        self.engine.run(self.world, recorder, Draws(*uniforms))


def study(model=paper.G4, policies=PAPER_POLICIES, rounds=200, replications=6, budget=2, **options) -> Study:
    """budget: a number, or Rules."""
    return study_of(model, policies, rounds, replications, budget, **options)


def assert_same(first: StudyResult, second: StudyResult) -> None:
    for name in CURVES:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.best, first.best_do) == (second.best, second.best_do)


def uniforms(seed: int, replication: int, rounds: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The random numbers of a replication: (rounds, nodes) for the world, (rounds, 3) for the policies."""
    streams = [np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(replication, i))) for i in range(2)]
    return streams[0].random((rounds, nodes)), streams[1].random((rounds, 3))


def learner_by_hand(model, policy, rules, rounds, seed):
    """As a study starts it: told the signs of the weights, never the weights."""
    links = {name: model.link(name) for name in model.graph.nodes}
    effects = "nonnegative" if min(model.weights.values()) >= 0 else "any"
    options = {"links": links, "continuous": model.continuous, "effects": effects}
    return policy.start(model.graph, rules, horizon=rounds, seed=seed, **options)


def played_by_hand(model, policy, budget, rounds, seed, replication):
    """The same run through Learner.propose and update: (sets, rewards)."""
    learner = learner_by_hand(model, policy, budget, rounds, seed)
    world_draws, policy_draws = uniforms(seed, replication, rounds, len(model.graph))
    sets, rewards = [], []
    for t in range(rounds):
        action = learner.propose(policy_draws[t])
        chosen = tuple(name for name in model.graph.controllable if name in action)
        values = tr.draw_world(model, chosen, world_draws[t])
        learner.update(action, {name: values[name] for name in model.graph.observed})
        sets.append(chosen)
        rewards.append(values[model.target])
    return sets, np.array(rewards)


def assert_played(result, row, replication, sets, rewards):
    model, budget = result.study.model, result.study.problem.budget
    regret = np.cumsum(tr.expected_regret(model, budget, sets))
    np.testing.assert_allclose(result.all_regret[row, replication], regret[result.grid - 1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        result.all_reward[row, replication], np.cumsum(rewards)[result.grid - 1], rtol=0, atol=1e-9
    )
    best = tr.best_reward(model, budget)
    assert result.best == pytest.approx(best, abs=1e-12)
    reward = {chosen: tr.expected_reward(model, chosen) for chosen in set(sets)}
    optimal = sum(reward[chosen] >= best - 1e-12 for chosen in sets)
    assert result.best_plays[row, replication] == optimal
