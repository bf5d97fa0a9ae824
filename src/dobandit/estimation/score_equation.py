"""BGLM-Estimate (paper, Algorithm 2): theta solves sum_i (X_i - f(V_i . theta)) V_i = 0.

Rows with the same parents are one pattern with a count c and a sum s of X, so the equation reads
sum_p (s_p - c_p f(V_p . theta)) V_p = 0 and a round's cost depends on the number of patterns, not of rounds.
Damped Newton from the last estimate: a step that leaps (V . theta of some pattern moves by more than LEAP) is cut, one
that overshoots (the gradient along it turns round by more than half) is halved. Statuses: solved; singular (some
direction was never seen: theta stays 0 there); separable (the data ask for infinite weights: the estimate stops where
f is flat, or at the ball |theta| <= LARGEST).
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import kernel
from dobandit.estimation.belief import SEPARABLE, SINGULAR, SOLVED
from dobandit.estimation.least_squares import dot, factorise, solve_factored
from dobandit.model.link_kernels import link_slope, link_value

STATUS_WORDS = ("solved", "singular", "separable")
LARGEST = 30.0
LEAP = 2.0
_ITERATIONS = 50
# Beyond this many patterns a node is fitted again only once in a while; see `due`.
_CHEAP = 1024


@kernel
def due(state: Any, v: int) -> bool:
    """Whether v should be fitted again: always while that is cheap, else once for each _CHEAP-th part of its patterns
    in new rows, so that the cost of a row stays bounded."""
    return state.nodes["since"][v] * _CHEAP >= state.nodes["cells"][v] and state.nodes["since"][v] > 0


@kernel
def scores(
    layout: Any, links: Any, state: Any, v: int, theta: Any, likely: bool, ridge: float, grad: Any, hess: Any
) -> None:
    """grad = sum_p (s_p - c_p f) w V_p - ridge theta, hess = sum_p c_p f' w V_p V_p^T + ridge I (lower triangle), f and
    f' at V_p . theta. w = 1: the paper's equation; likely: w = f' / (f (1 - f)), that of maximum likelihood."""
    d = layout.ptr[v + 1] - layout.ptr[v]
    for i in range(d):
        grad[i] = -ridge * theta[i]
        for j in range(i + 1):
            hess[i * d + j] = ridge if i == j else 0.0
    for k in range(state.nodes["cells"][v]):
        base, cell = state.nodes["bit"][v] + k * d, state.nodes["cell"][v] + k
        if state.cells["seen"][cell] == 0.0:
            continue
        x = dot(state.bits, base, theta, 0, d)
        p, slope = link_value(links, v, x), link_slope(links, v, x)
        p = min(max(p, 1e-6), 1.0 - 1e-6) if likely else p
        rest, curve = state.cells["total"][cell] - state.cells["seen"][cell] * p, state.cells["seen"][cell] * slope
        if likely:
            rest, curve = rest * slope / (p * (1.0 - p)), curve * slope / (p * (1.0 - p))
        for i in range(d):
            if state.bits[base + i] != 0.0:
                grad[i] += rest * state.bits[base + i]
                for j in range(i + 1):
                    hess[i * d + j] += curve * state.bits[base + i] * state.bits[base + j]


@kernel
def newton_step(hess: Any, d: int, grad: Any, step: Any) -> bool:
    """step = hess^-1 grad; False if hess, which is factorised in place, is singular.

    A singular one gets a hair on its diagonal: the gradient lies in its range, so directions never seen do not move.
    """
    largest = 0.0
    for i in range(d):
        largest = max(largest, hess[i * d + i])
    regular = largest > 0.0 or d == 0
    for i in range(d):
        hess[i * d + i] += 1e-12 * largest + 1e-300
    if not factorise(hess, d):
        return False
    for i in range(d):
        if hess[i * d + i] * hess[i * d + i] < 1e-9 * largest:
            regular = False
    solve_factored(hess, d, grad, step)
    return regular


