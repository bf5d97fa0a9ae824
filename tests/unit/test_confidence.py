"""Radii, constants and bounds: numbers worked by hand, and the same from compiled code."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import hadamard
from scipy.special import xlog1py, xlogy

from dobandit import paper
from dobandit.errors import ModelError
from dobandit.estimation import confidence as c
from dobandit.estimation.assumptions import diagnose_assumptions
from dobandit.kernels import kernel

E = math.e


def test_deltas_by_hand():
    assert c.delta_bglm_ofu(8, 10_000) == pytest.approx(1 / 2400)  # 3 * 8 * 100
    assert c.delta_bglm_ofu(2, 4) == pytest.approx(1 / 12)
    assert c.delta_blm_lr(8, 10_000) == pytest.approx(1 / 800)
    assert c.delta_blm_lr(5, 1) == pytest.approx(0.2)


def test_radius_of_bglm_ofu_by_hand():
    assert c.radius_bglm_ofu(1.0, E**-4) == pytest.approx(6.0)  # 3 sqrt(4)
    assert c.radius_bglm_ofu(0.25, E**-9) == pytest.approx(36.0)  # 12 sqrt(9)
    assert c.radius_bglm_ofu(0.25, E**-9, 0.1) == pytest.approx(3.6)


def test_radii_of_linear_regression_by_hand():
    for radius in (c.radius_blm_lr, c.radius_lemma11):
        assert radius(0, 9, E**-8) == pytest.approx(7.0)  # sqrt(0 + 16) + 3
        assert radius(7, 1, 1 / 8) == pytest.approx(1 + math.sqrt(3 * math.log(8)))  # log(1 + 7) + 2 log 8
        assert radius(2, 4, 1 / 9) == pytest.approx(2 + math.sqrt(6 * math.log(9)))  # 4 log(1 + 8) + 2 log 9
        assert radius(0, 9, E**-8, 0.5) == pytest.approx(3.5)


def test_initialisation_by_hand():
    assert c.initial_lambda(2, 0.5, 0.5, E**-1) == pytest.approx(20_480)  # 512 * 2 * 1/4 * 16 * (4 + 1)
    assert c.initial_lambda(3, 0.0, 1.0, 0.01) == 0.0
    assert c.constant_R(1, 0.1, 1.0, E**-1) == 11  # 512 * 0.01 * 2 = 10.24
    assert c.constant_R(4, 0.0, 1.0, 0.01) == c.constant_R(4, 1e-9, 1.0, 0.01) == 1
    # n = 4 gives 8 * 16 - 64 + 2 = 66
    assert c.initial_rounds(4, 0.1, E**-2, R=1) == pytest.approx(660)
    assert c.initial_rounds(4, 0.01, E**-2, R=1) == pytest.approx(20_000)
    assert c.initial_rounds(4, 0.01, E**-2, R=1, c=3) == pytest.approx(60_000)


def test_anytime_deltas_add_up_to_delta():
    assert c.anytime_delta(1) == pytest.approx(0.3 / math.pi**2)
    rounds = 200_000
    total = math.fsum(c.anytime_delta(t, 0.2) for t in range(1, rounds + 1))
    assert 0.2 - 0.2 / rounds < total < 0.2


RADII = [
    (c.delta_bglm_ofu, [*product([2, 8, 50], [1, 2_000, 10**7])]),
    (c.delta_blm_lr, [*product([2, 8, 50], [1, 2_000, 10**7])]),
    (c.anytime_delta, [*product([1, 2, 10**6], [0.05, 0.9])]),
    (c.radius_bglm_ofu, [*product([0.01, 1.0], [1e-9, 0.05, 0.99], [0.1, 1.0])]),
    (c.radius_blm_lr, [*product([0, 1, 10**6], [2, 8, 50], [1e-9, 0.05], [0.1, 1.0])]),
    (c.radius_lemma11, [*product([0, 1, 10**6], [1, 8, 50], [1e-9, 0.05], [0.1, 1.0])]),
    (c.initial_lambda, [*product([1, 7], [0.0, 0.1], [0.2, 1.0], [1e-9, 0.05])]),
    (c.initial_rounds, [*product([3, 9], [0.01, 0.5], [1e-9, 0.05], [1.0, 1e6], [1.0, 2.0])]),
]


@pytest.mark.parametrize(("formula", "grid"), RADII, ids=lambda value: getattr(value, "__name__", ""))
def test_compiled_formulas_give_the_same_numbers(formula, grid):
    compiled = kernel(formula)
    for arguments in grid:
        assert compiled(*arguments) == pytest.approx(formula(*arguments), rel=1e-14)


def test_radii_grow_with_rounds_nodes_and_confidence():
    for radius in (c.radius_blm_lr, c.radius_lemma11):
        assert np.all(np.diff([radius(t, 5, 0.1) for t in (0, 1, 10, 1_000)]) > 0)
        assert np.all(np.diff([radius(10, n, 0.1) for n in (1, 2, 5, 30)]) > 0)
        assert np.all(np.diff([radius(10, 5, delta) for delta in (0.5, 0.1, 1e-6)]) > 0)
    assert np.all(np.diff([c.radius_bglm_ofu(1.0, delta) for delta in (0.5, 0.1, 1e-6)]) > 0)
    assert np.all(np.diff([c.radius_bglm_ofu(kappa, 0.1) for kappa in (1.0, 0.3, 0.01)]) > 0)
    assert c.radius_lemma11(100, 4, 0.1) < c.radius_blm_lr(100, 8, 0.1)


def test_regret_bounds_by_hand():
    # BLM-LR: rho = sqrt(3 log 4 + 2 log 2) + sqrt 3 with t = 1, n = 3, D = 2; then 2 rho 3 sqrt(6 / log 4 log 2)
    rho = math.sqrt(8 * math.log(2)) + math.sqrt(3)
    assert c.regret_bound_blm_lr(1, 3, 2, 0.5) == pytest.approx(6 * rho * math.sqrt(3) + 1.5)
    # BGLM-OFU: T0 = 10, s = 5, rho = 6, d = 1 and 2 (and a node without parents), exp(-10 * 0.25 / 2.5) = 1 / e
    widths = math.sqrt(10 * math.log(15)) + math.sqrt(20 * math.log(20))
    bound = 12 * 0.5 * widths + (6 * E**-4 + 1 / E) * 4 * 5 + 10
    arguments = {"l1": 0.5, "kappa": 1.0, "zeta": 0.5, "delta": E**-4, "initial": 10, "c": 2.5}
    assert c.regret_bound_bglm_ofu(15, 4, [0, 1, 2], **arguments) == pytest.approx(bound)
    assert c.regret_bound_bglm_ofu(7, 4, [0, 1, 2], **arguments) == 7.0


def test_regret_bounds_grow_like_sqrt_t_log_t():
    rounds = [10**4, 10**6, 10**8]
    linear = [c.regret_bound_blm_lr(t, 8, 6, c.delta_blm_lr(8, t)) / (math.sqrt(t) * math.log(t)) for t in rounds]
    ofu = []
    for t in rounds:
        delta = c.delta_bglm_ofu(8, t)
        initial = c.initial_rounds(8, 0.1, delta, R=1)
        bound = c.regret_bound_bglm_ofu(t, 8, [6] + [1] * 6, 1.0, 1.0, 0.1, delta, initial)
        ofu.append(bound / (math.sqrt(t) * math.log(t)))
    for ratios in (linear, ofu):
        assert max(ratios) < 1.5 * min(ratios)


def test_a_log_of_4_is_enough_for_the_last_step_of_lemma_1():
    """At equality in Eq. (3): 32 (d + l) / sqrt(512 (d^2 + l)) + sqrt(2 l) <= 3 sqrt(l), l = log(1 / delta)."""

    def holds(d: int, log: float) -> bool:
        return 32 * (d + log) / math.sqrt(512 * (d * d + log)) + math.sqrt(2 * log) <= 3 * math.sqrt(log)

    assert all(holds(d, log) for d in range(1, 200) for log in np.geomspace(4, 1_000, 50))
    assert not holds(1, 3.5)


@pytest.mark.parametrize(("d", "binary"), [(16, False), (63, True)])
def test_lemma_9_needs_an_eigenvalue_of_d_and_not_of_1(d, binary):
    """sum ||W_t||_{M_{t-1}^-1} <= sqrt(2 s d log(s d + t1)), M = I after t1 = d rounds: Hadamard rows exceed it."""
    rows = (1 - hadamard(d + 1)[1:, 1:]) / 2 if binary else hadamard(d).astype(float)
    assert np.all(np.sum(rows**2, axis=1) <= d)

    def total(M: np.ndarray) -> float:
        answer = 0.0
        for W in rows:
            answer += math.sqrt(W @ np.linalg.solve(M, W))
            M = M + np.outer(W, W)
        return answer

    def bound(t1: int) -> float:
        return math.sqrt(2 * d * d * math.log(d * d + t1))

    assert total(np.eye(d)) > bound(t1=d)
    assert total(d * np.eye(d)) < bound(t1=d)  # it takes d rounds or more, and more would only raise the bound


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2.0, math.nan, True, "0.1", None])
def test_delta_is_a_probability(delta):
    with pytest.raises(ModelError, match="strictly between 0 and 1"):
        c.checked_delta(delta)


@pytest.mark.parametrize("horizon", [0, -3, 2.5, True, None])
def test_the_horizon_is_a_number_of_rounds(horizon):
    with pytest.raises(ModelError, match="horizon must be a whole number from 1, but got"):
        diagnose_assumptions(paper.G1, horizon)


def test_good_arguments_pass():
    assert c.checked_delta(0.05) == 0.05
    assert diagnose_assumptions(paper.G1, np.int64(7)).horizon == 7


@pytest.mark.parametrize(("l2", "kappa"), [(1e300, 1.0), (1.0, 1e300), (1e200, 1e200), (1e160, 1e-3)])
def test_links_beyond_all_numbers_promise_nothing(l2, kappa):
    assert c.initial_lambda(3, l2, kappa, 0.05) == math.inf
    assert c.constant_R(3, l2, kappa, 0.05) == math.inf


# -- what was observed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7, 60, 900])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_the_ends_of_the_beta_binomial_interval_by_integration(count, share, alpha):
    """At an end the likelihood, averaged over Jeffreys' prior of the coin, is 1 / alpha times that of the end."""
    ones = round(share * count)
    mean = ones / count

    def relative(q):  # the likelihood of a coin, by that of the mean: no underflow
        return math.exp(xlogy(ones, q) + xlog1py(count - ones, -q) - xlogy(ones, mean) - xlog1py(count - ones, -mean))

    def of_angle(angle):  # q = sin(angle)^2 turns Jeffreys' prior into a uniform one
        return relative(math.sin(angle) ** 2)

    peak = math.asin(math.sqrt(mean))
    mixture = quad(of_angle, 0.0, math.pi / 2, points=[peak], limit=500, epsabs=1e-14)[0] * 2.0 / math.pi
    low, high = c.beta_binomial(mean, count, alpha)
    assert 0.0 <= low <= mean <= high <= 1.0
    for end, bound in ((low, 0.0), (high, 1.0)):
        if end == bound:
            assert mean == bound
        else:
            assert mixture / relative(end) == pytest.approx(1.0 / alpha, rel=1e-6)


def test_the_beta_binomial_interval_at_extremes():
    assert c.beta_binomial(0.5, 1)[0] < 0.01
    low, high = c.beta_binomial(1e-9, 10**12)
    assert 0.0 < low < 1e-9 < high < 1.3e-9
    low, high = c.beta_binomial(1.0 - 1e-15, 10**15)
    assert 0.999 < low <= high <= 1.0
    wide, narrow = c.beta_binomial(0.3, 10**4, 0.001), c.beta_binomial(0.3, 10**4)
    assert wide[0] < narrow[0] < 0.3 < narrow[1] < wide[1]
