"""Whether a node's rows bear out its link.

Cell c: a pattern V_c of a node's parents (the constant's 1 first), seen in n_c rows with the node at 1 in O_c of them.
p_c = f(V_c . theta), theta of maximum likelihood among the weights that the link allows (no ridge): nonnegative ones
where that is promised, else any, with f at the end of its domain where V_c . theta lies beyond.
Groups g are cells, or several cells where one alone expects too little.
e_g: sum of O - n p over g, by its standard deviation, the root of the sum of n p (1 - p).  C: what is left in e's
coordinates of an orthonormal basis of the directions in which the free weights (those at no bound) move the
standardised cells.
Cov(e) = I - C C^T, so e^T (I - C C^T)^+ e is chi-square; with no cell pooled it is Pearson's, and its degrees of
freedom are groups - free weights. The rounds are chosen by a learner, so these p-values are good for large counts only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.diagnosis.calibration import FEWEST, quantile_groups
from dobandit.diagnosis.cells import Cells
from dobandit.model.links import Link
from dobandit.policy.engine import Array

_EXPECTED = 5.0  # ones, and zeros, that a group should expect
_MOST_POOLED = 10
_ROWS_A_WEIGHT = 20  # with fewer, a right link was called wrong in half of the runs with 20 causes


class Test(NamedTuple):
    statistic: float
    df: int
    worst: tuple[int, NDArray[np.int64]]  # a group, and the group of each cell (-1: in none)

    @property
    def p(self) -> float:
        """The probability of a larger statistic where the link is right."""
        from scipy.special import chdtrc  # not at the start: SciPy takes longer to import than an answer may take

        return float(chdtrc(self.df, self.statistic))


class Fitted(NamedTuple):
    """What a link with fitted weights says of each cell."""

    p: Array
    slope: Array
    free: Array  # (d, free) directions in which no bound holds the weights


def tested(cells: Cells, link: Link, continuous: bool, nonnegative: bool) -> tuple[Array, Test] | None:
    """Each cell's fitted p, and the test; None where there is too little to test, or the numbers defeat a solver."""
    try:
        fit = _fit(cells, link, continuous, nonnegative)
        test = _lack_of_fit(cells, fit) if continuous else chi_square(cells, fit)
    except (RuntimeError, ValueError):  # of nnls, where it does not converge or numbers overflow; of linear algebra
        return None
    return None if test is None or test.df < 1 else (fit.p, test)


def _fit(cells: Cells, link: Link, continuous: bool, nonnegative: bool) -> Fitted:
    """Maximum likelihood (least squares for continuous data) by Newton's steps within the bounds."""
    V, total = cells.V, cells.total
    d = V.shape[1]
    bounded = nonnegative or link.weight_range[0] >= 0.0
    low, room = (link.nonnegative_range[0], link.domain[1]) if bounded else (-math.inf, math.inf)
    theta = np.full(d, (low if bounded else 0.0) + 1.0 / (d + 1))
    if continuous:
        theta = _within_bounds(V.T @ V, V.T @ total, low, room)
    else:
        likelihood = _log_likelihood(theta, cells, link)
        for _ in range(100 if d else 0):
            goal, share = _newton(theta, cells, link, low, room), 1.0
            while (ahead := _log_likelihood(theta + share * (goal - theta), cells, link)) < likelihood and share > 1e-6:
                share *= 0.5
            if ahead < likelihood:
                break
            theta = goal if share == 1.0 else theta + share * (goal - theta)
            gained, likelihood = ahead - likelihood, ahead
            if gained < 1e-9:
                break
    directions = np.eye(d)[:, theta > low + 1e-7]
    if math.isfinite(room) and theta.sum() > room - 1e-7 and directions.shape[1]:
        directions = directions @ np.linalg.qr(np.ones((directions.shape[1], 1)), mode="complete")[0][:, 1:]
    x = np.clip(V @ theta, *link.domain)
    return Fitted(np.clip(link.value(x), 0.0, 1.0), np.asarray(link.slope(x), dtype=float), directions)


