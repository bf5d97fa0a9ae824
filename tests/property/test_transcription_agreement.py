"""The compiled policies against the transcription of the paper, choice by choice on the same random numbers.

Both get the same worlds and the same three numbers a round, and must propose the same set in every round.
Where estimates themselves are compared, values are those of all sets, before the arg max.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transcription as tr
from dobandit import BGLMOFU, BLMLR, KLUCB, UCB, BinaryGLM, CausalGraph, EpsilonGreedy, LinearModel, Random, paper
from dobandit.model.links import exponential, identity, logistic
from dobandit.policy.engine import Situation, no_context
from helpers.worlds import THOROUGH, blms, quietly, relaxed

seeds = st.integers(0, 2**32 - 1)


def same_choices(model, learner, reference, rounds, seed=0, every=None):
    """Play both on the same randomness; returns the sets. `every`: after how many rounds all values are compared."""
    rng = np.random.default_rng(seed)
    graph = model.graph
    chosen = []
    for t in range(rounds):
        u, worlds = rng.random(3), rng.random(len(graph))
        theirs = reference.propose(u)
        ours = tuple(learner.propose(u))
        if every and t % every == 0 and theirs:
            found = learner.engine.compare(Situation(u, no_context(len(learner.graph))))
            assert [tuple(action.named(graph)) for action, _ in found] == reference.sets
            values = [value for _, value in found]
            np.testing.assert_allclose(values, reference.values(), rtol=1e-8, atol=1e-8, err_msg=f"round {t}")
        assert ours == theirs, f"round {t}"
        observation = tr.draw_world(model, ours, worlds)
        reference.update(theirs, observation)
        learner.update(dict.fromkeys(ours, 1), observation)
        chosen.append(ours)
    return chosen


def random_model(seed, size=6, model=BinaryGLM):
    """A linear model on a random DAG, some nodes of which have no bias."""
    rng = np.random.default_rng(seed)
    nodes = [f"X{i}" for i in range(size)]
    edges = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :] if rng.random() < 0.5]
    edges += [] if any(b == nodes[-1] for _, b in edges) else [(nodes[0], nodes[-1])]
    bias = [name for name in nodes if rng.random() < 0.8]
    graph = quietly(CausalGraph, edges, target=nodes[-1], bias=bias, nodes=nodes)
    sizes = np.diff(graph.arrays.parent_ptr)
    return model(graph, np.concatenate([rng.dirichlet(np.ones(k + 1))[:k] for k in sizes]))


GRAPHS = list(paper.MODELS)


# -- BLM-LR ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.1, 1.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_blm_lr_on_the_papers_graphs(name, scale):
    model, budget, horizon = paper.MODELS[name], paper.BUDGETS[name], paper.ROUNDS[name]
    learner = BLMLR(radius_scale=scale).start(model.graph, budget, horizon=horizon)
    reference = tr.BLMLRTranscription(model.graph, budget, horizon, radius_scale=scale)
    same_choices(model, learner, reference, 60 * THOROUGH, every=15)


@pytest.mark.parametrize("seed", range(8))
def test_blm_lr_on_random_graphs(seed):
    model = random_model(seed)
    budget = 1 + seed % 3
    learner = BLMLR(radius_scale=0.1).start(model.graph, budget, horizon=300)
    reference = tr.BLMLRTranscription(model.graph, budget, 300, radius_scale=0.1)
    same_choices(model, learner, reference, 60 * THOROUGH, seed, every=15)


@relaxed(max_examples=30)
@given(blms(most=6), st.data())
def test_blm_lr_with_any_budget_and_scale(model, data):
    budget = data.draw(st.integers(0, len(model.graph.controllable)))
    scale = data.draw(st.sampled_from([0.0, 0.05, 0.3, 1.0]))
    learner = BLMLR(radius_scale=scale).start(model.graph, budget, horizon=50)
    reference = tr.BLMLRTranscription(model.graph, budget, 50, radius_scale=scale)
    same_choices(model, learner, reference, 40, data.draw(seeds), every=10)


@pytest.mark.parametrize("seed", range(3))
def test_blm_lr_on_continuous_models(seed):
    model = random_model(seed, model=LinearModel)
    learner = BLMLR(radius_scale=0.1).start(model.graph, 2, horizon=200, continuous=True)
    reference = tr.BLMLRTranscription(model.graph, 2, 200, radius_scale=0.1)
    same_choices(model, learner, reference, 60 * THOROUGH, seed, every=15)


@pytest.mark.parametrize("name", ["G4", "G5"])
@pytest.mark.parametrize("scale", [0.05, 0.1, 1.0])
def test_blm_lr_within_the_box(name, scale):
    model, budget = paper.MODELS[name], paper.BUDGETS[name]
    learner = BLMLR(radius_scale=scale, region="boxed").start(model.graph, budget, horizon=1000)
    reference = tr.BLMLRTranscription(model.graph, budget, 1000, radius_scale=scale, region="boxed")
    same_choices(model, learner, reference, 24, every=6)


@pytest.mark.parametrize("seed", range(4))
def test_blm_lr_within_the_box_on_random_graphs(seed):
    model = random_model(seed, size=5)
    learner = BLMLR(radius_scale=0.05, region="boxed").start(model.graph, 2, horizon=200)
    reference = tr.BLMLRTranscription(model.graph, 2, 200, radius_scale=0.05, region="boxed")
    same_choices(model, learner, reference, 24, seed, every=6)


# -- BGLM-OFU on linear models --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_blm_ofu_with_the_papers_initial_rounds(name, scale):
    """T0 = T / 100 leaves M singular on G2, G3 and G4 for a while."""
    model, budget, horizon = paper.MODELS[name], paper.BUDGETS[name], paper.ROUNDS[name]
    initial = horizon // 100
    learner = BGLMOFU(radius_scale=scale, initial=initial).start(model.graph, budget, horizon=horizon)
    reference = tr.BGLMOFUTranscription(model.graph, {}, budget, horizon, initial_rounds=initial, radius_scale=scale)
    chosen = same_choices(model, learner, reference, initial + 60, every=20)
    assert chosen.count(()) == initial


def test_blm_ofu_on_g2_begins_with_a_singular_gram_matrix():
    learner = BGLMOFU(radius_scale=0.1, initial=4).start(paper.G2.graph, 2, horizon=2000)
    reference = tr.BGLMOFUTranscription(paper.G2.graph, {}, 2, 2000, initial_rounds=4, radius_scale=0.1)
    same_choices(paper.G2, learner, reference, 4)
    target = paper.G2.graph.index("Y")
    assert learner.engine.state.nodes["rank"][target] < 8
    same_choices(paper.G2, learner, reference, 60, seed=1, every=1)


@pytest.mark.parametrize("name", GRAPHS)
def test_blm_ofu_until_lambda_min_is_large_enough(name):
    model, budget = paper.MODELS[name], paper.BUDGETS[name]
    learner = BGLMOFU(radius_scale=0.1).start(model.graph, budget, horizon=2000)
    thresholds = dict.fromkeys(model.graph.nodes, 1.0)
    reference = tr.BGLMOFUTranscription(model.graph, {}, budget, 2000, radius_scale=0.1, thresholds=thresholds)
    chosen = same_choices(model, learner, reference, 120, every=20)
    assert () in chosen
    assert chosen[-1] != ()


@pytest.mark.parametrize("seed", range(6))
def test_blm_ofu_on_random_graphs(seed):
    model = random_model(seed, size=5)
    learner = BGLMOFU(radius_scale=0.2, initial=5).start(model.graph, 2, horizon=200)
    reference = tr.BGLMOFUTranscription(model.graph, {}, 2, 200, initial_rounds=5, radius_scale=0.2)
    same_choices(model, learner, reference, 80, seed, every=10)


# -- BGLM-OFU on other links ----------------------------------------------------------------------------------

# 1 - exp(-x) as kernels have it: along its tangent below 0, where the paper leaves f open.
TANGENT = dataclasses.replace(
    exponential,
    value=lambda x: np.where(np.asarray(x) >= 0.0, -np.expm1(-np.maximum(x, 0.0)), x),
    slope=lambda x: np.exp(-np.maximum(x, 0.0)),
)
NONLINEAR = {
    "logistic": (logistic(1.0), 1.0),
    "logistic, shifted": (logistic(2.0), 2.0),
    "exponential": (exponential, 0.4),
    "mixed": (None, 0.7),
}


def nonlinear_model(kind):
    """Two layers; `mixed` has a link of its own for each node."""
    graph = CausalGraph([("a", "c"), ("b", "c"), ("a", "d"), ("c", "Y"), ("d", "Y")], target="Y")
    link, size = NONLINEAR[kind]
    links = {"b": identity, "c": logistic(1.5), "d": exponential, "Y": logistic(1.0)} if link is None else link
    pull = {"a": 0.4, "b": 0.5, "c": 0.3, "d": 0.2, "Y": 0.3}
    edges = {("a", "c"): 1.2, ("b", "c"): 0.4, ("a", "d"): 0.8, ("c", "Y"): 1.5, ("d", "Y"): 0.7}
    return BinaryGLM(graph, pull | {edge: size * weight for edge, weight in edges.items()}, links=links)


@pytest.mark.parametrize("kind", NONLINEAR)
@pytest.mark.parametrize("budget", [1, 2])
def test_bglm_ofu_on_other_links(kind, budget):
    model = nonlinear_model(kind)
    links = {name: model.link(name) for name in model.graph.nodes}
    initial, settings = 120, {"kappa": 0.2, "radius_scale": 0.05}  # so long that no node's data are separable
    learner = BGLMOFU(initial=initial, **settings).start(model.graph, budget, horizon=1000, links=links)
    reference = tr.BGLMOFUTranscription(
        model.graph,
        {name: TANGENT if link == exponential else link for name, link in links.items()},
        budget,
        1000,
        initial_rounds=initial,
        **settings,
    )
    chosen = same_choices(model, learner, reference, initial + 40, seed=3, every=10)
    assert len(set(chosen)) > 1


# -- the baselines --------------------------------------------------------------------------------------------

BASELINES = {
    "UCB": (UCB(), tr.UCBTranscription, {}),
    "UCB (0.1)": (UCB(0.1), tr.UCBTranscription, {"scale": 0.1}),
    "KL-UCB": (KLUCB(), tr.KLUCBTranscription, {}),
    "KL-UCB (3)": (KLUCB(3), tr.KLUCBTranscription, {"c": 3.0}),
    "eps-greedy (0.1)": (EpsilonGreedy(0.1), tr.EpsilonGreedyTranscription, {"epsilon": 0.1}),
    "eps-greedy (0)": (EpsilonGreedy(0.0), tr.EpsilonGreedyTranscription, {"epsilon": 0.0}),
    "Random": (Random(), tr.RandomTranscription, {}),
}


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("name", GRAPHS)
def test_baselines_on_the_papers_graphs(baseline, name):
    policy, transcription, settings = BASELINES[baseline]
    model, budget = paper.MODELS[name], paper.BUDGETS[name]
    learner = policy.start(model.graph, budget, horizon=1000, effects="nonnegative")  # the paper's arms: exactly K
    same_choices(model, learner, transcription(model.graph, budget, **settings), 80 * THOROUGH)


@pytest.mark.parametrize("baseline", BASELINES)
@relaxed(max_examples=15)
@given(blms(most=5), seeds, st.data())
def test_baselines_on_random_graphs(baseline, model, seed, data):
    policy, transcription, settings = BASELINES[baseline]
    budget = data.draw(st.integers(0, len(model.graph.controllable)))
    learner = policy.start(model.graph, budget, effects="nonnegative")
    same_choices(model, learner, transcription(model.graph, budget, **settings), 60, seed)
