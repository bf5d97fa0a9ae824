"""Learning works: confidence regions cover the truth as often as promised, and regret flattens. Seeds are fixed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from dobandit import BGLMOFU, BLMLR, BinaryGLM, CausalGraph, CausalUCB, LinearModel, expect, paper, project, simulate
from dobandit.estimation.confidence import radius_bglm_ofu, radius_lemma11
from dobandit.model.links import exponential, logistic
from dobandit.simulation.simulate import run_study
from dobandit.simulation.study import study_of
from helpers.simulations import CompiledRounds
from helpers.worlds import THOROUGH

RUNS = 300
LUCK = 1e-4  # a test of a right program fails with this chance, if its seeds were drawn again


def weights_of(model, name):
    """theta* of a node: its bias, where it has one, and the weights of its parents."""
    bias, weights = model.parent_weights(name)
    return np.array([bias] * model.graph.has_bias(name) + [weights[parent] for parent in model.graph.parents(name)])


def distance(learner, v, weights):
    """||theta* - theta_hat|| of node v in the norm of M."""
    node = learner.engine.beliefs().node(v)
    off = weights - node.theta
    return math.sqrt(max(off @ node.gram @ off, 0.0))


def at_most(failures, chance):
    """Whether this many failures in RUNS are compatible with the chance promised."""
    return binom.sf(failures - 1, RUNS, chance) > LUCK


# -- confidence -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [paper.G4, paper.G5], ids=["G4", "G5"])
def test_the_regions_of_lemma_11_hold_in_all_rounds_at_once(model):
    delta, failures = 0.1, 0
    target, weights = model.graph.index("Y"), weights_of(model, "Y")
    radii = [radius_lemma11(t, len(weights), delta) for t in range(1, 41)]
    fresh = BLMLR(radius_scale=1.0).start(model.graph, 2, horizon=100)
    for run in range(RUNS):
        learner = fresh.copy()
        rounds, away = CompiledRounds(model, learner, run), []
        for _ in radii:
            rounds.play(1)
            away.append(distance(learner, target, weights))
        failures += any(r > radius for r, radius in zip(away, radii, strict=True))
    assert at_most(failures, delta)


@pytest.mark.parametrize("model", [paper.G4, paper.G5], ids=["G4", "G5"])
def test_intervals_of_blm_lr_hold_the_true_means_together(model):
    delta, failures = 0.1, 0
    questions = [{}, {"X2": 1}, {"X3": 1, "X4": 0}, dict.fromkeys(model.graph.controllable, 1)]
    answers = [expect(model, do).value for do in questions]
    fresh = BLMLR(delta=delta, radius="lemma").start(model.graph, 2)
    for run in range(RUNS):
        learner = fresh.copy()
        CompiledRounds(model, learner, run).play(60)
        intervals = [learner.interval(do) for do in questions]
        failures += not all(low <= truth <= high for (low, high), truth in zip(intervals, answers, strict=True))
    assert at_most(failures, delta)


@pytest.mark.parametrize("model", [paper.G4, paper.G5], ids=["G4", "G5"])
def test_the_radius_of_lemma_1_holds_for_a_fixed_vector(model):
    """|v.(theta - theta*)| <= rho ||v|| in the norm of M^-1 fails with chance at most 3 delta."""
    delta, failures = 0.05, 0
    rho = radius_bglm_ofu(1.0, delta)
    target = model.graph.index("Y")
    fresh = BGLMOFU(radius_scale=0.1).start(model.graph, 2, horizon=400)
    for run in range(RUNS):
        learner = fresh.copy()
        CompiledRounds(model, learner, run).play(150)
        node = learner.engine.beliefs().node(target)
        v = np.ones(len(node.theta))
        off = node.theta - weights_of(model, "Y")
        failures += abs(v @ off) > rho * math.sqrt(v @ node.inverse @ v)
    assert at_most(failures, 3 * delta)


NONLINEAR = BinaryGLM(
    CausalGraph([("a", "c"), ("b", "c"), ("c", "Y"), ("b", "Y")], target="Y"),
    {"a": 0.4, "b": 0.6, "c": 0.2, "Y": 0.1, ("a", "c"): 0.9, ("b", "c"): 0.5, ("c", "Y"): 0.8, ("b", "Y"): 0.3},
    links=logistic(1.0),
)


def test_intervals_with_other_links_hold_the_true_mean():
    failures, runs, delta = 0, 100, 0.1
    do = {"a": 1}
    truth = expect(NONLINEAR, do).value
    fresh = BGLMOFU(initial=50, delta=delta).start(NONLINEAR.graph, 1, links=NONLINEAR.links[0])
    for run in range(runs):
        learner = fresh.copy()
        CompiledRounds(NONLINEAR, learner, run).play(150)
        low, high = learner.interval(do)
        failures += not low <= truth <= high
    assert binom.sf(failures - 1, runs, delta) > LUCK


@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_intervals_shrink_and_the_estimate_finds_the_truth(scale):
    learner = BLMLR(radius_scale=scale, radius="lemma").start(paper.G5.graph, 2, horizon=3000)
    do = {"X2": 1, "X4": 1}
    rounds, widths = CompiledRounds(paper.G5, learner, 0), []
    for _ in range(3):
        rounds.play(1000)
        widths.append(learner.interval(do).high - learner.interval(do).low)
    assert widths == sorted(widths, reverse=True)
    assert learner.expected(do) == pytest.approx(expect(paper.G5, do).value, abs=0.08)
    assert learner.best().do == do


# -- regret ---------------------------------------------------------------------------------------------------

PARALLEL = {**dict.fromkeys(["a", "b", "c", "d"], 0.3), "Y": 0.1}
WEIGHTS = {
    "parallel": PARALLEL | {("a", "Y"): 0.9, ("b", "Y"): 0.4, ("c", "Y"): 0.2, ("d", "Y"): 0.1},
    "layers": {**PARALLEL, ("a", "c"): 0.9, ("a", "d"): 0.4, ("b", "d"): 0.7, ("c", "Y"): 0.9, ("d", "Y"): 0.2},
    "chain": {**PARALLEL, ("a", "b"): 0.8, ("b", "c"): 0.8, ("c", "Y"): 0.9, ("d", "Y"): 0.3},
}


def flattens(model, policy, budget, rounds=3000, runs=40, initial=0):
    """Whether the second half of the learning rounds costs less than half of the first, on average. Where 20 runs are
    asked for, the average of as many is below that by more than three standard errors."""
    result = run_study(study_of(model, [policy], rounds, runs, budget, record="every"), workers=1)
    regret = result.all_regret[0].mean(axis=0)
    middle = (initial + rounds) // 2
    first, second = regret[middle - 1] - (regret[initial - 1] if initial else 0.0), regret[-1] - regret[middle - 1]
    assert first > 0.0
    return second < 0.5 * first


@pytest.mark.parametrize("shape", WEIGHTS)
@pytest.mark.parametrize("link", [logistic(1.5), exponential], ids=["logistic", "exponential"])
def test_bglm_ofu_flattens_on_other_links(shape, link):
    edges = [key for key in WEIGHTS[shape] if isinstance(key, tuple)]
    model = BinaryGLM(CausalGraph(edges, target="Y"), WEIGHTS[shape], links=link)
    policy = BGLMOFU(radius_scale=0.15, initial=40, kappa=0.2)
    assert flattens(model, policy, 1, initial=40)


CONFOUNDED = {"U": 0.5, "W": 0.3, ("U", "a"): 0.3, ("U", "b"): 0.4, ("W", "c"): 0.6, "a": 0.1, "b": 0.1, "c": 0.1}
EFFECTS = {"d": 0.2, "e": 0.1, "f": 0.1, ("a", "e"): 0.5, ("b", "f"): 0.4, ("c", "f"): 0.3}
REWARDS = {("e", "Y"): 0.5, ("f", "Y"): 0.2, ("d", "Y"): 0.25}
HIDDEN = BinaryGLM.blm(CONFOUNDED | EFFECTS | REWARDS, target="Y", latent=["U", "W"])


@pytest.mark.parametrize(
    "policy", [BGLMOFU(radius_scale=0.1, initial=30), BLMLR(radius_scale=0.1)], ids=["BLM-OFU", "BLM-LR"]
)
def test_regret_flattens_on_data_with_hidden_variables(policy):
    """The data come from G, the learner works on G'."""
    assert flattens(HIDDEN, policy, 2, initial=30)


