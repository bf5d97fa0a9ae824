"""The largest e . theta over ellipsoid and box: theta in [0,1]^d, ||theta - c||_M <= rho. Exact.

theta(s) = argmin over the box of 1/2 ||theta - c||_M^2 - s e . theta is a straight line in s on each piece where the
same coordinates sit at the same bounds (a parametric quadratic program). Follow it from s = 0, the point of the box
nearest to c, until the ellipsoid is reached. The same walk, from clip(c) with M(c - clip(c)) in place of e, finds the
nearest point. If even that lies outside the ellipsoid, the region is empty and the nearest point stands in for it
(the radius is enlarged to the smallest that makes sense).

With the box the forward recursion over nodes is exact: weights are nonnegative, so a larger parent mean never hurts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.estimation.belief import Layout
from dobandit.estimation.least_squares import dot, factorise, solve_factored
from dobandit.oracle.listing import (
    Listing,
    held_at,
    members_before,
    pick_best,
    prepare,
    prepare_nothing,
    propose,
    score,
    score_prepared,
)

_TINY = 1e-12


class Boxed(NamedTuple):
    """Scratch for one node's program and for the recursion over nodes."""

    means: NDArray[np.float64]  # (n + 1,)
    theta: NDArray[np.float64]  # (D,)
    direction: NDArray[np.float64]  # (D,) right-hand side of the walk
    move: NDArray[np.float64]  # (D,) d theta / d s
    pull: NDArray[np.float64]  # (D,) gradient of the Lagrangian at theta
    change: NDArray[np.float64]  # (D,) d pull / d s
    bound: NDArray[np.int64]  # (D,) -1 at 0, 1 at 1, 0 free
    free: NDArray[np.int64]  # (D,)
    factor: NDArray[np.float64]  # (D * D,)
    weights: NDArray[np.float64]  # (D,) the parents' means


class BoxedForm(NamedTuple):
    """The oracle: the actions, and scratch."""

    listing: Listing
    box: Boxed
    highest: float = math.inf  # mean of a variable that is not the target (see `closed_form`)


def boxed(layout: Layout) -> Boxed:
    """Scratch for the nodes of a layout."""
    widest = int(np.diff(layout.ptr).max(initial=1))
    theta, direction, move, pull, change, weights = (np.zeros(widest) for _ in range(6))
    bound, free = (np.zeros(widest, dtype=np.int64) for _ in range(2))
    means, factor = np.zeros(len(layout.ptr) - 1), np.zeros(widest * widest)
    return Boxed(means, theta, direction, move, pull, change, bound, free, factor, weights)


@kernel
def solve_free(gram: Any, at: int, d: int, box: Any) -> None:
    """move = M_FF^-1 direction_F on the free coordinates, 0 elsewhere. Overwrites `change`."""
    free = 0
    for i in range(d):
        box.move[i] = 0.0
        if box.bound[i] == 0:
            box.free[free] = i
            free += 1
    if free == 0:
        return
    trace = 0.0
    for i in range(free):
        trace += gram[at + box.free[i] * d + box.free[i]]
    for i in range(free):
        for j in range(free):
            box.factor[i * free + j] = gram[at + box.free[i] * d + box.free[j]]
        # A singular M (no data yet in some direction) gets a hair, which leaves that direction to the box.
        box.factor[i * free + i] += 1e-14 * (trace / free) + 1e-30
    if not factorise(box.factor, free):
        return
    for i in range(free):
        box.change[i] = box.direction[box.free[i]]
    solve_factored(box.factor, free, box.change, box.change)
    for i in range(free):
        box.move[box.free[i]] = box.change[i]


@kernel
def along(gram: Any, at: int, d: int, box: Any) -> None:
    """change = direction - M move: how fast each coordinate's pull grows along the piece (0 on free ones)."""
    largest = 0.0
    for i in range(d):
        largest = max(largest, abs(box.move[i]))
    for i in range(d):
        total = box.direction[i]
        for j in range(d):
            total -= gram[at + i * d + j] * box.move[j]
        # Along a direction without data `move` is huge, and the rest of the sum is rounding that would walk in circles.
        rounding = 1e-14 * gram[at + i * d + i] * largest
        box.change[i] = total if box.bound[i] != 0 and abs(total) > rounding else 0.0


@kernel
def next_break(d: int, box: Any) -> tuple[float, int, int]:
    """How far the piece goes: (length, coordinate, its new bound; 0: it comes free)."""
    length, which, becomes = math.inf, -1, 0
    for i in range(d):
        room = math.inf
        if box.bound[i] == 0:
            if box.move[i] > 0.0:
                room = max(1.0 - box.theta[i], 0.0) / box.move[i]
            elif box.move[i] < 0.0:
                room = max(box.theta[i], 0.0) / -box.move[i]
            new = 1 if box.move[i] > 0 else -1
        else:
            # At 0 a coordinate stays while its pull is negative, at 1 while it is positive.
            pull, change = box.pull[i] * box.bound[i], box.change[i] * box.bound[i]
            if change < -_TINY:
                room = max(pull, 0.0) / -change
            new = 0
        if room < length:
            length, which, becomes = room, i, new
    return length, which, becomes


