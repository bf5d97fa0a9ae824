"""Estimators: what the rounds so far say of every node's weights.

LeastSquares     sums and their inverse; theta = M^+ b, with M = ridge * I at the start (BLM-LR: 1; BLM-OFU: 0)
WeightedSquares  the sums weighted by what each row can tell, 1 / (p (1 - p)): M is then the precision of theta
MaximumLikelihood  the same sums, and BGLM-Estimate on the pattern counts of nodes whose link is not the identity
The state of either is a named tuple of arrays; kernels learn by `learn`, and `theta` is the estimate.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import by_type, kernel
from dobandit.estimation.mle import (
    STATUS_WORDS,
    Patterns,
    add_to_patterns,
    due,
    fit_node,
    grown,
    rows_that_fit,
    start_patterns,
)
from dobandit.estimation.statistics import Layout, Statistics, add_round, add_row, gather, start_statistics
from dobandit.model.link_kernels import IDENTITY, LinkArrays

_NO_ROW = 1e-11  # share of the sums below which a direction holds nothing but rounding
_FIRST_ROOM = 256  # patterns per node, for learners without a horizon; doubled when it runs out


class LeastSquares(NamedTuple):
    """What stays fixed."""

    ridge: float


class WeightedSquares(NamedTuple):
    """What stays fixed."""

    ridge: float
    floor: float  # predictions count as at least this far from 0 and 1
    shares: bool = False  # instead of a ridge, the precision of weights that are shares of 1 (`start_with_shares`)


class Sums(NamedTuple):
    """What has been learned. theta: the estimate, which is that of the sums. clock: rounds taken in; 1 once an
    initialisation is over."""

    theta: NDArray[np.float64]
    stats: Statistics
    clock: NDArray[np.int64]


class MaximumLikelihood(NamedTuple):
    """What stays fixed."""

    links: LinkArrays
    nonlinear: NDArray[np.bool_]  # (n + 1,)


class Likelihoods(NamedTuple):
    """What has been learned: the sums, and patterns, whose theta is the estimate of every node, linear ones too."""

    theta: NDArray[np.float64]
    stats: Statistics
    clock: NDArray[np.int64]
    patterns: Patterns


Estimator = Any  # LeastSquares, WeightedSquares, MaximumLikelihood, Mixture
State = Any  # a named tuple with theta, stats and clock: Sums, Likelihoods, Mixed


@by_type
def learn(estimator: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """Take one round in: values by id (NaN: not seen), and which ids were set. The clock is the caller's."""


