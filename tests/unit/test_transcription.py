"""The transcription's oracle and estimator, which the compiled ones are compared with, against definitions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import transcription as tr
from dobandit.model.links import exponential, identity, logistic, probit, rational
from helpers.transcribed import links_of, weights_of
from helpers.worlds import ARCTAN, bglms, blms, brute_force_means, relaxed

seeds = st.integers(0, 2**32 - 1)


def random_region(seed, rows=20):
    """v, theta_hat, M of a random node."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    V = (rng.random((int(rng.integers(0, rows)), d)) < 0.5).astype(float)
    v = rng.random(d) * (rng.random(d) < 0.8)
    return v, rng.uniform(-0.3, 1.2, d), np.eye(d) + V.T @ V


def slsqp_maximum(v, theta_hat, M, rho, bounds=None):
    """A general-purpose solver, from several starts."""
    rng = np.random.default_rng(0)
    ellipsoid = {
        "type": "ineq",
        "fun": lambda theta: (rho**2 - (theta - theta_hat) @ M @ (theta - theta_hat)) / rho**2,
        "jac": lambda theta: -2.0 * M @ (theta - theta_hat) / rho**2,
    }
    best = -math.inf
    for start in (theta_hat, *rng.random((4, len(v)))):
        start = start if bounds is None else np.clip(start, 0.0, 1.0)
        found = minimize(
            lambda theta: -v @ theta,
            start,
            jac=lambda theta: -v,
            method="SLSQP",
            bounds=bounds,
            constraints=[ellipsoid],
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        if ellipsoid["fun"](found.x) > -1e-9:
            best = max(best, v @ found.x)
    return best


# -- Algorithm 4 ----------------------------------------------------------------------------------------------


@relaxed(max_examples=25)
@given(seeds, st.sampled_from([0.05, 0.5, 3.0]))
def test_closed_form_is_the_maximum_over_the_bare_ellipsoid(seed, rho):
    v, theta_hat, M = random_region(seed)
    closed = rho * tr.width(v, np.linalg.inv(M)) + v @ theta_hat
    assert slsqp_maximum(v, theta_hat, M, rho) == pytest.approx(closed, abs=1e-6)


@relaxed(max_examples=60)
@given(seeds, st.sampled_from([0.01, 0.3, 1.0, 3.0, 30.0]))
def test_boxed_maximum_proves_itself_by_its_duality_gap(seed, rho):
    v, theta_hat, M = random_region(seed)
    found = tr.boxed_maximum(v, theta_hat, M, rho)
    nearest = tr.box_minimum(M, M @ theta_hat)
    reach = max(rho, tr.width(nearest - theta_hat, M))
    assert np.all((found.theta >= 0.0) & (found.theta <= 1.0))
    assert tr.width(found.theta - theta_hat, M) <= reach * (1 + 1e-12)
    assert abs(found.gap) <= 1e-11
    assert found.value == pytest.approx(v @ found.theta, abs=1e-11)


@relaxed(max_examples=25)
@given(seeds, st.sampled_from([1.0, 2.0]))
def test_boxed_maximum_equals_a_general_purpose_solver(seed, rho):
    v, theta_hat, M = random_region(seed, rows=8)
    if tr.width(tr.box_minimum(M, M @ theta_hat) - theta_hat, M) < 0.9 * rho:
        slsqp = slsqp_maximum(v, theta_hat, M, rho, bounds=[(0.0, 1.0)] * len(v))
        assert tr.boxed_maximum(v, theta_hat, M, rho).value == pytest.approx(slsqp, abs=1e-6)


@relaxed(max_examples=50)
@given(seeds)
def test_box_minimum_is_the_best_of_all_active_sets(seed):
    v, theta_hat, M = random_region(seed)
    c = M @ theta_hat + v
    values = []
    for bounds in itertools.product((0.0, 1.0, math.nan), repeat=len(v)):
        theta = np.array(bounds)
        free = np.isnan(theta)
        theta[free] = np.linalg.solve(M[np.ix_(free, free)], c[free] - M[np.ix_(free, ~free)] @ theta[~free])
        if np.all((theta >= 0) & (theta <= 1)):
            values.append(theta @ M @ theta / 2 - c @ theta)
    found = tr.box_minimum(M, c)
    assert found @ M @ found / 2 - c @ found == pytest.approx(min(values), abs=1e-10)


def test_an_empty_region_is_enlarged_to_the_nearest_point():
    found = tr.boxed_maximum(np.array([1.0, 1.0]), np.array([2.0, 0.5]), np.eye(2), rho=0.1)
    np.testing.assert_allclose(found.theta, [1.0, 0.5], atol=1e-15)
    assert found.value == pytest.approx(1.5)


def test_boxed_maximum_by_hand():
    # A unit disc around the origin: within the box the best direction is (1, 1) / sqrt 2.
    assert tr.boxed_maximum(np.ones(2), np.zeros(2), np.eye(2), 1.0).value == pytest.approx(math.sqrt(2), abs=1e-14)
    assert tr.boxed_maximum(np.ones(2), np.zeros(2), np.eye(2), 2.0).value == 2.0
    assert tr.boxed_maximum(np.zeros(0), np.zeros(0), np.eye(0), 1.0).value == 0.0


@relaxed(max_examples=25)
@given(seeds)
def test_epsilon_net_approaches_the_boxed_maximum_from_below(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    v, theta_hat, rho, eps = rng.random(d), rng.random(d), rng.uniform(0.3, 2.0), 0.05
    M = np.eye(d) + np.diag(rng.random(d))
    exact = tr.boxed_maximum(v, theta_hat, M, rho).value
    net = tr.epsilon_net_value(v, theta_hat, M, rho, eps)
    # Shrinking the best point towards theta_hat makes room for rounding it to the grid.
    slack = 2.0 * eps * math.sqrt(d)
    assert exact - v.sum() * (slack + math.sqrt(2) * slack / rho) <= net <= exact + 1e-12


def test_epsilon_net_without_a_point_inside():
    assert tr.epsilon_net_value(np.ones(1), np.array([0.25]), np.eye(1), 0.01, 0.5) == -math.inf


@relaxed(max_examples=30)
@given(blms())
def test_without_radius_the_oracles_are_exact(model):
    theta = weights_of(model)
    M = {name: np.eye(len(weights)) for name, weights in theta.items()}
    for S in tr.candidate_sets(model.graph, 2):
        truth = brute_force_means(model, dict.fromkeys(S, 1))[model.graph.target]
        assert tr.closed_form_value(model.graph, theta, M, 0.0, S) == pytest.approx(truth, abs=1e-12)
        assert tr.boxed_value(model.graph, theta, M, 0.0, S) == pytest.approx(truth, abs=1e-12)
        assert tr.expected_reward(model, S) == pytest.approx(truth, abs=1e-12)


@relaxed(max_examples=30)
@given(bglms(most=5))
def test_without_radius_the_per_pattern_oracle_is_exact(model):
    theta = weights_of(model)
    M = {name: np.eye(len(weights)) for name, weights in theta.items()}
    for S in tr.candidate_sets(model.graph, 2):
        truth = brute_force_means(model, dict.fromkeys(S, 1))[model.graph.target]
        assert tr.per_pattern_value(model.graph, links_of(model), theta, M, 0.0, S) == pytest.approx(truth, abs=1e-9)
        assert tr.expected_reward(model, S) == pytest.approx(truth, abs=1e-9)


def test_per_pattern_probability_is_a_probability():
    v, M = np.ones(1), np.eye(1)
    assert tr.pattern_probability(identity, v, np.array([0.8]), M, 0.5) == 1.0
    assert tr.pattern_probability(exponential, v, np.array([-2.0]), M, 0.5) == 0.0
    assert tr.pattern_probability(rational(1.0), v, np.array([-2.0]), M, 0.5) == 0.0
    assert tr.pattern_probability(logistic(0.0), v, np.array([-0.5]), M, 0.5) == 0.5


# -- Algorithm 2 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 2, 5, 60])
def test_least_squares(rows):
    rng = np.random.default_rng(rows)
    V = (rng.random((rows, 5)) < 0.5).astype(float)
    V[:, 4] = V[:, 3]  # always singular
    x = (rng.random(rows) < 0.4).astype(float)
    np.testing.assert_allclose(tr.least_squares(V, x), np.linalg.lstsq(V, x, rcond=None)[0], atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_logistic_score_root_is_the_maximum_likelihood_estimate(seed):
    import statsmodels.api as sm  # takes a second, which only those who need it wait for

    rng = np.random.default_rng(seed)
    V = np.column_stack([np.ones(300), rng.random((300, 3)) < 0.5]).astype(float)
    x = (rng.random(300) < logistic(1.0)(V @ [0.2, 0.9, 0.3, 1.4])).astype(float)
    fit = sm.GLM(x, V, family=sm.families.Binomial(), offset=np.full(300, -1.0)).fit(tol=1e-14)
    found = tr.score_root(V, x, logistic(1.0))
    np.testing.assert_allclose(found, fit.params, atol=1e-10)
    np.testing.assert_allclose(tr.score_root(V, x, logistic()), sm.Logit(x, V).fit(disp=0, tol=1e-12).params, atol=1e-8)


@pytest.mark.parametrize(
    "link", [logistic(-1.0), probit(0.5), exponential, rational(2.0), ARCTAN], ids=lambda f: f.name
)
@pytest.mark.parametrize("seed", range(3))
def test_score_root_solves_the_score_equation(link, seed):
    rng = np.random.default_rng(seed)
    V = np.column_stack([np.ones(200), rng.random((200, 3)) < 0.5]).astype(float)
    V[:, 3] = V[:, 2]  # singular: a direction without data
    x = (rng.random(200) < 0.55).astype(float)
    found = tr.score_root(V, x, link)
    assert np.linalg.norm(tr.score(found, V, x, link)) <= 1e-11
    assert found[2] == pytest.approx(found[3], abs=1e-9)


@pytest.mark.parametrize("link", [logistic(1.0), probit(0.5), exponential, rational(2.0)], ids=lambda f: f.name)
@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_score_root_of_one_sided_data_is_finite(link, outcome):
    V = np.column_stack([np.ones(20), np.arange(20) % 2]).astype(float)
    x = np.full(20, outcome)
    found = tr.score_root(V, x, link)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(link(V @ found), outcome, atol=1e-2)  # the rational link nears 1 slowly
    # 1 - exp(-x) and x / (x + 1/a) are 0 at 0, so X = 0 throughout has a root there
    assert tr.separated(V, x, link) == (outcome == 1.0 or link.name in ("logistic", "probit"))


@relaxed(max_examples=75)
@given(seeds, st.sampled_from([logistic(2.0), probit(1.0), exponential, rational(1.0), rational(20.0)]))
def test_score_root_from_few_rows(seed, link):
    rng = np.random.default_rng(seed)
    d, rows = int(rng.integers(1, 6)), int(rng.integers(1, 60))
    V = (rng.random((rows, d)) < rng.choice([0.1, 0.5, 0.9])).astype(float)
    x = (rng.random(rows) < rng.choice([0.05, 0.5, 0.95])).astype(float)
    found = tr.score_root(V, x, link)
    assert np.all(np.isfinite(found))
    if not tr.separated(V, x, link):
        assert np.linalg.norm(tr.score(found, V, x, link)) <= 1e-10


def test_score_root_without_data():
    assert tr.score_root(np.zeros((0, 2)), np.zeros(0), logistic()).tolist() == [0.0, 0.0]
    assert tr.score_root(np.zeros((3, 0)), np.ones(3), logistic()).tolist() == []