def _log_likelihood(theta: Array, cells: Cells, link: Link) -> float:
    p = np.clip(link.value(np.clip(cells.V @ theta, *link.domain)), 0.0, 1.0)
    # What cannot be costs so much that a step there is never taken, unless no weights could help it.
    one, zero = (np.log(np.maximum(chance, 1e-300)) for chance in (p, 1.0 - p))
    return float(cells.total @ one + (cells.n - cells.total) @ zero)


def _newton(theta: Array, cells: Cells, link: Link, low: float, room: float) -> Array:
    """Where the likelihood's parabola at theta is largest; Fisher's information where a cell's own bends upwards."""
    V, n, one = cells
    x = np.clip(V @ theta, *link.domain)
    p, slope, bend = np.clip(link.value(x), 1e-9, 1.0 - 1e-9), link.slope(x), link.bend(x)
    q, zero = 1.0 - p, n - one
    score = one * slope / p - zero * slope / q
    own = one * (slope * slope / p - bend) / p + zero * (slope * slope / q + bend) / q
    weight = np.where(own > 0.0, own, n * slope * slope / (p * q))
    return _within_bounds((V * weight[:, None]).T @ V, V.T @ (weight * x + score), low, room)


def _within_bounds(H: Array, g: Array, low: float, room: float) -> Array:
    """argmin theta^T H theta / 2 - g^T theta with theta >= low and sum of theta <= room."""
    d = len(g)
    if not d:
        return np.zeros(0)
    L = np.linalg.cholesky(H + (1e-11 * np.trace(H) + 1e-30) * np.eye(d))
    if math.isinf(low):
        return np.asarray(np.linalg.solve(L.T, np.linalg.solve(L, g)))
    from scipy.optimize import nnls  # takes longer to import than most diagnoses take, which need no bounds

    b = np.linalg.solve(L, g - H @ np.full(d, low))
    if math.isinf(room):
        return np.asarray(nnls(L.T, b, maxiter=1000)[0]) + low
    # One more unknown, what is left of the room, and a row that is so heavy that it holds.
    heavy = 1e4 * math.sqrt(np.trace(H) + 1e-30)
    A = np.zeros((d + 1, d + 1))
    A[:d, :d], A[d] = L.T, heavy
    theta = np.asarray(nnls(A, np.append(b, heavy * (room - d * low)), maxiter=1000)[0])[:d]
    return theta * min(1.0, (room - d * low) / max(float(theta.sum()), 1e-300)) + low


