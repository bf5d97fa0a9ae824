"""Algorithm 4: the pair-oracle for linear models."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, lsq_linear

from dobandit.graph.causal_graph import CausalGraph
from transcription.shared import Array, Set, features, width


def forward_value(graph: CausalGraph, S: Set, best_mean: Callable[[str, Array], float]) -> float:
    """Algorithm 4, lines 4-11, for one S: optimistic means in topological order; E[Y | do(S)] is the last."""
    mean: dict[str, float] = {}
    for name in graph.nodes:  # line 4
        if name not in S:
            v = features(graph, name, mean)  # line 5
            mean[name] = best_mean(name, v)  # line 7
        else:
            mean[name] = 1.0  # line 9
    return mean[graph.target]


def closed_form_value(
    graph: CausalGraph, theta_hat: Mapping[str, Array], M_inverse: Mapping[str, Array], rho: float, S: Set
) -> float:
    """Algorithm 4's inner loop as printed: rho sqrt(v' M^-1 v) + v' theta_hat, not clipped."""

    def best_mean(name: str, v: Array) -> float:
        return rho * width(v, M_inverse[name]) + float(v @ theta_hat[name])

    return forward_value(graph, S, best_mean)


def boxed_value(
    graph: CausalGraph, theta_hat: Mapping[str, Array], M: Mapping[str, Array], rho: float, S: Set
) -> float:
    """The same recursion over the ellipsoids of Algorithm 3, line 4, which lie within [0, 1]^d."""
    return boxed_values(graph, theta_hat, M, rho, [S])[0]


def boxed_values(
    graph: CausalGraph, theta_hat: Mapping[str, Array], M: Mapping[str, Array], rho: float, sets: Iterable[Set]
) -> list[float]:
    """`boxed_value` of each set; a node whose parents have the same means under several of them is solved once."""
    found: dict[tuple[str, bytes], float] = {}

    def best_mean(name: str, v: Array) -> float:
        key = name, v.tobytes()
        if key not in found:
            found[key] = boxed_maximum(v, theta_hat[name], M[name], rho).value
        return found[key]

    return [forward_value(graph, S, best_mean) for S in sets]


class BoxedMaximum(NamedTuple):
    value: float  # the dual value: never below the maximum
    theta: Array  # where it is attained
    gap: float  # value - v.theta; with theta in the region this proves both to this precision


def boxed_maximum(v: Array, theta_hat: Array, M: Array, rho: float) -> BoxedMaximum:
    """max v.theta over {theta in [0, 1]^d, ||theta - theta_hat||_M <= rho}; M positive definite.

    Lagrange: for a multiplier 1/(2s) of ||theta - theta_hat||_M^2 <= rho^2 the inner maximum is at
        theta(s) = argmin over the box of ||theta - theta_hat||_M^2 / 2 - s v.theta,
    whose distance from theta_hat grows with s, so the right s is found by root search. theta(0) is the box's nearest
    point: if even that is farther than rho, the region is empty and the radius is enlarged to reach it.
    """
    if not len(v):
        return BoxedMaximum(0.0, np.zeros(0), 0.0)
    reach = M @ theta_hat

    @cache
    def theta_at(s: float) -> Array:
        return box_minimum(M, reach + s * v)

    def distance(theta: Array) -> float:
        return width(theta - theta_hat, M)

    def dual(s: float) -> BoxedMaximum:
        theta = theta_at(s)
        gap = (rho**2 - distance(theta) ** 2) / (2.0 * s)
        return BoxedMaximum(float(v @ theta) + gap, theta, gap)

    nearest = theta_at(0.0)
    if distance(nearest) >= rho:
        return BoxedMaximum(float(v @ nearest), nearest, 0.0)
    best_corner = float(np.maximum(v, 0.0).sum())
    low, high = 0.0, 1.0
    while distance(theta_at(high)) < rho:
        theta = theta_at(high)
        if v @ theta >= best_corner - 1e-13:  # the whole box's maximum is within the ellipsoid
            return BoxedMaximum(best_corner, theta, best_corner - float(v @ theta))
        if dual(high).gap <= 1e-13:
            return dual(high)
        low, high = high, 4.0 * high
    s = brentq(lambda s: distance(theta_at(s)) - rho, low, high, xtol=1e-300, rtol=1e-15, maxiter=1000)
    return dual(s)


def box_minimum(M: Array, c: Array) -> Array:
    """argmin over [0, 1]^d of theta' M theta / 2 - c.theta, M positive definite: exact, by its active set.

    Active bounds are guessed until the answer fulfils the Karush-Kuhn-Tucker conditions, which only the minimum does.
    """
    for bounds in active_bounds(M, c):
        theta = np.array(bounds)
        free = np.isnan(theta)
        theta[free] = np.linalg.solve(M[np.ix_(free, free)], c[free] - M[np.ix_(free, ~free)] @ theta[~free])
        gradient = M @ theta - c
        small = 1e-11 * (1.0 + np.abs(c).max() + np.abs(M).max())
        if (
            np.all((theta >= -1e-11) & (theta <= 1.0 + 1e-11))
            and np.all(gradient[(theta == 0.0) & ~free] >= -small)
            and np.all(gradient[(theta == 1.0) & ~free] <= small)
        ):
            return np.clip(theta, 0.0, 1.0)
    raise AssertionError("a strictly convex function has a minimum over the box")


def active_bounds(M: Array, c: Array) -> Iterator[tuple[float, ...]]:
    """Guesses for `box_minimum`, NaN where no bound is active: none; those of scipy's bounded least squares; all."""
    yield (math.nan,) * len(c)
    root = np.linalg.cholesky(M)
    solved = lsq_linear(root.T, np.linalg.solve(root, c), bounds=(0.0, 1.0), method="bvls", tol=1e-15)
    yield tuple(0.0 if x <= 1e-12 else 1.0 if x >= 1.0 - 1e-12 else math.nan for x in solved.x)
    yield from itertools.product((0.0, 1.0, math.nan), repeat=len(c))


def epsilon_net_value(v: Array, theta_hat: Array, M: Array, rho: float, eps: float) -> float:
    """max v.theta over the points of a grid of step eps in [0, 1]^d that lie within the ellipsoid (small d only).

    The method of Li et al. 2020, Appendix B.5, that Algorithm 4 replaces; -inf if no grid point is inside.
    """
    steps = np.linspace(0.0, 1.0, round(1.0 / eps) + 1)
    net = np.stack([axis.ravel() for axis in np.meshgrid(*[steps] * len(v), indexing="ij")], axis=1)
    away = net - theta_hat
    inside = np.sum((away @ M) * away, axis=1) <= rho**2
    return float(np.max(net[inside] @ v, initial=-math.inf))
