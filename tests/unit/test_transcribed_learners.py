"""The transcription's learners: how they choose, the world that they act in, and that they learn."""

import math

import numpy as np
import pytest

import transcription as tr
from dobandit import BinaryGLM, CausalGraph, LinearModel, paper
from dobandit.errors import DobanditWarning
from dobandit.model.links import logistic
from helpers.transcribed import links_of, weights_of

# Two layers with a link of its own for each node.
MIXED = BinaryGLM(
    CausalGraph([("a", "c"), ("b", "c"), ("a", "d"), ("c", "Y"), ("d", "Y")], target="Y"),
    {"a": 0.4, "b": 0.5, "c": 0.3, "d": 0.1, "Y": 0.2}
    | {("a", "c"): 1.2, ("b", "c"): 0.4, ("a", "d"): 0.8, ("c", "Y"): 1.5, ("d", "Y"): 0.7},
    links={"b": "identity", "c": {"name": "logistic", "shift": 1.5}, "d": "exponential", "Y": logistic(2.0)},
)


def played(model, learner, rounds, seed=0):
    rng = np.random.default_rng(seed)
    return tr.play(model, learner, rounds, rng.random((rounds, len(model.graph))), rng.random((rounds, 3)))


# -- choosing -------------------------------------------------------------------------------------------------


def test_ties():
    assert [tr.pick([1.0, 3.0, 3.0 - 1e-9, 3.0 - 1e-8], u) for u in (0.0, 0.49, 0.5, 0.999)] == [1, 1, 2, 2]
    assert tr.pick([-1e6, -1e6 - 1e-4, -1e6 - 1e-2], 0.99) == 1


def test_sets_are_made_of_relevant_variables_in_lexicographic_order():
    with pytest.warns(DobanditWarning):
        graph = CausalGraph([("a", "Y"), ("b", "Y"), ("c", "Y"), ("a", "z")], target="Y")
    assert tr.candidate_sets(graph, 2) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert tr.candidate_sets(graph, 4) == [("a", "b", "c")]
    assert len(tr.all_arms(graph, 2)) == 6
    assert [len(tr.candidate_sets(paper.MODELS[g].graph, 2)) for g in ("G2", "G3", "G4")] == [28, 15, 6]


def test_constants_of_line_2():
    lr = tr.BLMLRTranscription(paper.G4.graph, 2, 400, radius_scale=0.1)
    assert lr.delta == pytest.approx(1 / (6 * 20))
    assert lr.radius(0) == pytest.approx(0.1 * (math.sqrt(2 * math.log(120)) + math.sqrt(6)))
    assert lr.radius(7) == pytest.approx(0.1 * (math.sqrt(6 * math.log(43) + 2 * math.log(120)) + math.sqrt(6)))
    ofu = tr.BGLMOFUTranscription(paper.G4.graph, {}, 2, 400, initial_rounds=4, kappa=0.5, radius_scale=0.1)
    assert ofu.rho == pytest.approx(0.1 * 6 * math.sqrt(math.log(360)))
    assert tr.eigenvalue_threshold(3, 0.1, 0.5, 1 / 360) == pytest.approx(512 * 3 * 0.01 * 16 * (9 + math.log(360)))


def test_a_set_node_gives_no_row_of_its_own_but_one_to_its_children():
    graph = CausalGraph([("a", "Y")], target="Y")
    lr = tr.BLMLRTranscription(graph, 1, 100)
    ofu = tr.BGLMOFUTranscription(graph, {}, 1, 100, initial_rounds=0)
    for learner in (lr, ofu):
        learner.update(("a",), {"a": 1.0, "Y": 0.0})
        learner.update((), {"a": 0.0, "Y": 1.0})
    np.testing.assert_array_equal(lr.M["a"], [[2.0]])
    np.testing.assert_array_equal(lr.M["Y"], [[3.0, 1.0], [1.0, 2.0]])
    np.testing.assert_allclose(lr.theta_hat["Y"], np.linalg.solve(lr.M["Y"], [1.0, 0.0]))
    theta, M = ofu.estimate()
    assert M["a"].tolist() == [[1.0]]
    assert M["Y"].tolist() == [[2.0, 1.0], [1.0, 1.0]]
    np.testing.assert_allclose(theta["Y"], [1.0, -1.0], atol=1e-12)