@kernel
def reach(gram: Any, at: int, d: int, center: Any, start: int, box: Any, rho: float) -> float:
    """The step along `move` at which ||theta - c||_M = rho; 0 if already outside, inf if never."""
    a = b = c = 0.0
    for i in range(d):
        gi, mi = box.theta[i] - center[start + i], box.move[i]
        for j in range(d):
            m = gram[at + i * d + j]
            a += mi * m * box.move[j]
            b += mi * m * (box.theta[j] - center[start + j])
            c += gi * m * (box.theta[j] - center[start + j])
    c -= rho * rho
    if c >= 0.0:
        return 0.0
    if a <= 0.0:
        return math.inf
    root = math.sqrt(max(b * b - a * c, 0.0))
    return -c / (b + root) if b > 0.0 else (root - b) / a


@kernel
def walk(gram: Any, at: int, d: int, center: Any, start: int, box: Any, end: float, rho: float) -> None:
    """Follow theta(s) for s up to `end`, or until the ellipsoid of radius rho is reached (rho < 0: ignore it).

    gram, at       M of the node is gram[at : at + d * d], row by row
    center, start  c is center[start : start + d]
    box            the state: theta, the bound of each coordinate, and its pull, which the walk moves on

    theta(s) minimises 1/2 ||theta - c||_M^2 - s e . theta over the box. Its conditions (Karush, Kuhn and Tucker) are,
    with the pull g = s e - M (theta - c): g = 0 on free coordinates, g <= 0 on those at 0, g >= 0 on those at 1. While
    the set F of free coordinates stays as it is, d theta_F / ds = M_FF^-1 e_F and the others stand still: a straight
    piece, along which the pulls of the others change at the steady rate e - M d theta / ds. A piece ends where the
    first of these happens, each found by a division or a square root:
    - a free coordinate meets 0 or 1: it is held there from now on;
    - the pull of a held one reaches 0: it comes free, for beyond that the conditions would fail;
    - s reaches `end`, or ||theta - c||_M reaches rho, a quadratic equation in the length of the step (`reach`): done.
    e . theta(s) never falls, and by duality theta(s) is the best point of the box in the ellipsoid on whose surface it
    lies; so the point where the ellipsoid of radius rho is met is the maximum. Which coordinates are at 0, free and at
    1 holds for one interval of s, so that no piece returns in exact arithmetic. With ties, rounding could walk in
    circles: `along` takes rates that are mere rounding for 0, and after 20 d + 20 pieces the walk ends where it is, at
    a point that is allowed, if perhaps not the best.
    """
    s = 0.0
    for _ in range(20 * d + 20):
        solve_free(gram, at, d, box)
        along(gram, at, d, box)
        length, which, becomes = next_break(d, box)
        stop = min(length, end - s)
        last = stop < length
        if rho >= 0.0:
            hit = reach(gram, at, d, center, start, box, rho)
            if hit <= stop:
                stop, last = hit, True
        if stop == math.inf:
            return  # nothing moves any more: the best corner of the box lies inside the ellipsoid
        s += stop
        for i in range(d):
            box.theta[i] = min(max(box.theta[i] + stop * box.move[i], 0.0), 1.0)
            box.pull[i] += stop * box.change[i]
        if last:
            return
        box.bound[which] = becomes
        if becomes != 0:
            box.theta[which] = 1.0 if becomes > 0 else 0.0
        box.pull[which] = 0.0


@kernel
def boxed_maximum(gram: Any, at: int, d: int, center: Any, start: int, rho: float, weights: Any, box: Any) -> float:
    """max of weights . theta; the arg max is left in box.theta[:d]. weights may have any sign."""
    outside = False
    for i in range(d):
        box.theta[i] = min(max(center[start + i], 0.0), 1.0)
        box.bound[i] = 0
        box.pull[i] = 0.0
        outside = outside or box.theta[i] != center[start + i]
    if outside:
        for i in range(d):
            total = 0.0
            for j in range(d):
                total += gram[at + i * d + j] * (center[start + j] - min(max(center[start + j], 0.0), 1.0))
            box.direction[i] = total
        walk(gram, at, d, center, start, box, 1.0, -1.0)
    for i in range(d):
        box.direction[i] = weights[i]
    walk(gram, at, d, center, start, box, math.inf, rho)
    return dot(weights, 0, box.theta, 0, d)


@kernel
def boxed_mean(layout: Any, box: Any, means: Any, theta: Any, gram: Any, rho: float, v: int) -> float:
    """The largest mean of node v that its region allows, given its parents' `means`."""
    start = layout.ptr[v]
    d = layout.ptr[v + 1] - start
    for j in range(d):
        box.weights[j] = means[layout.parent[start + j]]
    return boxed_maximum(gram, layout.square[v], d, theta, start, rho, box.weights, box)


def score_boxed(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """The recursion for every action over ellipsoid and box."""
    listing, box, means = oracle.listing, oracle.box, oracle.box.means
    means[0] = 1.0
    for i in range(len(listing.values)):
        at = members_before(listing.member, i, listing.first[i])
        for depth in range(listing.first[i], len(listing.order)):
            v = listing.order[depth]
            means[v], at = held_at(listing, i, depth, at, fixed)
            if math.isnan(means[v]):
                means[v] = boxed_mean(layout, box, means, state.slots["line"], state.pairs["gram"], rho[v], v)
                if v != layout.target:
                    means[v] = min(means[v], oracle.highest)
        listing.values[i] = means[layout.target]


score.of(BoxedForm)(score_boxed)
score_prepared.of(BoxedForm)(score_boxed)
prepare.of(BoxedForm)(prepare_nothing)
propose.of(BoxedForm)(pick_best)
