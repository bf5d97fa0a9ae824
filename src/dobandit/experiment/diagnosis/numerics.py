"""Small computations for which SciPy would have to be loaded, which takes longer than a diagnosis, and 35 MB; or for
which NumPy takes many times as long as they need, in thousands of steps of fits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dobandit.policy.engine import Array


def chi_square_tail(df: int, statistic: float) -> float:
    """The probability that a chi-square with `df` degrees of freedom is above the statistic.

    With y = statistic / 2 it is a finite sum, from integrating by parts: for even df that of e^-y y^a / a! over a = 0,
    1, ... below df / 2; for odd df erfc(sqrt(y)) and e^-y y^a / Gamma(a + 1) over a = 1/2, 3/2, ... below df / 2.

    >>> round(chi_square_tail(1, 3.841458820694124), 12), round(chi_square_tail(2, 5.991464547107979), 12)
    (0.05, 0.05)
    """
    y = statistic / 2.0
    if y <= 0.0 or math.isinf(y):
        return 1.0 if y <= 0.0 else 0.0
    powers = (a / 2.0 for a in range(df % 2, df, 2))
    terms = (math.exp(a * math.log(y) - y - math.lgamma(a + 1.0)) for a in powers)
    return min(math.fsum(terms) + (math.erfc(math.sqrt(y)) if df % 2 else 0.0), 1.0)


def within(x: Array, low: float, high: float) -> Array:
    """x between two bounds."""
    return np.minimum(np.maximum(x, low), high)


def nonnegative_least_squares(A: Array, b: Array) -> Array:
    """argmin |A x - b| over x >= 0, by Lawson and Hanson's active sets; A has full column rank.

    The unknowns that are free are solved for; where that leads below 0, one goes as far as it stays above, and holds
    what has reached 0. Then the unknown is freed along which the error falls most, until it falls along none. Where
    all of them are above 0 when all are free, that is where it would end, so this is tried first.
    """
    whole = np.asarray(np.linalg.lstsq(A, b, rcond=None)[0], dtype=np.float64)
    if whole.min(initial=1.0) > 0.0:
        return whole
    x, free, in_vain = np.zeros(A.shape[1]), np.zeros(A.shape[1], dtype=bool), np.zeros(A.shape[1], dtype=bool)
    least = np.finfo(float).eps * np.abs(A).sum(axis=0).max(initial=0.0)  # below that it is rounding
    for _ in range(10 * A.shape[1]):
        falls = np.where(free | in_vain, -math.inf, A.T @ (b - A @ x))
        if falls.max(initial=-math.inf) <= least:
            break
        new = int(np.argmax(falls))
        free[new] = True
        goal = _solved(A, b, free)
        if goal[new] <= 0.0:  # by rounding: nothing is gained along it
            free[new], in_vain[new] = False, True
            continue
        in_vain[:] = False
        while (below := free & (goal <= 0.0)).any():
            shares = np.where(below, np.divide(x, x - goal, out=np.zeros_like(x), where=x > goal), math.inf)
            x += shares.min() * (goal - x)
            free &= shares > shares.min()
            x[~free] = 0.0
            goal = _solved(A, b, free)
        x = goal
    return x


def _solved(A: Array, b: Array, free: NDArray[np.bool_]) -> Array:
    """Least squares in the unknowns that are free; the others are 0."""
    x = np.zeros(A.shape[1])
    x[free] = np.linalg.lstsq(A[:, free], b, rcond=None)[0]
    return x