def chi_square(cells: Cells, fit: Fitted) -> Test | None:
    """The test of a fit of maximum likelihood; None where there is too little to test.

    A cell that the fit calls impossible and that was seen refutes it by itself. Otherwise, in the letters above:
    1. e: how far each group is off, in its standard deviations. With p known these are independent standard normals for
       large counts, and e . e is chi-square with one degree of freedom per group.
    2. But p was fitted to the same rows. To first order a small change of the free weights moves the standardised cells
       along the columns of `pull`, and maximum likelihood leaves nothing of the cells' errors along these. `basis` is
       an orthonormal basis of them, C what is left of it after cells were put into groups.
    3. So Cov(e) = I - C C^T. Along an eigenvector of C^T C with value `taken` the variance of e is 1 - taken. The
       statistic divides by that again: e . e with each of these directions scaled by 1 / (1 - taken).
    4. With no cell pooled, every taken is 1: the direction is gone, and a degree of freedom with it (Pearson's test).
       Above 0.9 it counts as gone, since dividing by what is left would blow up rounding.
    """
    V, n, total = cells
    if n.sum() < _ROWS_A_WEIGHT * fit.free.shape[1]:
        return None
    impossible = ((fit.p < 1e-12) & (total > 0)) | ((fit.p > 1.0 - 1e-12) & (total < n))
    if impossible.any():
        return Test(math.inf, 1, (0, np.where(np.cumsum(impossible) * impossible == 1, 0, -1)))
    group = _groups(n * fit.p, n * (1.0 - fit.p), fit.p)
    if group.max(initial=-1) < 0:
        return None
    variance = n * fit.p * (1.0 - fit.p)
    root, used = np.sqrt(variance), group >= 0
    spread = np.sqrt(np.bincount(group[used], weights=variance[used]))
    e = np.bincount(group[used], weights=(total - n * fit.p)[used]) / spread
    pull = np.divide(n * fit.slope, root, out=np.zeros_like(n), where=variance > 1e-9)[:, None] * (V @ fit.free)
    size, axes = np.linalg.eigh(pull.T @ pull)
    known = size > 1e-10 * size.max(initial=0.0)
    basis = (pull @ axes[:, known] / np.sqrt(size[known])) * root[:, None]
    C = np.empty((len(e), basis.shape[1]))
    for j, column in enumerate(basis.T):
        C[:, j] = np.bincount(group[used], weights=column[used])
    C /= spread[:, None]
    taken, axes = np.linalg.eigh(C.T @ C)  # by fitting, of each direction
    along = (axes.T @ (C.T @ e)) ** 2 / np.maximum(taken, 1e-12)
    # Directions of which the fit has taken nearly everything are left out: what remains of them is rounding.
    gone = taken > 0.9
    factor = np.where(gone, 0.0, 1.0 / np.maximum(1.0 - taken, 0.1))
    statistic = float(e @ e + along @ (factor - 1.0))
    return Test(max(statistic, 0.0), len(e) - int(gone.sum()), (int(np.argmax(np.abs(e))), group))


def _groups(ones: Array, zeros: Array, p: Array) -> NDArray[np.int64]:
    """A group for each cell that expects enough; the others, by their p, in up to ten; -1 for what is too little."""
    expects = np.minimum(ones, zeros)
    alone = expects >= _EXPECTED
    group = np.full(len(p), -1)
    group[alone] = np.arange(np.sum(alone))
    few = np.flatnonzero(~alone)[np.argsort(p[~alone], kind="stable")]
    up_to = np.cumsum(expects[few])
    parts = min(_MOST_POOLED, int(up_to[-1] // (2 * _EXPECTED))) if len(few) else 0
    if parts:
        group[few] = np.sum(alone) + np.minimum((up_to * parts / up_to[-1]).astype(int), parts - 1)
    return group


def _lack_of_fit(cells: Cells, fit: Fitted) -> Test | None:
    """Continuous data: means of the residuals in tenths of the fitted value, and along the parents whose weight is at
    a bound, with the variance that the residuals themselves show (their noise need not be equal)."""
    V, y = cells.V, cells.total
    r = y - fit.p
    parts = min(_MOST_POOLED, len(y) // FEWEST)
    if parts < 1:
        return None
    group = quantile_groups(fit.p, parts)
    held = np.linalg.svd(fit.free)[0][:, fit.free.shape[1] :]
    A = np.vstack([(group == np.arange(group.max() + 1)[:, None]).astype(float), held.T @ V.T])
    F = V @ fit.free
    A -= (A @ F) @ np.linalg.pinv(F.T @ F) @ F.T  # the part that fitting leaves
    size, axes = np.linalg.eigh((A * (r * r)) @ A.T)
    shape = np.einsum("ij,ik,kj->j", axes, A @ A.T, axes)
    known = (shape > 1e-9 * len(y)) & (size > 1e-20 * len(y))
    off = np.bincount(group, weights=r) / np.sqrt(np.bincount(group, weights=r * r) + 1e-300)
    statistic = float(np.sum((axes[:, known].T @ (A @ r)) ** 2 / size[known]))
    return Test(statistic, int(known.sum()), (int(np.argmax(np.abs(off))), group))
