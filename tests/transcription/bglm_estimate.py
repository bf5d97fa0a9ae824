"""Algorithm 2: BGLM-Estimate."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog

from dobandit.model.links import Link
from transcription.shared import PSEUDO_INVERSE_CUTOFF, Array, pseudo_inverse


def least_squares(V: Array, x: Array) -> Array:
    """Algorithm 2, line 5, for the identity link: M theta = b, the solution of least norm if M is singular."""
    return pseudo_inverse(V.T @ V) @ (V.T @ x)


def score(theta: Array, V: Array, x: Array, link: Link) -> Array:
    """The left-hand side of Algorithm 2, line 5: sum over i of (X^i - f(V_i.theta)) V_i."""
    return V.T @ (x - np.asarray(link.value(V @ theta), dtype=float))


def score_root(V: Array, x: Array, link: Link, tolerance: float = 1e-12) -> Array:
    """Algorithm 2, line 5: the theta where the score is 0, by damped Newton steps from theta = 0.

    Directions without data stay 0. If the data are `separated` there is no root: the score goes to 0 as theta grows
    without end, and the theta returned is merely where the steps ended.
    """
    if not V.size:
        return np.zeros(V.shape[1])
    eigenvalues, vectors = np.linalg.eigh(V.T @ V)
    Q = vectors[:, eigenvalues > PSEUDO_INVERSE_CUTOFF * eigenvalues[-1]]  # theta = Q a: the directions with data
    a = np.zeros(Q.shape[1])
    for _ in range(500):
        now = score(Q @ a, V, x, link)
        if np.linalg.norm(now) <= tolerance:
            break
        slopes = np.asarray(link.slope(V @ Q @ a), dtype=float)
        step = np.linalg.lstsq((V @ Q).T @ (slopes[:, None] * (V @ Q)), Q.T @ now, rcond=None)[0]
        damping = 1.0 / max(1.0, np.abs(V @ Q @ step).max())  # no leap to where f is flat
        while damping > 1e-12:
            tried = a + damping * step
            # f > 1 is beyond the pole of the rational link
            valid = np.all(np.asarray(link.value(V @ Q @ tried)) <= 1.0)
            if valid and np.linalg.norm(score(Q @ tried, V, x, link)) < np.linalg.norm(now):
                a = tried
                break
            damping /= 2.0
        else:
            break  # rounding allows no better
    theta = Q @ a
    assert np.linalg.norm(score(theta, V, x, link)) <= 1e-10 or separated(V, x, link), "Newton did not converge"
    return theta


def separated(V: Array, x: Array, link: Link) -> bool:
    """Whether the score has no root, because moving along some direction fits every row it touches ever better.

    Such a direction raises v.theta in rows with X = 1 only, and lowers it in rows with X = 0 only. Lowering is no
    such improvement for links that fall below 0 there, which are those with a least x in their domain.
    """
    if not V.size:
        return False
    may_rise = x >= 1.0
    may_fall = (x <= 0.0) & math.isinf(link.domain[0])
    sign = np.where(may_rise, 1.0, -1.0)
    gain = (sign[:, None] * V)[may_rise | may_fall]
    fixed = V[~(may_rise | may_fall)]
    found = linprog(
        -gain.sum(axis=0),
        A_ub=-gain if len(gain) else None,
        b_ub=np.zeros(len(gain)) if len(gain) else None,
        A_eq=fixed if len(fixed) else None,
        b_eq=np.zeros(len(fixed)) if len(fixed) else None,
        bounds=(-1.0, 1.0),
    )
    return bool(-found.fun > 1e-7)
