"""The link of a node: the one under which rows that were held out are most likely.

Cell c: a pattern V_c of the node's parents (the constant's 1 first), seen in n_c rows, in s_c of them with the node
at 1. The rows are shuffled, always in the same way, and cut into FOLDS parts; each part is predicted by weights fitted
to the others. A link that bends to the rows gains nothing by it.
identity     f(x) = x, logistic, exponential (1 - exp(-x), weights from 0 on): maximum likelihood by Fisher's scoring,
             with the curves' prior of the learners (`estimation.mixture`) for the logistic one
table        (s + k p) / (n + k), p what the line and the logistic curve say on average, k = BACK
The test of a link (`diagnosis.link_test`) fits by itself: without the prior and the floor, which it must not have,
12 of 60 choices at 60 rows were other links.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dobandit.diagnosis.cells import Cells
from dobandit.estimation.mixture import BACK, PRIOR
from dobandit.model.links import Link, exponential, identity, logistic
from dobandit.oracle.frontier import MOST_PARENTS
from dobandit.policy.engine import Array

FOLDS = 5
SURE = 2.0  # standard errors that are more than chance
FEWEST = 4 * FOLDS  # rows for a choice
TABLE = "table"
CURVES: dict[str, Link] = {"identity": identity, "logistic": logistic(), "exponential": exponential}
_SEED = 20_230_207
_STEPS = 40
_DONE = 1e-9  # nats per row
_DIGITS = 9  # of nats per row: of equals the simpler one, which comes first, is taken


class Choice(NamedTuple):
    """What was chosen for a node.

    link       the one under which the held-out rows are most likely; a table only where it is better than every curve
               by more than two standard errors, since it can always imitate them
    scores     log-likelihood of a held-out row on average, by link
    runner_up  the next best
    margin     how much more likely all held-out rows are under the chosen one, in nats
    error      the standard error of the margin; below two of them the two are not told apart
    """

    link: str
    scores: dict[str, float]
    runner_up: str
    margin: float
    error: float


def choose_link(cells: Cells, wanted: str | None = None) -> Choice | None:
    """The link of a node from its rows; None where there are too few, or nothing to choose without parents.

    wanted  a link that is taken whatever the rows say: the margin is then that over the best other one
    """
    rows = round(float(cells.n.sum()))
    parents = int(np.count_nonzero(np.ptp(cells.V, axis=0))) if rows else 0  # that have shown both values
    if rows < FEWEST or not parents:
        return None
    folds = _folds(cells)
    names = [*CURVES, *([TABLE] if parents <= MOST_PARENTS else [])]
    ones, zeros = (np.zeros((len(names), FOLDS, len(cells.n))) for _ in range(2))
    for fold in range(FOLDS):
        others = np.arange(FOLDS) != fold
        n, s = folds[others].sum(axis=(0, 2)), folds[others, :, 1].sum(axis=0)
        for k, p in enumerate(_predictions(Cells(cells.V, n, s), names)):
            ones[k, fold], zeros[k, fold] = np.log(p), np.log1p(-p)
    held = folds.transpose(2, 0, 1)  # (zeros and ones, fold, cell)
    totals = (held[1] * ones + held[0] * zeros).sum(axis=(1, 2))
    ranked = sorted(range(len(names)), key=lambda k: (-round(float(totals[k]) / rows, _DIGITS), k))
    best = names.index(wanted) if wanted in names else ranked[0]
    second = next(k for k in ranked if k != best)

    def apart(one: int, other: int) -> tuple[float, float]:
        """How much more likely the held-out rows are under one link than under another, and the standard error."""
        up, down = ones[one] - ones[other], zeros[one] - zeros[other]
        more = float((held[1] * up + held[0] * down).sum())
        squares = float((held[1] * up**2 + held[0] * down**2).sum())
        return more, math.sqrt(max(squares - more * more / rows, 0.0))

    margin, error = apart(best, second)
    if wanted is None and names[best] == TABLE and margin <= SURE * error:
        best, second, margin = second, best, -margin
    scores = {name: float(total) / rows for name, total in zip(names, totals.tolist(), strict=True)}
    return Choice(names[best], scores, names[second], margin, error)


def fit_weights(cells: Cells, link: Link) -> Array:
    """Weights of maximum likelihood among those that the link allows, whatever their signs."""
    V, n, s = cells
    n, V, s = n[n > 0], V[n > 0], s[n > 0]
    if not V.shape[1] or not len(n):
        return np.zeros(V.shape[1])
    ridge, bounded = (PRIOR if link.name == "logistic" else 1e-9), link.weight_range[0] == 0.0
    rates, floor = s / n, 1.0 / (float(n.sum()) + 2.0)
    x = _inverse(link, (s + 0.5) / (n + 1.0))
    theta = _solve(V, n, x, ridge, bounded)
    likelihood = _log_likelihood(cells, link, theta, floor) - 0.5 * ridge * float(theta @ theta)
    for _ in range(_STEPS):
        x = np.clip(V @ theta, *link.domain) if bounded else V @ theta
        value, slope = np.asarray(link.value(x), dtype=float), np.maximum(np.asarray(link.slope(x), dtype=float), 1e-9)
        p = np.clip(value, floor, 1.0 - floor)
        goal = _solve(V, n * slope**2 / (p * (1.0 - p)), x + (rates - value) / slope, ridge, bounded)
        share, ahead = 1.0, -math.inf
        while share > 1e-4:
            trial = theta + share * (goal - theta)
            ahead = _log_likelihood(cells, link, trial, floor) - 0.5 * ridge * float(trial @ trial)
            if ahead >= likelihood:
                break
            share *= 0.5
        if ahead < likelihood:
            break
        theta, gained, likelihood = trial, ahead - likelihood, ahead
        if gained < _DONE * float(n.sum()):
            break
    return theta


def _predictions(cells: Cells, names: list[str]) -> list[Array]:
    """What each link says of every cell, never quite sure, from the rows in `cells`."""
    floor = 1.0 / (float(cells.n.sum()) + 2.0)
    found = [
        np.clip(link.probability(cells.V @ fit_weights(cells, link)), floor, 1.0 - floor) for link in CURVES.values()
    ]
    if TABLE in names:
        prior = 0.5 * (found[0] + found[1])
        found.append((cells.total + BACK * prior) / (cells.n + BACK))
    return found


def _folds(cells: Cells) -> Array:
    """(FOLDS, cells, 2) how many rows of each cell with the node at 0 and at 1 are in each part."""
    ones = np.rint(cells.total).astype(np.int64)
    counts = np.stack([np.rint(cells.n).astype(np.int64) - ones, ones], axis=1)
    rows = np.random.default_rng(_SEED).permutation(np.repeat(np.arange(counts.size), counts.ravel()))
    return np.stack(
        [np.bincount(rows[fold::FOLDS], minlength=counts.size).reshape(counts.shape) for fold in range(FOLDS)]
    ).astype(float)


def _inverse(link: Link, p: Array) -> Array:
    if link.name == "logistic":
        return np.log(p / (1.0 - p))
    return -np.log1p(-p) if link.name == "exponential" else p


def _solve(V: Array, weight: Array, x: Array, ridge: float, bounded: bool) -> Array:
    """argmin of sum of weight (V theta - x)^2 + ridge |theta|^2, theta from 0 on where it is bounded."""
    root = np.sqrt(weight)
    A = np.vstack([V * root[:, None], math.sqrt(ridge) * np.eye(V.shape[1])])
    b = np.concatenate([x * root, np.zeros(V.shape[1])])
    if bounded:
        from scipy.optimize import nnls  # not at the start: it takes long to import

        return np.asarray(nnls(A, b, maxiter=1000)[0])
    return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0])


def _log_likelihood(cells: Cells, link: Link, theta: Array, floor: float) -> float:
    p = np.clip(link.probability(cells.V @ theta), floor, 1.0 - floor)
    return float(cells.total @ np.log(p) + (cells.n - cells.total) @ np.log1p(-p))