@learn.of(LeastSquares)
def learn_sums(estimator: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    add_round(layout, state.stats, values, was_set)


@kernel
def learn_weighted_row(estimator: Any, layout: Any, stats: Any, v: int, x: float) -> None:
    """Take (stats.row, x) into v's sums with the weight 1 / (p (1 - p)), p the prediction before the row.

    p is moved towards 1/2 by its own standard error, so that few rows cannot make the next ones count for nearly
    everything, and held away from 0 and 1. The row is scaled in place.
    """
    start, at = layout.ptr[v], layout.square[v]
    d = layout.ptr[v + 1] - start
    p = variance = 0.0
    for i in range(d):
        p += stats.row[i] * stats.theta[start + i]
        for j in range(d):
            variance += stats.row[i] * stats.inverse[at + i * d + j] * stats.row[j]
    error = math.sqrt(max(variance, 0.0))
    p = max(p - error, 0.5) if p > 0.5 else min(p + error, 0.5)
    p = min(max(p, estimator.floor), 1.0 - estimator.floor)
    root = 1.0 / math.sqrt(p * (1.0 - p))
    for j in range(d):
        stats.row[j] *= root
    add_row(layout, stats, v, stats.row, x * root)


@learn.of(WeightedSquares)
def learn_weighted(estimator: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """Every node that the round says something about."""
    for v in range(1, len(layout.ptr) - 1):
        if gather(layout, values, was_set, v, state.stats.row):
            learn_weighted_row(estimator, layout, state.stats, v, values[v])


@learn.of(MaximumLikelihood)
def learn_likelihood(estimator: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """BGLM-Estimate: sums for every node, and the maximum likelihood of the nonlinear ones."""
    stats, patterns = state.stats, state.patterns
    add_round(layout, stats, values, was_set)
    for v in range(1, len(layout.ptr) - 1):
        if not estimator.nonlinear[v]:
            for slot in range(layout.ptr[v], layout.ptr[v + 1]):
                patterns.theta[slot] = stats.theta[slot]
        elif gather(layout, values, was_set, v, stats.row):
            add_to_patterns(layout, patterns, v, stats.row, values[v])
            if due(patterns, v):
                fit_node(layout, estimator.links, patterns, v)


def least_squares(layout: Layout, ridge: float) -> tuple[LeastSquares, Sums]:
    """The estimator and its state before any round."""
    stats = start_statistics(layout, ridge)
    return LeastSquares(ridge), Sums(stats.theta, stats, np.zeros(2, dtype=np.int64))


def weighted_squares(layout: Layout, ridge: float, floor: float) -> tuple[WeightedSquares, Sums]:
    """The estimator and its state before any round."""
    return WeightedSquares(ridge, floor), least_squares(layout, ridge)[1]


def start_with_shares(layout: Layout, stats: Statistics) -> None:
    """Begin as if nothing but this were known: a node's d weights are nonnegative and add up to at most 1.

    The uniform distribution over these has the means 1 / (d + 1) and the precision `precision_of_shares`.
    """
    for v in range(1, len(layout.ptr) - 1):
        d, at = int(layout.ptr[v + 1] - layout.ptr[v]), int(layout.square[v])
        part = slice(layout.ptr[v], layout.ptr[v + 1])
        precision, mean = precision_of_shares(d), np.full(d, 1.0 / (d + 1))
        covariance = (np.diag(mean) - np.outer(mean, mean)) / (d + 2)
        stats.gram[at : at + d * d], stats.inverse[at : at + d * d] = precision.ravel(), covariance.ravel()
        stats.rhs[part], stats.theta[part] = precision @ mean, mean


def precision_of_shares(d: int) -> NDArray[np.float64]:
    """The inverse covariance of d + 1 numbers that are uniform among those that add up to 1, without the last."""
    return (d + 1.0) * (d + 2.0) * (np.eye(d) + 1.0)


def maximum_likelihood(layout: Layout, links: LinkArrays, horizon: int | None) -> tuple[MaximumLikelihood, Likelihoods]:
    """The estimator and its state before any round; room for the patterns of `horizon` rounds, where it is known."""
    nonlinear = links.code != IDENTITY
    estimator = MaximumLikelihood(links, nonlinear)
    room = horizon + 1 if horizon is not None else _FIRST_ROOM
    patterns = start_patterns(layout, nonlinear, min(room, 1 << 20))
    stats, clock = start_statistics(layout, 0.0), np.zeros(2, dtype=np.int64)
    return estimator, Likelihoods(patterns.theta, stats, clock, patterns)


def rows_with_room(estimator: Estimator, layout: Layout, state: State) -> tuple[State, int]:
    """(state, rows): how many rows the state can take in for sure, at least one; the state may have to grow."""
    if not hasattr(state, "patterns"):
        return state, 1 << 40
    while not (rows := rows_that_fit(state.patterns)):
        old = state.patterns
        new = grown(layout, old, old.capacity > 0)
        state = state._replace(theta=new.theta if state.theta is old.theta else state.theta, patterns=new)
    return state, rows


def status_of(estimator: Estimator, state: State, v: int, unseen: NDArray[np.float64]) -> str:
    """What is known of node v's estimate: whether the data alone, without a prior, tell its weights apart. unseen: the
    projector on the directions that they have not shown."""
    if isinstance(estimator, MaximumLikelihood) and estimator.nonlinear[v]:
        return STATUS_WORDS[state.patterns.status[v]]
    return "singular" if np.trace(unseen) > 0.5 else "solved"


def begins_with_prior(estimator: Estimator) -> bool:
    """Whether M holds more than rows: a ridge, or the precision of weights that are shares of 1."""
    squares = getattr(estimator, "straight", estimator)
    return bool(getattr(squares, "shares", False) or getattr(squares, "ridge", 0.0))


def unseen_directions(estimator: Estimator, layout: Layout, state: State, v: int) -> NDArray[np.float64]:
    """The projector (d, d) on the directions that no row of node v has shown; what it began with is no row."""
    d, at = int(layout.ptr[v + 1] - layout.ptr[v]), int(layout.square[v])
    part = slice(at, at + d * d)
    if not begins_with_prior(estimator) or d == 0:
        return state.stats.null[part].reshape(d, d)
    squares: Any = getattr(estimator, "straight", estimator)
    prior = precision_of_shares(d) if getattr(squares, "shares", False) else squares.ridge * np.eye(d)
    rows = state.stats.gram[part].reshape(d, d) - prior
    if not state.stats.rows[v]:
        return np.eye(d)
    least = _NO_ROW * max(1.0, float(np.trace(rows)))
    if state.stats.rows[v] >= d:
        with suppress(np.linalg.LinAlgError):  # the quick way to see that every direction was seen
            np.linalg.cholesky(rows - least * np.eye(d))
            return np.zeros((d, d))
    sizes, vectors = np.linalg.eigh(rows)
    unseen = vectors[:, sizes <= least]
    return np.asarray(unseen @ unseen.T)