@kernel
def fit_node(layout: Any, links: Any, state: Any, v: int) -> None:
    """Solve v's score equation from its last estimate; leaves theta and a status."""
    start, d = layout.ptr[v], layout.ptr[v + 1] - layout.ptr[v]
    theta = state.slots["curve"][start : start + d]
    grad, step = state.work[0:d], state.work[d : 2 * d]
    trial, hess = state.work[2 * d : 3 * d], state.work[3 * d : 3 * d + d * d]
    state.nodes["since"][v] = 0
    rows = 0.0
    for k in range(state.nodes["cells"][v]):
        rows += state.cells["seen"][state.nodes["cell"][v] + k]
    tolerance = 1e-13 * max(rows, 1.0)
    if state.nodes["status"][v] == SEPARABLE:  # new data may have mixed the classes: start from the middle again
        for j in range(d):
            theta[j] = 0.0
    regular = True
    scores(layout, links, state, v, theta, False, 0.0, grad, hess)
    for turn in range(_ITERATIONS):
        worst = 0.0
        for j in range(d):
            worst = max(worst, abs(grad[j]))
        if turn == 0 or worst > tolerance:
            regular = newton_step(hess, d, grad, step)
        if worst <= tolerance:
            break
        slope = dot(grad, 0, step, 0, d)
        if not slope > 0.0:
            break
        if not damped(layout, links, state, v, theta, step, slope, trial, grad, hess):
            break
    state.nodes["status"][v] = SOLVED if regular else SINGULAR
    length = dot(theta, 0, theta, 0, d)
    if not math.sqrt(length) <= LARGEST * (1.0 - 1e-9) or runs_away(links, state, v, d, theta, 100.0 * tolerance):
        state.nodes["status"][v] = SEPARABLE


@kernel
def runs_away(links: Any, state: Any, v: int, d: int, theta: Any, least: float) -> bool:
    """Whether the score vanished because f went flat at a pattern that showed one value of X only."""
    for k in range(state.nodes["cells"][v]):
        at, base = state.nodes["cell"][v] + k, state.nodes["bit"][v] + k * d
        alike = state.cells["total"][at] == 0.0 or state.cells["total"][at] == state.cells["seen"][at]
        if alike and state.cells["seen"][at] > 0.0:
            x = dot(state.bits, base, theta, 0, d)
            if state.cells["seen"][at] * link_slope(links, v, x) <= least:
                return True
    return False


@kernel
def longest_share(state: Any, v: int, d: int, step: Any) -> float:
    """The share of `step`, at most 1, that moves no pattern's V . theta by more than LEAP: beyond, f may be flat."""
    total = 0.0
    for j in range(d):
        total += abs(step[j])
    if total <= LEAP:
        return 1.0
    longest = LEAP
    for k in range(state.nodes["cells"][v]):
        if state.cells["seen"][state.nodes["cell"][v] + k] == 0.0:
            continue
        x = dot(state.bits, state.nodes["bit"][v] + k * d, step, 0, d)
        longest = max(longest, abs(x))
    return LEAP / longest


@kernel
def damped(
    layout: Any, links: Any, state: Any, v: int, theta: Any, step: Any, slope: float, trial: Any, grad: Any,
    hess: Any,
) -> bool:  # fmt: skip
    """Move theta along `step`, halving while it overshoots and stopping at |theta| = LARGEST; False when stuck. Leaves
    `scores` of where it ends."""
    d = layout.ptr[v + 1] - layout.ptr[v]
    share = longest_share(state, v, d, step)
    for _ in range(40):
        length = 0.0
        for j in range(d):
            trial[j] = theta[j] + share * step[j]
            length += trial[j] * trial[j]
        length = math.sqrt(length)
        if length > LARGEST:
            for j in range(d):
                trial[j] *= LARGEST / length
        scores(layout, links, state, v, trial, False, 0.0, grad, hess)
        ahead = dot(grad, 0, step, 0, d)
        # A step cut at the ball says nothing about the data unless the score still points outwards there.
        if ahead >= (0.0 if length > LARGEST else -0.5 * slope):
            change = 0.0
            for j in range(d):
                change = max(change, abs(trial[j] - theta[j]))
                theta[j] = trial[j]
            return change > 1e-15 and length <= LARGEST
        share *= 0.5
    return False