def test_weights_learned_with_hidden_variables_are_those_of_the_projection():
    rng = np.random.default_rng(0)
    learner = BLMLR(radius_scale=0.1).start(HIDDEN.graph, 2)
    sets = list(itertools.combinations(learner.graph.controllable, 2))
    for S in sets:
        columns = HIDDEN.sample(S, 400, rng)
        learner.update_many((S, {name: column[k] for name, column in columns.items()}) for k in range(400))
    seen = project(HIDDEN)
    for name in seen.graph.nodes:
        estimate, (bias, weights) = learner.estimate(name), seen.parent_weights(name)
        for parent, weight in weights.items():
            assert estimate.parents[parent].value == pytest.approx(weight, abs=0.05)
        assert estimate.bias is None or estimate.bias.value == pytest.approx(bias, abs=0.05)


CONTINUOUS = LinearModel.of_weights(
    {**dict.fromkeys(["a", "b", "c", "d"], 0.3), ("a", "c"): 0.5, ("b", "d"): 0.3, ("c", "Y"): 0.6, ("d", "Y"): 0.3},
    target="Y",
)


@pytest.mark.parametrize("region", ["closed-form", "boxed"])
def test_blm_lr_flattens_on_a_continuous_model(region):
    assert flattens(CONTINUOUS, BLMLR(radius_scale=0.1, region=region), 1, rounds=2000, runs=20 * THOROUGH)


@pytest.mark.parametrize("name", ["G1", "G5"])
@pytest.mark.parametrize(
    "policy",
    [
        BLMLR(radius_scale=0.1),
        BLMLR(radius_scale=0.1, region="boxed"),
        BGLMOFU(radius_scale=0.1, initial=40),
        BGLMOFU(radius_scale=0.1),
    ],
    ids=["BLM-LR", "BLM-LR boxed", "BLM-OFU", "BLM-OFU lambda-min"],
)
def test_regret_flattens_on_the_papers_graphs(policy, name):
    assert flattens(paper.MODELS[name], policy, paper.BUDGETS[name], 2000, runs=20 * THOROUGH, initial=40)


def test_with_a_guarantee_at_most_a_third_of_the_papers_regret_is_lost():
    """In 30 runs BLM-LR with its theorem's radius lost 92 here with a standard deviation of 5, CausalUCB 11 with 6 at
    most: the means of 3 runs keep the ratio of 3 by more than five standard errors."""
    policies = {"paper": BLMLR(), "ours": CausalUCB(guarantee=True)}
    result = simulate(paper.G4, policies, paper.ROUNDS["G4"], 3, paper.BUDGETS["G4"], seed=12)
    regret = {label: result.regret(label)[:, -1].mean() for label in policies}
    assert 3.0 * regret["ours"] <= regret["paper"]
