"""A likelihood-ratio set of a node with many parents, within one ellipsoid: every end of it is then a formula.

C_t = {theta: L(theta) <= B} as in `estimation.anytime`, whose search for an end costs many Hessians.  c: the centre.
u = theta - c.  x = theta . V for the parents' pattern V.  rho: how far, in nats, L can rise above its tangent at c.
Each pattern's loss l bends at least as much as a parabola: l(x + h) >= l(x) + l'(x) h + m h^2 / 2 while |h| <= D.
With M = sum of m V V^T, L(theta) >= L(c) + (its slope) . u + u^T M u / 2 while |V . u| <= D for every pattern, so that
    C_t is within E = {u^T M u <= 2 rho}
if on E itself |V . u| is at most D: at the border of E, L is above B, and C_t is convex. On E
    |V . u| <= r (V^T M^-1 V)^1/2,  r^2 = 2 rho,
so the D of each pattern and M are found in turn, from D = 0 on, until the next D are no larger than those that made M.
From then on the D that follow from M hold on C_t, and make a larger M: a smaller E. Straight lines bend by at least one
for every row wherever they are, and need no such start. Where rows are too few for an end to the search, C_t may be
anything.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import inlined, kernel
from dobandit.estimation.log_likelihood import pattern_loss
from dobandit.estimation.statistics import dot, factorise, inverse_entry, invert_factor
from dobandit.model.link_kernels import IDENTITY

MANY_PARENTS = 12  # beyond, the constant not counted, a set is taken to be its ellipsoid
_TINY = 1e-6  # of the identity in M, or directions that no row has shown would have no end
_LEAST = 1e-3  # of D: differences of losses say nothing below it
_MORE = 1.1  # the D that make M, over those that the M before asks for
_TURNS = 20  # until D must have stopped growing
_AGAIN = 2  # larger M, once one was found: further ones change nothing in the third digit
_ROUNDING = 1.0 + 1e-9


@kernel
def ellipsoid(layout: Any, sets: Any, state: Any, v: int, room: float, most: float) -> float:
    """r, with M^-1 in sets.curve; inf where none was found. room: rho; most: R, the largest that a weight can be."""
    d, straight = layout.ptr[v + 1] - layout.ptr[v], sets.links.code[v] == IDENTITY
    for j in range(d):
        reach = most + abs(sets.centre[j])
        room += 0.5 * _TINY * reach * reach
    radius = math.sqrt(2.0 * room) * _ROUNDING
    possible, found = next_inverse(layout, sets, state, v, math.inf if straight else 0.0), straight
    adopt(sets, d)
    for _ in range(_TURNS):
        if found or not possible:
            break
        possible = next_inverse(layout, sets, state, v, _MORE * radius)
        found = possible and growth(layout, sets, state, v) <= _MORE * _MORE
        adopt(sets, d)
    if not found or not possible:
        return math.inf
    for _ in range(_AGAIN):
        if next_inverse(layout, sets, state, v, radius):
            adopt(sets, d)
    return radius


@inlined
def adopt(sets: Any, d: int) -> None:
    """The M^-1 that was just made is the one that counts."""
    for i in range(d * d):
        sets.curve[i] = sets.hess[i]


@kernel
def next_inverse(layout: Any, sets: Any, state: Any, v: int, radius: float) -> bool:
    """M^-1 in sets.hess, of the D that the one in sets.curve asks for: D = radius (V^T M^-1 V)^1/2, or radius itself
    where that is 0 or infinite. False where M has no inverse."""
    patterns, d = state.patterns, layout.ptr[v + 1] - layout.ptr[v]
    code, shift = sets.links.code[v], sets.links.parameter[v]
    for i in range(d):
        for j in range(i + 1):
            sets.hess[i * d + j] = _TINY if i == j else 0.0
    for k in range(patterns.used[v]):
        base, cell = patterns.row_ptr[v] + k * d, patterns.first[v] + k
        x = 0.0
        for j in range(d):
            sets.row[j] = patterns.rows[base + j]
            x += sets.row[j] * sets.centre[j]
        far = radius
        if 0.0 < radius < math.inf:
            far *= math.sqrt(squared(sets.curve, d, sets.row, sets.lean))
        bend = least_bend(code, shift, x, patterns.seen[cell], patterns.total[cell], far)
        for i in range(d):
            if sets.row[i] != 0.0:
                for j in range(i + 1):
                    sets.hess[i * d + j] += bend * sets.row[i] * sets.row[j]
    return inverted(sets.hess, d)


@kernel
def growth(layout: Any, sets: Any, state: Any, v: int) -> float:
    """By what factor V^T M^-1 V is larger than it was, at most, of any pattern: that in sets.hess over that in
    sets.curve."""
    patterns, d = state.patterns, layout.ptr[v + 1] - layout.ptr[v]
    most = 0.0
    for k in range(patterns.used[v]):
        for j in range(d):
            sets.row[j] = patterns.rows[patterns.row_ptr[v] + k * d + j]
        before = squared(sets.curve, d, sets.row, sets.lean)
        if before > 0.0:
            most = max(most, squared(sets.hess, d, sets.row, sets.lean) / before)
    return most


@inlined
def squared(inverse: Any, d: int, row: Any, work: Any) -> float:
    """row . inverse row."""
    for j in range(d):
        work[j] = 0.0
    for i in range(d):
        if row[i] != 0.0:
            for j in range(d):
                work[j] += row[i] * inverse[i * d + j]
    return dot(row, 0, work, 0, d)


@kernel
def inverted(a: Any, d: int) -> bool:
    """Overwrite a symmetric matrix (d, d, flat; its lower triangle) by its whole inverse; False where it has none."""
    if not factorise(a, d):
        return False
    invert_factor(a, d)
    for i in range(d):
        for j in range(i + 1):
            a[j * d + i] = inverse_entry(a, d, i, j)  # the upper triangle: L^-1 is still needed in the lower one
    for i in range(d):
        for j in range(i):
            a[i * d + j] = a[j * d + i]
    return True


@kernel
def least_bend(code: int, shift: float, x: float, seen: float, ones: float, far: float) -> float:
    """m: a pattern's loss rises above its tangent at x by at least m h^2 / 2, |h| <= far, x + h in the domain.

    The loss of the ones and that of the zeros each bend ever less along x, or ever more, or first more and then less.
    What they rise above the tangent, over h^2 / 2, is an average of how they bend on the way: least at h = 0 or at one
    of the ends.
    """
    zeros = seen - ones
    if code == IDENTITY:
        return ones * log_bend(x, min(far, 1.0 - x)) + zeros * log_bend(1.0 - x, min(far, x))
    far, bend = max(far, _LEAST), 0.0
    for part in range(2):
        count, of = (ones, ones) if part else (zeros, 0.0)
        if count > 0.0:
            loss, _, slope, least = pattern_loss(code, shift, x, count, of, 0.0)
            for end in range(2):
                h = far if end else -far
                there, _, _, _ = pattern_loss(code, shift, x + h, count, of, 0.0)
                least = min(least, 2.0 * (there - loss - slope * h) / (h * h))
            bend += max(least, 0.0)
    return bend


@inlined
def log_bend(p: float, h: float) -> float:
    """By how much -log(p + h) is above its tangent at p, over h^2 / 2; h >= 0."""
    q = h / p
    return (1.0 - 2.0 / 3.0 * q if q < _LEAST else 2.0 * (q - math.log1p(q)) / (q * q)) / (p * p)
