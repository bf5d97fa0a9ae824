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

from dobandit.estimation.belief import SEPARABLE, SINGULAR, SOLVED
from dobandit.estimation.cholesky import dot, factorise, solve_factored
from dobandit.kernels import inlined, kernel
from dobandit.model.link_kernels import slope_at, value_at

STATUS_WORDS = ("solved", "singular", "separable")
LARGEST = 30.0
LEAP = 2.0
_ITERATIONS = 50
# Beyond this many patterns a node is fitted again only once in a while; see `due`.
_CHEAP = 1024
# Where the scratch of a fit begins, in units of d: the gradient, a step, weights, weights on trial, the Hessian.
GRAD, STEP, THETA, TRIAL, HESS = 0, 1, 2, 3, 4


@inlined
def due(node: Any) -> bool:
    """Whether a node should be fitted again: always while that is cheap, else once for each _CHEAP-th part of its
    patterns in new rows, so that the cost of a row stays bounded."""
    return node["since"] * _CHEAP >= node["cells"] and node["since"] > 0


@kernel
def scores(node: Any, cells: Any, bits: Any, points: Any, work: Any, theta: int, likely: bool, ridge: float) -> None:
    """At the weights that begin at `theta` of the scratch: at GRAD sum_p (s_p - c_p f) w V_p - ridge theta, at HESS
    sum_p c_p f' w V_p V_p^T + ridge I (lower triangle), f and f' at V_p . theta. w = 1: the paper's equation; likely:
    w = f' / (f (1 - f)), that of maximum likelihood."""
    d = node["width"]
    hess = HESS * d
    for i in range(d):
        work[i] = -ridge * work[theta + i]
        for j in range(i + 1):
            work[hess + i * d + j] = ridge if i == j else 0.0
    for k in range(node["cells"]):
        base, cell = node["bit"] + k * d, cells[node["cell"] + k]
        if cell["seen"] == 0.0:
            continue
        x = dot(bits, base, work, theta, d)
        p, slope = value_at(node, points, x), slope_at(node, points, x)
        p = min(max(p, 1e-6), 1.0 - 1e-6) if likely else p
        rest, curve = cell["total"] - cell["seen"] * p, cell["seen"] * slope
        if likely:
            rest, curve = rest * slope / (p * (1.0 - p)), curve * slope / (p * (1.0 - p))
        for i in range(d):
            if bits[base + i] != 0.0:
                work[i] += rest * bits[base + i]
                for j in range(i + 1):
                    work[hess + i * d + j] += curve * bits[base + i] * bits[base + j]


@inlined
def newton_step(work: Any, d: int) -> bool:
    """STEP = HESS^-1 GRAD; False if HESS, which is factorised in place, is singular.

    A singular one gets a hair on its diagonal: the gradient lies in its range, so directions never seen do not move.
    """
    largest, hess = 0.0, HESS * d
    for i in range(d):
        largest = max(largest, work[hess + i * d + i])
    regular = largest > 0.0 or d == 0
    for i in range(d):
        work[hess + i * d + i] += 1e-12 * largest + 1e-300
    if not factorise(work, hess, d):
        return False
    for i in range(d):
        if work[hess + i * d + i] * work[hess + i * d + i] < 1e-9 * largest:
            regular = False
    solve_factored(work, hess, d, GRAD * d, STEP * d)
    return regular


@kernel
def fit_node(node: Any, slots: Any, cells: Any, bits: Any, points: Any, work: Any) -> None:
    """Solve a node's score equation from its last estimate; leaves theta and a status."""
    start, d = node["start"], node["width"]
    theta, step = THETA * d, STEP * d
    node["since"] = 0
    rows = 0.0
    for k in range(node["cells"]):
        rows += cells[node["cell"] + k]["seen"]
    tolerance = 1e-13 * max(rows, 1.0)
    for j in range(d):  # where data were separable new ones may have mixed the classes: start from the middle again
        work[theta + j] = 0.0 if node["status"] == SEPARABLE else slots[start + j]["curve"]
    regular = True
    scores(node, cells, bits, points, work, theta, False, 0.0)
    for turn in range(_ITERATIONS):
        worst = 0.0
        for j in range(d):
            worst = max(worst, abs(work[j]))
        if turn == 0 or worst > tolerance:
            regular = newton_step(work, d)
        if worst <= tolerance:
            break
        slope = dot(work, 0, work, step, d)
        if not slope > 0.0:
            break
        if not damped(node, cells, bits, points, work, slope):
            break
    for j in range(d):
        slots[start + j]["curve"] = work[theta + j]
    node["status"] = SOLVED if regular else SINGULAR
    far = not math.sqrt(dot(work, theta, work, theta, d)) <= LARGEST * (1.0 - 1e-9)
    if far or runs_away(node, cells, bits, points, work, 100.0 * tolerance):
        node["status"] = SEPARABLE


@inlined
def runs_away(node: Any, cells: Any, bits: Any, points: Any, work: Any, least: float) -> bool:
    """Whether the score vanished because f went flat at a pattern that showed one value of X only."""
    d, found = node["width"], False
    for k in range(node["cells"]):
        cell = cells[node["cell"] + k]
        alike = cell["total"] == 0.0 or cell["total"] == cell["seen"]
        if alike and cell["seen"] > 0.0:
            x = dot(bits, node["bit"] + k * d, work, THETA * d, d)
            found = found or cell["seen"] * slope_at(node, points, x) <= least
    return found


@inlined
def longest_share(node: Any, cells: Any, bits: Any, work: Any) -> float:
    """The share of the step, at most 1, that moves no pattern's V . theta by more than LEAP: beyond, f may be flat."""
    d, total, longest = node["width"], 0.0, LEAP
    for j in range(d):
        total += abs(work[STEP * d + j])
    if total <= LEAP:
        return 1.0
    for k in range(node["cells"]):
        if cells[node["cell"] + k]["seen"] != 0.0:
            longest = max(longest, abs(dot(bits, node["bit"] + k * d, work, STEP * d, d)))
    return LEAP / longest


@kernel
def damped(node: Any, cells: Any, bits: Any, points: Any, work: Any, slope: float) -> bool:
    """Move theta along the step, halving while it overshoots and stopping at |theta| = LARGEST; False when stuck.
    Leaves `scores` of where it ends."""
    d, share = node["width"], longest_share(node, cells, bits, work)
    theta, trial, step = THETA * d, TRIAL * d, STEP * d
    for _ in range(40):
        for j in range(d):
            work[trial + j] = work[theta + j] + share * work[step + j]
        length = math.sqrt(dot(work, trial, work, trial, d))
        if length > LARGEST:
            for j in range(d):
                work[trial + j] *= LARGEST / length
        scores(node, cells, bits, points, work, trial, False, 0.0)
        ahead = dot(work, 0, work, step, d)
        # A step cut at the ball says nothing about the data unless the score still points outwards there.
        if ahead >= (0.0 if length > LARGEST else -0.5 * slope):
            change = 0.0
            for j in range(d):
                change = max(change, abs(work[trial + j] - work[theta + j]))
                work[theta + j] = work[trial + j]
            return change > 1e-15 and length <= LARGEST
        share *= 0.5
    return False
