"""What policies refuse, and when their initialisation ends."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dobandit as dob
from dobandit import BGLMOFU, BLMLR, KLUCB, UCB, CausalGraph, EpsilonGreedy, Fixed, Oracle, paper
from dobandit.errors import GraphError, InterventionError, ModelError, ObservationError, PolicyError
from helpers.some_policies import LOGISTIC, assert_same_bits, every_policy, parallel
from helpers.worlds import ARCTAN

# -- refusals -------------------------------------------------------------------------------------------------


@every_policy
@pytest.mark.parametrize(
    ("action", "observation", "error", "words"),
    [
        ({}, {"X99": 1}, ObservationError, "'X99' is none"),
        ({"X99": 1}, {}, InterventionError, "'X99' is none"),
        ({"X2": 1}, {"X2": 0}, ObservationError, "was set to 1"),
        ({}, {"Y": 2}, ObservationError, "0 or 1"),
        ({}, {"Y": 0.5}, ObservationError, "0 or 1"),
        ({}, {"Y": "1"}, ObservationError, "0 or 1"),
        ({}, {"Y": float("inf")}, ObservationError, "0 or 1"),
        ({"X2": 0.5}, {}, InterventionError, "0 or 1"),
        ("X2", {}, InterventionError, "list of names"),
    ],
)
def test_a_wrong_round_is_refused_and_not_taken_in(case, action, observation, error, words):
    learner = case.start(paper.G4.graph, 2)
    with pytest.raises(error, match=words):
        learner.update(action, observation)
    assert learner.rounds == 0
    assert_same_bits(learner, case.start(paper.G4.graph, 2))


@every_policy
@pytest.mark.parametrize("missing", [None, float("nan"), np.float64("nan"), np.float32("nan")])
def test_none_and_nan_are_values_not_seen(case, missing):
    with_it, without = (case.start(paper.G4.graph, 2) for _ in range(2))
    with_it.update({}, {"X2": 1, "X3": missing, "Y": 1})
    without.update({}, {"X2": 1, "Y": 1})
    assert_same_bits(with_it, without)


@every_policy
@pytest.mark.parametrize("budget", [-1, 5, 1.5, True, "2", None])
def test_a_budget_out_of_range_is_refused(case, budget):
    rule = "needs a budget or a total cost" if budget is None else "from 0 to 4"
    with pytest.raises(InterventionError, match=rule):
        case.make(paper.G4.graph, 1).start(paper.G4.graph, budget, links=case.links)


@every_policy
@pytest.mark.parametrize(
    ("options", "words"), [({"horizon": 0}, "horizon"), ({"horizon": 1.5}, "horizon"), ({"seed": -1}, "seed")]
)
def test_a_wrong_horizon_or_seed_is_refused(case, options, words):
    with pytest.raises(PolicyError, match=words):
        case.start(paper.G4.graph, 2, **options)


INADMISSIBLE = CausalGraph([("U", "a"), ("U", "b"), ("a", "b"), ("b", "Y")], target="Y", latent=["U"])


@every_policy
def test_an_inadmissible_graph_is_refused_with_its_witness(case):
    if case.links is not None:
        return
    policy = Oracle(paper.G4) if case.name == "Oracle" else case.make(INADMISSIBLE, 1)
    if policy.any_graph:
        assert policy.name == "oracle" or policy.start(INADMISSIBLE, 1).propose().keys() <= {"a", "b"}
        return
    with pytest.raises(GraphError, match=r"(?s)'U'.*'a'.*'b'.*always_set=\['a'\].*policy='ucb'"):
        policy.start(INADMISSIBLE, 1)


def test_hidden_variables_that_are_shared_are_refused_with_another_link():
    policy = BGLMOFU(initial=3)
    graph = CausalGraph([("U", "a"), ("U", "c"), ("a", "Y"), ("c", "Y")], target="Y", latent=["U"])
    with pytest.raises(ModelError, match="linear models only"):
        BGLMOFU(initial=3).start(graph, 1, links=LOGISTIC)
    with pytest.raises(ModelError, match="'Y' has the"):
        policy.start(graph, 1, links={"Y": "exponential"})
    learner = dob.CausalUCB().start(graph, 1, links=LOGISTIC)
    learner.update({"a": 1}, {"c": 0, "Y": 1})
    assert learner.predict({"a": 1}).value > 0.5


@pytest.mark.parametrize("policy", [BGLMOFU(initial=3), UCB()])
def test_continuous_variables_with_another_link_are_refused(policy):
    with pytest.raises(ModelError, match="continuous"):
        policy.start(paper.G4.graph, 1, links=LOGISTIC, continuous=True)


def test_blm_lr_is_for_linear_models():
    with pytest.raises(PolicyError, match="BGLMOFU"):
        BLMLR().start(paper.G4.graph, 2, links={"Y": LOGISTIC})


def test_an_initialisation_that_cannot_end_is_refused():
    with pytest.raises(PolicyError, match=r"lambda_min >= .* horizon is 500.*lambda_scale"):
        BGLMOFU().start(paper.G4.graph, 2, horizon=500, links=LOGISTIC)
    with pytest.warns(dob.errors.DobanditWarning, match="nothing will be set"):
        BGLMOFU().start(paper.G4.graph, 2, links=LOGISTIC)
    learner = BGLMOFU(lambda_scale=1e-9).start(paper.G4.graph, 2, horizon=500, links=LOGISTIC)
    assert learner.propose() == {}


def test_a_flat_link_needs_a_kappa():
    with pytest.raises(PolicyError, match="kappa"):
        BGLMOFU(initial=3).start(paper.G4.graph, 2, links=ARCTAN)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BLMLR(radius_scale=-1), "radius_scale"),
        (lambda: BLMLR(radius_scale=float("nan")), "radius_scale"),
        (lambda: BLMLR(radius_scale="1"), "radius_scale"),
        (lambda: BLMLR(region="box"), "Did you mean 'boxed'"),
        (lambda: BLMLR(radius="papr"), "Did you mean 'paper'"),
        (lambda: BGLMOFU(initial=-1), "initial"),
        (lambda: BGLMOFU(initial=True), "initial"),
        (lambda: BGLMOFU(initial="lambda"), "lambda-min"),
        (lambda: BGLMOFU(initial="formula"), "zeta"),
        (lambda: BGLMOFU(kappa=0.0), "kappa"),
        (lambda: UCB(scale=-0.1), "scale"),
        (lambda: KLUCB(c=-1), "c must be"),
        (lambda: EpsilonGreedy(1.5), "epsilon"),
        (lambda: EpsilonGreedy(True), "epsilon"),
        (lambda: Fixed("X2"), "list of names"),
    ],
)
def test_wrong_settings_are_refused(make, words):
    with pytest.raises(PolicyError, match=words):
        make()


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, float("nan"), True])
@pytest.mark.parametrize("policy", [BLMLR, BGLMOFU])
def test_a_delta_that_is_no_probability_is_refused(policy, delta):
    with pytest.raises(ModelError, match="delta"):
        policy(delta=delta)


@pytest.mark.parametrize(
    ("names", "words"), [(["Y"], "'Y' is none"), (["X2", "X2"], "different"), (["X2", "X3", "X4"], "at most 2")]
)
def test_a_fixed_set_that_cannot_be_played_is_refused(names, words):
    with pytest.raises(InterventionError, match=words):
        Fixed(names).start(paper.G4.graph, 2)


def test_baselines_keep_no_model():
    learner = UCB().start(paper.G4.graph, 2)
    with pytest.raises(PolicyError, match="keeps no model"):
        learner.estimate("Y")
    assert not learner.keeps_model
    assert learner.predict({"X2": 1}) == (0.5, 0.0, 1.0)  # never tried: nothing is known


# -- when the initialisation ends -----------------------------------------------------------------------------


def test_the_formula_needs_as_many_rounds_as_it_says():
    learner = BGLMOFU(initial="formula", zeta=0.5).start(paper.G4.graph, 2, horizon=100)
    n, rounds = 6, learner.engine.optimism["initial"][0]
    assert rounds == (8 * n**2 - 16 * n + 2) / 0.5
    assert learner.propose() == {}


def test_lambda_min_ends_it_when_every_node_has_seen_enough():
    learner = BGLMOFU().start(parallel(2), 1, horizon=100)
    for values in itertools.product((0, 1), repeat=2):
        assert learner.propose() == {}
        learner.update({}, dict(zip(("P0", "P1"), values, strict=True)) | {"Y": 1})
    rows = np.array([[1, *values] for values in itertools.product((0, 1), repeat=2)], dtype=float)
    done = np.linalg.eigvalsh(rows.T @ rows)[0] >= 1.0
    assert bool(learner.propose()) == done
    for values in [(0, 0), (0, 1), (1, 0)] * 3:
        learner.update({}, dict(zip(("P0", "P1"), values, strict=True)) | {"Y": 1})
    assert len(learner.propose()) == 1
