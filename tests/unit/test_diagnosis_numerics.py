"""What a diagnosis computes without SciPy, against SciPy."""

import math

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.special import chdtrc

from dobandit.experiment.diagnosis.numerics import chi_square_tail, nonnegative_least_squares


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 20, 101, 500, 3001])
def test_the_tail_of_a_chi_square(df):
    for statistic in (1e-300, 1e-9, 0.3, 1.0, df / 2, df, df + 5 * math.sqrt(df), 3 * df + 40, 700.0, 1400.0, 5000.0):
        assert chi_square_tail(df, statistic) == pytest.approx(chdtrc(df, statistic), rel=1e-9, abs=1e-300)
    assert (chi_square_tail(df, 0.0), chi_square_tail(df, math.inf)) == (1.0, 0.0)


def test_nonnegative_least_squares():
    """Random problems: of few and many unknowns, badly scaled, with equal columns but for a ridge, with a heavy row."""
    rng = np.random.default_rng(3)
    for number in range(400):
        d = int(rng.integers(1, 13))
        rows = d + int(rng.integers(0, 9))
        A = rng.normal(size=(rows, d)) * 10.0 ** rng.uniform(-3, 3, size=d if number % 3 == 0 else 1)
        if number % 4 == 1:
            A[:, -1] = A[:, 0]
        A = np.vstack([A, 1e-3 * np.eye(d)])
        b = rng.normal(size=len(A)) if number % 5 else A @ np.maximum(rng.normal(size=d), 0.0)
        if number % 2:
            A, b = np.vstack([A, np.full(d, 1e4)]), np.append(b, 1e4)
        x, (_, least) = nonnegative_least_squares(A, b), nnls(A, b, maxiter=1000)
        size = np.linalg.norm(b)
        assert (x >= 0.0).all()
        assert np.linalg.norm(A @ x - b) <= least + 1e-9 * size
        falls = A.T @ (b - A @ x)  # nothing can be gained along any unknown, nor lost along one that is above 0
        assert (falls <= 1e-8 * np.linalg.norm(A, axis=0) * size).all()
        assert (np.abs(falls[x > 0]) <= 1e-8 * np.linalg.norm(A, axis=0)[x > 0] * size).all()
    assert nonnegative_least_squares(np.eye(2), np.array([-1.0, 0.0])).tolist() == [0.0, 0.0]
    assert nonnegative_least_squares(np.ones((3, 0)), np.ones(3)).shape == (0,)
