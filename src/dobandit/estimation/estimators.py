"""Estimators: what the rounds so far say of every node's weights.

LeastSquares     sums and their inverse; theta = M^+ b, with M = ridge * I at the start (BLM-LR: 1; BLM-OFU: 0)
WeightedSquares  the sums weighted by what each row can tell, 1 / (p (1 - p)): M is then the precision of theta
MaximumLikelihood  the same sums, and BGLM-Estimate on the pattern counts of nodes whose link is not the identity
What any of them has learned is a `Belief`; kernels learn by `learn`. `estimate_of` says which weights are the estimate.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import by_type, kernel
from dobandit.estimation.belief import Belief, Layout, add_to_cell, start_belief
from dobandit.estimation.least_squares import add_round, add_row, gather
from dobandit.estimation.score_equation import STATUS_WORDS, due, fit_node
from dobandit.model.link_kernels import IDENTITY, LinkArrays, write_links

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


class MaximumLikelihood(NamedTuple):
    """What stays fixed."""

    links: LinkArrays
    nonlinear: NDArray[np.bool_]  # (n + 1,)


Estimator = Any  # LeastSquares, WeightedSquares, MaximumLikelihood, Mixture


@by_type
def learn(estimator: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """Take one round in: values by id (NaN: not seen), and which ids were set. The clock is the caller's."""


@learn.of(LeastSquares)
def learn_sums(estimator: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    add_round(layout, state, values, was_set)


@kernel
def learn_weighted_row(estimator: Any, layout: Any, state: Any, v: int, x: float) -> None:
    """Take (state.row, x) into v's sums with the weight 1 / (p (1 - p)), p the prediction before the row.

    p is moved towards 1/2 by its own standard error, so that few rows cannot make the next ones count for nearly
    everything, and held away from 0 and 1. The row is scaled in place.
    """
    start, at = layout.ptr[v], layout.square[v]
    d = layout.ptr[v + 1] - start
    p = variance = 0.0
    for i in range(d):
        p += state.row[i] * state.slots["line"][start + i]
        for j in range(d):
            variance += state.row[i] * state.pairs["inverse"][at + i * d + j] * state.row[j]
    error = math.sqrt(max(variance, 0.0))
    p = max(p - error, 0.5) if p > 0.5 else min(p + error, 0.5)
    p = min(max(p, estimator.floor), 1.0 - estimator.floor)
    root = 1.0 / math.sqrt(p * (1.0 - p))
    for j in range(d):
        state.row[j] *= root
    add_row(layout, state, v, state.row, x * root)


@learn.of(WeightedSquares)
def learn_weighted(estimator: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """Every node that the round says something about."""
    for v in range(1, len(layout.ptr) - 1):
        if gather(layout, values, was_set, v, state.row):
            learn_weighted_row(estimator, layout, state, v, values[v])


@learn.of(MaximumLikelihood)
def learn_likelihood(estimator: Any, layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """BGLM-Estimate: sums for every node, and the maximum likelihood of the nonlinear ones."""
    add_round(layout, state, values, was_set)
    for v in range(1, len(layout.ptr) - 1):
        if not estimator.nonlinear[v]:
            for slot in range(layout.ptr[v], layout.ptr[v + 1]):
                state.slots["curve"][slot] = state.slots["line"][slot]
        elif gather(layout, values, was_set, v, state.row):
            add_to_cell(state, v, layout.ptr[v + 1] - layout.ptr[v], state.row, 1.0, values[v])
            state.nodes["since"][v] += 1
            if due(state, v):
                fit_node(layout, estimator.links, state, v)


def estimate_of(estimator: Estimator, state: Belief) -> NDArray[np.float64]:
    """The weights of every node, by slot."""
    return np.asarray(state.slots["curve" if isinstance(estimator, MaximumLikelihood) else "line"])


def start_with_shares(layout: Layout, state: Belief) -> None:
    """Begin as if nothing but this were known: a node's d weights are nonnegative and add up to at most 1.

    The uniform distribution over these has the means 1 / (d + 1) and the precision `precision_of_shares`.
    """
    for v in range(1, len(layout.ptr) - 1):
        d, at = int(layout.ptr[v + 1] - layout.ptr[v]), int(layout.square[v])
        part = slice(layout.ptr[v], layout.ptr[v + 1])
        precision, mean = precision_of_shares(d), np.full(d, 1.0 / (d + 1))
        covariance = (np.diag(mean) - np.outer(mean, mean)) / (d + 2)
        square = slice(at, at + d * d)
        state.pairs["gram"][square], state.pairs["inverse"][square] = precision.ravel(), covariance.ravel()
        state.slots["rhs"][part], state.slots["line"][part] = precision @ mean, mean


def precision_of_shares(d: int) -> NDArray[np.float64]:
    """The inverse covariance of d + 1 numbers that are uniform among those that add up to 1, without the last."""
    return (d + 1.0) * (d + 2.0) * (np.eye(d) + 1.0)


def maximum_likelihood(layout: Layout, links: LinkArrays, horizon: int | None) -> tuple[MaximumLikelihood, Belief]:
    """The estimator and its belief before any round; room for the patterns of `horizon` rounds, where it is known."""
    estimator = MaximumLikelihood(links, links.code != IDENTITY)
    room = horizon + 1 if horizon is not None else _FIRST_ROOM
    state = start_belief(layout, 0.0, estimator.nonlinear, min(room, 1 << 20))
    return estimator, state._replace(points=write_links(state.nodes, links))


def status_of(estimator: Estimator, state: Belief, v: int, unseen: NDArray[np.float64]) -> str:
    """What is known of node v's estimate: whether the data alone, without a prior, tell its weights apart. unseen: the
    projector on the directions that they have not shown."""
    if isinstance(estimator, MaximumLikelihood) and estimator.nonlinear[v]:
        return STATUS_WORDS[state.nodes["status"][v]]
    return "singular" if np.trace(unseen) > 0.5 else "solved"


def begins_with_prior(estimator: Estimator) -> bool:
    """Whether M holds more than rows: a ridge, or the precision of weights that are shares of 1."""
    squares = getattr(estimator, "straight", estimator)
    return bool(getattr(squares, "shares", False) or getattr(squares, "ridge", 0.0))


def unseen_directions(estimator: Estimator, layout: Layout, state: Belief, v: int) -> NDArray[np.float64]:
    """The projector (d, d) on the directions that no row of node v has shown; what it began with is no row."""
    d, at = int(layout.ptr[v + 1] - layout.ptr[v]), int(layout.square[v])
    part = slice(at, at + d * d)
    if not begins_with_prior(estimator) or d == 0:
        return state.pairs["null"][part].reshape(d, d)
    squares: Any = getattr(estimator, "straight", estimator)
    prior = precision_of_shares(d) if getattr(squares, "shares", False) else squares.ridge * np.eye(d)
    rows = state.pairs["gram"][part].reshape(d, d) - prior
    if not state.nodes["rows"][v]:
        return np.eye(d)
    least = _NO_ROW * max(1.0, float(np.trace(rows)))
    if state.nodes["rows"][v] >= d:
        with suppress(np.linalg.LinAlgError):  # the quick way to see that every direction was seen
            np.linalg.cholesky(rows - least * np.eye(d))
            return np.zeros((d, d))
    sizes, vectors = np.linalg.eigh(rows)
    unseen = vectors[:, sizes <= least]
    return np.asarray(unseen @ unseen.T)