def test_ucb_by_hand():
    graph = CausalGraph([("a", "Y"), ("b", "Y")], target="Y")
    ucb = tr.UCBTranscription(graph, 1)
    assert ucb.propose([0.6, 0, 0]) == ("b",)
    ucb.update(("b",), {"Y": 1.0})
    assert ucb.propose([0.6, 0, 0]) == ("a",)
    ucb.update(("a",), {"Y": 0.0})
    # t = 3: a has 0 + sqrt(ln 3 / 1) = 1.05, b has 1 + 1.05.  t = 4: 1.18 against 1/2 + sqrt(ln 4 / 2) = 1.33
    for _ in range(2):
        assert ucb.propose([0.9, 0, 0]) == ("b",)
        ucb.update(("b",), {"Y": 0.0})
    # t = 5: a has sqrt(ln 5) = 1.27, b has 1/3 + sqrt(ln 5 / 3) = 1.07
    assert ucb.propose([0.9, 0, 0]) == ("a",)
    ucb.scale = 0.1
    assert ucb.propose([0.9, 0, 0]) == ("b",)


def test_epsilon_greedy_by_hand():
    graph = CausalGraph([("a", "Y"), ("b", "Y")], target="Y")
    greedy = tr.EpsilonGreedyTranscription(graph, 1, 0.1)
    assert greedy.propose([0.6, 0.5, 0.0]) == ("b",)
    greedy.update(("b",), {"Y": 1.0})
    assert [greedy.propose([u, 0.5, 0.0]) for u in (0.4, 0.6)] == [("a",), ("b",)]  # 1 ties with 1
    greedy.update(("a",), {"Y": 0.0})
    assert greedy.propose([0.0, 0.1, 0.0]) == ("b",)
    assert [greedy.propose([0.0, 0.09, u]) for u in (0.4, 0.6)] == [("a",), ("b",)]


# -- the world ------------------------------------------------------------------------------------------------


def test_a_set_node_consumes_its_uniform():
    model = BinaryGLM.blm({"a": 0.5, "b": 0.5, ("a", "Y"): 0.3, ("b", "Y"): 0.6}, target="Y")
    assert tr.draw_world(model, (), [0.6, 0.4, 0.5]) == {"a": 0.0, "b": 1.0, "Y": 1.0}
    assert tr.draw_world(model, ("a",), [0.6, 0.4, 0.95]) == {"a": 1.0, "b": 1.0, "Y": 0.0}


def test_a_continuous_world():
    model = LinearModel.of_weights({"a": 0.4, "Y": 0.1, ("a", "Y"): 0.5}, target="Y", noise=0.5)
    world = tr.draw_world(model, (), [0.75, 0.5])
    assert world["a"] == pytest.approx(0.4 + 0.5 * 0.5 * 0.4)
    assert world["Y"] == pytest.approx(0.1 + 0.5 * world["a"])


@pytest.mark.parametrize("model", [paper.G5, MIXED, LinearModel(paper.G5.graph, paper.G5.weights)])
def test_worlds_have_the_expected_reward(model):
    uniforms = np.random.default_rng(5).random((8_000, len(model.graph)))
    S = model.graph.controllable[:1]
    rewards = [tr.draw_world(model, S, u)[model.graph.target] for u in uniforms]
    assert np.mean(rewards) == pytest.approx(tr.expected_reward(model, S), abs=4 * np.std(rewards) / math.sqrt(8_000))


@pytest.mark.parametrize(
    ("name", "best"), [("G1", ("X3", "X4", "X5")), ("G2", ("X2", "X3")), ("G3", ("X2", "X3")), ("G4", ("X2", "X3"))]
)
def test_the_best_sets_that_the_paper_names(name, best):
    model, budget = paper.MODELS[name], paper.BUDGETS[name]
    regrets = tr.expected_regret(model, budget, [best, ()])
    assert regrets[0] == pytest.approx(0.0, abs=1e-12)
    assert regrets[1] > 0.1


# -- learning -------------------------------------------------------------------------------------------------

