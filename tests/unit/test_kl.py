"""Intervals by the Kullback-Leibler divergence, against plain bisection."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import rel_entr

from dobandit.estimation.kl import kl_lower, kl_upper


def divergence(p, q):
    return float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def by_bisection(mean, count, level, end):
    """The q between mean and end (0 or 1) that is farthest from the mean with count KL(mean, q) <= level."""
    inside, outside = mean, end
    for _ in range(200):
        q = (inside + outside) / 2
        inside, outside = (q, outside) if count * divergence(mean, q) <= level else (inside, q)
    return inside


@pytest.mark.parametrize("mean", [0.0, 1e-9, 0.003, 0.2, 0.5, 0.9, 1 - 1e-6, 1.0])
@pytest.mark.parametrize("count", [1, 7, 1000, 10**7])
@pytest.mark.parametrize("level", [0.01, 1.0, 9.2, 60.0])
def test_both_ends_are_those_of_bisection(mean, count, level):
    assert kl_upper(mean, float(count), level) == pytest.approx(by_bisection(mean, count, level, 1.0), abs=1e-11)
    assert kl_lower(mean, float(count), level) == pytest.approx(by_bisection(mean, count, level, 0.0), abs=1e-11)


def test_random_means_counts_and_levels():
    rng = np.random.default_rng(0)
    for _ in range(400):
        count = float(rng.integers(1, 10 ** int(rng.integers(1, 6))))
        mean, level = rng.integers(0, count + 1) / count, float(rng.exponential(5.0))
        low, high = kl_lower(mean, count, level), kl_upper(mean, count, level)
        assert 0 <= low <= mean <= high <= 1
        assert high == pytest.approx(by_bisection(mean, count, level, 1.0), abs=1e-10)
        assert low == pytest.approx(by_bisection(mean, count, level, 0.0), abs=1e-10)


def test_edges():
    assert (kl_lower(0.5, 0.0, 1.0), kl_upper(0.5, 0.0, 1.0)) == (0.0, 1.0)
    assert (kl_lower(0.3, 9.0, 0.0), kl_upper(0.3, 9.0, 0.0)) == (0.3, 0.3)
    assert kl_upper(0.0, 5.0, 2.0) == pytest.approx(1 - math.exp(-0.4))
    assert kl_lower(1.0, 5.0, 2.0) == pytest.approx(math.exp(-0.4))


def test_never_wider_than_hoeffding():
    """Pinsker: KL >= 2 (p - q)^2. At the level log(2 / 0.05) each end has half of the 5%."""
    for mean in np.linspace(0, 1, 21):
        reach = math.sqrt(math.log(2.0 / 0.05) / (2.0 * 50))
        low, high = max(mean - reach, 0.0), min(mean + reach, 1.0)
        assert low <= kl_lower(float(mean), 50.0, math.log(40)) + 1e-12
        assert high >= kl_upper(float(mean), 50.0, math.log(40)) - 1e-12