G4 = paper.G4
LEARNERS = {
    "BLM-LR": lambda: tr.BLMLRTranscription(G4.graph, 2, 300, radius_scale=0.1),
    "BLM-OFU": lambda: tr.BGLMOFUTranscription(G4.graph, {}, 2, 300, initial_rounds=3, radius_scale=0.1),
    "BLM-OFU from nothing": lambda: tr.BGLMOFUTranscription(G4.graph, {}, 2, 300, initial_rounds=0, radius_scale=0.1),
    "UCB": lambda: tr.UCBTranscription(G4.graph, 2),
    "UCB (scaled)": lambda: tr.UCBTranscription(G4.graph, 2, scale=0.1),
    "epsilon-greedy": lambda: tr.EpsilonGreedyTranscription(G4.graph, 2, 0.1),
    "random": lambda: tr.RandomTranscription(G4.graph, 2),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_play_on(name):
    learner = LEARNERS[name]()
    result = played(G4, learner, 300)
    assert set(result.rewards) <= {0.0, 1.0}
    assert all(S in learner.arms if hasattr(learner, "arms") else S in [*learner.sets, ()] for S in result.sets)
    if hasattr(learner, "values"):
        assert np.all(np.isfinite(learner.values()))


@pytest.mark.parametrize("name", ["BLM-LR", "BLM-OFU"])
def test_learning_beats_random_play(name):
    learned, random = (
        np.mean([tr.expected_regret(G4, 2, played(G4, LEARNERS[who](), 300, seed).sets).sum() for seed in range(3)])
        for who in (name, "random")
    )
    assert learned < 0.6 * random


def test_boxed_blm_lr_learns():
    learner = tr.BLMLRTranscription(G4.graph, 2, 60, radius_scale=0.1, region="boxed")
    sets = played(G4, learner, 60).sets
    values = learner.values()
    learner.region = "closed-form"
    assert np.all(np.array(values) <= np.array(learner.values()) + 1e-9)  # less room, and everything nonnegative here
    assert np.all(np.isfinite(values))
    assert len(set(sets)) > 1


def test_lr_estimates_converge():
    learner = tr.BLMLRTranscription(paper.G5.graph, 2, 2000, radius_scale=0.1)
    uniforms = np.random.default_rng(3).random((2000, len(paper.G5.graph)))
    for u in uniforms:
        learner.update((), tr.draw_world(paper.G5, (), u))
    for name, theta in weights_of(paper.G5).items():
        np.testing.assert_allclose(learner.theta_hat[name], theta, atol=0.15)


def test_lr_on_a_continuous_model():
    model = LinearModel(G4.graph, G4.weights)
    learner = tr.BLMLRTranscription(model.graph, 2, 200, radius_scale=0.1)
    result = played(model, learner, 200)
    assert all(0.0 <= reward <= 1.0 for reward in result.rewards)
    assert np.all(np.isfinite(learner.values()))


def test_ofu_on_nonlinear_links():
    graph = MIXED.graph
    learner = tr.BGLMOFUTranscription(graph, links_of(MIXED), 1, 80, initial_rounds=40, radius_scale=0.02)
    result = played(MIXED, learner, 80)
    assert result.sets[:40] == [()] * 40
    assert all(len(S) == 1 for S in result.sets[40:])
    theta, M = learner.estimate()
    for name in graph.nodes:
        V, x = learner.data(name)
        assert np.linalg.norm(tr.score(theta[name], V, x, MIXED.link(name))) <= 1e-10
        np.testing.assert_allclose(M[name], V.T @ V)
    assert np.all(np.isfinite(learner.values()))
    assert max(learner.values()) <= 1.0 + 1e-12


def test_lambda_min_ends_the_initialization():
    thresholds = dict.fromkeys(G4.graph.nodes, 2.3)
    learner = tr.BGLMOFUTranscription(G4.graph, {}, 2, 100, radius_scale=0.1, thresholds=thresholds)
    sets = played(G4, learner, 100).sets
    started = sets.index(next(S for S in sets if S))
    assert 5 < started < 100
    assert all(len(S) == 2 for S in sets[started:])
    before = tr.BGLMOFUTranscription(G4.graph, {}, 2, 100, thresholds=thresholds)
    world_uniforms = np.random.default_rng(0).random((100, len(G4.graph)))
    for t in range(started):
        assert before.initializing()
        before.update((), tr.draw_world(G4, (), world_uniforms[t]))
    assert min(np.linalg.eigvalsh(before.gram(name))[0] for name in G4.graph.nodes) >= 2.3


def test_a_node_without_parents_or_bias():
    with_dead = BinaryGLM(
        CausalGraph([("dead", "Y"), ("a", "Y")], target="Y", bias=["a"]),
        {"a": 0.5, ("a", "Y"): 0.5, ("dead", "Y"): 0.4},
    )
    for learner in (
        tr.BLMLRTranscription(with_dead.graph, 1, 30, 0.1),
        tr.BLMLRTranscription(with_dead.graph, 1, 30, 0.1, region="boxed"),
        tr.BGLMOFUTranscription(with_dead.graph, {}, 1, 30, initial_rounds=2, radius_scale=0.1),
        tr.BGLMOFUTranscription(with_dead.graph, {"Y": logistic(1.0)}, 1, 30, initial_rounds=2, radius_scale=0.1),
        tr.BGLMOFUTranscription(with_dead.graph, {}, 1, 30, thresholds=dict.fromkeys(with_dead.graph, 0.0)),
    ):
        played(with_dead, learner, 30)
        assert np.all(np.isfinite(learner.values()))
