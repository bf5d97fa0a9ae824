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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.estimation.statistics import Layout, dot, factorise, named_parents, solve_factored
from dobandit.graph.ordering import offsets
from dobandit.model.link_kernels import link_slope, link_value

SOLVED, SINGULAR, SEPARABLE = 0, 1, 2
STATUS_WORDS = ("solved", "singular", "separable")
LARGEST = 30.0
LEAP = 2.0
_ITERATIONS = 50
# Beyond this many patterns a node is fitted again only once in a while; see `due`.
_CHEAP = 1024


class Patterns(NamedTuple):
    """Distinct parent patterns of every node, in one open-addressing table a node.

    Node v holds at most capacity[v] patterns; pattern k's parent values are the row
    `rows[row_ptr[v] + k * d : ... + d]`, its count and sum `seen[first[v] + k]` and `total[first[v] + k]`.
    """

    used: NDArray[np.int64]  # (n + 1,) patterns held
    capacity: NDArray[np.int64]  # (n + 1,)
    limited: NDArray[np.bool_]  # (n + 1,) whether there may be more patterns than that
    first: NDArray[np.int64]  # (n + 1,)
    row_ptr: NDArray[np.int64]  # (n + 1,)
    table_ptr: NDArray[np.int64]  # (n + 2,) hash slots
    table: NDArray[np.int64]  # pattern number or -1
    rows: NDArray[np.float64]
    seen: NDArray[np.float64]
    total: NDArray[np.float64]
    theta: NDArray[np.float64]  # like Statistics.theta
    status: NDArray[np.int64]  # (n + 1,)
    since: NDArray[np.int64]  # (n + 1,) rows since the last fit
    work: NDArray[np.float64]  # Newton's gradient, step, trial and Hessian


def start_patterns(layout: Layout, nonlinear: NDArray[np.bool_], most_rows: int) -> Patterns:
    """Room for the patterns of `most_rows` rows at nodes marked nonlinear; linear nodes need none."""
    sizes, possible = np.diff(layout.ptr), np.left_shift(1, np.minimum(named_parents(layout), 40))
    capacity = np.where(nonlinear, np.minimum(possible, max(most_rows, 1)), 0).astype(np.int64)
    slots = np.where(capacity > 0, np.exp2(np.ceil(np.log2(2.0 * np.maximum(capacity, 1)))), 0).astype(np.int64)
    widest = int(sizes.max(initial=1))
    return Patterns(
        used=np.zeros(len(sizes), dtype=np.int64),
        capacity=capacity,
        limited=(capacity > 0) & (capacity < possible),
        first=offsets(capacity)[:-1],
        row_ptr=offsets(capacity * sizes)[:-1],
        table_ptr=offsets(slots),
        table=np.full(int(slots.sum()), -1, dtype=np.int64),
        rows=np.zeros(int((capacity * sizes).sum())),
        seen=np.zeros(int(capacity.sum())),
        total=np.zeros(int(capacity.sum())),
        theta=np.zeros(int(sizes.sum())),
        status=np.where(sizes > 0, SINGULAR, SOLVED),
        since=np.zeros(len(sizes), dtype=np.int64),
        work=np.zeros(widest * (widest + 3) + 1),
    )


def grown(layout: Layout, old: Patterns, nonlinear: NDArray[np.bool_]) -> Patterns:
    """A copy of the patterns with room for twice as many; for learners that run without a horizon."""
    new = start_patterns(layout, nonlinear, 2 * int(old.capacity.max(initial=1)))
    sizes = np.diff(layout.ptr)
    for v in np.flatnonzero(nonlinear):
        d = sizes[v]
        for k in range(old.used[v]):
            row = old.rows[old.row_ptr[v] + k * d :][:d]
            slot = find_pattern(new, int(v), d, row)
            at = old.first[v] + k
            add_pattern(new, int(v), d, row, slot, old.seen[at], old.total[at])
    new.theta[:], new.status[:], new.since[:] = old.theta, old.status, old.since
    return new


def rows_that_fit(patterns: Patterns) -> int:
    """How many rows can be taken in for sure; 0: some node could run out of room at its next row."""
    return int((patterns.capacity - patterns.used).min(initial=1 << 40, where=patterns.limited))


@kernel
def find_pattern(patterns: Any, v: int, d: int, row: Any) -> int:
    """The hash slot that holds `row`, or the free one where it belongs."""
    start = patterns.table_ptr[v]
    mask = patterns.table_ptr[v + 1] - start - 1
    key = 2166136261  # FNV of 32 bits: a product fits in 64, so that nothing overflows, compiled or not
    for j in range(d):
        key = ((key ^ int(row[j] > 0.5)) * 16777619) & 0xFFFFFFFF
    slot = (key ^ (key >> 15)) & mask
    while True:
        k = patterns.table[start + slot]
        if k < 0:
            return int(slot)
        base = patterns.row_ptr[v] + k * d
        same = True
        for j in range(d):
            if patterns.rows[base + j] != row[j]:
                same = False
                break
        if same:
            return int(slot)
        slot = (slot + 1) & mask


@kernel
def add_pattern(patterns: Any, v: int, d: int, row: Any, slot: int, count: float, total: float) -> None:
    """Add to the pattern at `slot`, making it if it is new."""
    k = patterns.table[patterns.table_ptr[v] + slot]
    if k < 0:
        k = patterns.used[v]
        patterns.used[v] += 1
        patterns.table[patterns.table_ptr[v] + slot] = k
        base = patterns.row_ptr[v] + k * d
        for j in range(d):
            patterns.rows[base + j] = row[j]
    patterns.seen[patterns.first[v] + k] += count
    patterns.total[patterns.first[v] + k] += total


@inlined
def counts_of(patterns: Any, v: int, d: int, row: Any) -> tuple[float, float]:
    """How often a pattern was seen, and how often X was 1 then."""
    k = patterns.table[patterns.table_ptr[v] + find_pattern(patterns, v, d, row)]
    at = patterns.first[v] + k
    return (patterns.seen[at], patterns.total[at]) if k >= 0 else (0.0, 0.0)


@kernel
def add_to_patterns(layout: Any, patterns: Any, v: int, row: Any, x: float) -> None:
    d = layout.ptr[v + 1] - layout.ptr[v]
    add_pattern(patterns, v, d, row, find_pattern(patterns, v, d, row), 1.0, x)
    patterns.since[v] += 1


@kernel
def due(patterns: Any, v: int) -> bool:
    """Whether v should be fitted again: always while that is cheap, else once for each _CHEAP-th part of its patterns
    in new rows, so that the cost of a row stays bounded."""
    return patterns.since[v] * _CHEAP >= patterns.used[v] and patterns.since[v] > 0


@kernel
def scores(
    layout: Any, links: Any, patterns: Any, v: int, theta: Any, likely: bool, ridge: float, grad: Any, hess: Any
) -> None:
    """grad = sum_p (s_p - c_p f) w V_p - ridge theta, hess = sum_p c_p f' w V_p V_p^T + ridge I (lower triangle), f and
    f' at V_p . theta. w = 1: the paper's equation; likely: w = f' / (f (1 - f)), that of maximum likelihood."""
    d = layout.ptr[v + 1] - layout.ptr[v]
    for i in range(d):
        grad[i] = -ridge * theta[i]
        for j in range(i + 1):
            hess[i * d + j] = ridge if i == j else 0.0
    for k in range(patterns.used[v]):
        base, cell = patterns.row_ptr[v] + k * d, patterns.first[v] + k
        x = dot(patterns.rows, base, theta, 0, d)
        p, slope = link_value(links, v, x), link_slope(links, v, x)
        p = min(max(p, 1e-6), 1.0 - 1e-6) if likely else p
        rest, curve = patterns.total[cell] - patterns.seen[cell] * p, patterns.seen[cell] * slope
        if likely:
            rest, curve = rest * slope / (p * (1.0 - p)), curve * slope / (p * (1.0 - p))
        for i in range(d):
            if patterns.rows[base + i] != 0.0:
                grad[i] += rest * patterns.rows[base + i]
                for j in range(i + 1):
                    hess[i * d + j] += curve * patterns.rows[base + i] * patterns.rows[base + j]


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
def fit_node(layout: Any, links: Any, patterns: Any, v: int) -> None:
    """Solve v's score equation from its last estimate; leaves theta and a status."""
    start, d = layout.ptr[v], layout.ptr[v + 1] - layout.ptr[v]
    theta = patterns.theta[start : start + d]
    grad, step = patterns.work[0:d], patterns.work[d : 2 * d]
    trial, hess = patterns.work[2 * d : 3 * d], patterns.work[3 * d : 3 * d + d * d]
    patterns.since[v] = 0
    rows = 0.0
    for k in range(patterns.used[v]):
        rows += patterns.seen[patterns.first[v] + k]
    tolerance = 1e-13 * max(rows, 1.0)
    if patterns.status[v] == SEPARABLE:  # new data may have mixed the classes: start from the middle again
        for j in range(d):
            theta[j] = 0.0
    regular = True
    scores(layout, links, patterns, v, theta, False, 0.0, grad, hess)
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
        if not damped(layout, links, patterns, v, theta, step, slope, trial, grad, hess):
            break
    patterns.status[v] = SOLVED if regular else SINGULAR
    length = dot(theta, 0, theta, 0, d)
    if not math.sqrt(length) <= LARGEST * (1.0 - 1e-9) or runs_away(links, patterns, v, d, theta, 100.0 * tolerance):
        patterns.status[v] = SEPARABLE


@kernel
def runs_away(links: Any, patterns: Any, v: int, d: int, theta: Any, least: float) -> bool:
    """Whether the score vanished because f went flat at a pattern that showed one value of X only."""
    for k in range(patterns.used[v]):
        at, base = patterns.first[v] + k, patterns.row_ptr[v] + k * d
        if patterns.total[at] == 0.0 or patterns.total[at] == patterns.seen[at]:
            x = dot(patterns.rows, base, theta, 0, d)
            if patterns.seen[at] * link_slope(links, v, x) <= least:
                return True
    return False


@kernel
def longest_share(patterns: Any, v: int, d: int, step: Any) -> float:
    """The share of `step`, at most 1, that moves no pattern's V . theta by more than LEAP: beyond, f may be flat."""
    total = 0.0
    for j in range(d):
        total += abs(step[j])
    if total <= LEAP:
        return 1.0
    longest = LEAP
    for k in range(patterns.used[v]):
        base = patterns.row_ptr[v] + k * d
        x = dot(patterns.rows, base, step, 0, d)
        longest = max(longest, abs(x))
    return LEAP / longest


@kernel
def damped(
    layout: Any, links: Any, patterns: Any, v: int, theta: Any, step: Any, slope: float, trial: Any, grad: Any,
    hess: Any,
) -> bool:  # fmt: skip
    """Move theta along `step`, halving while it overshoots and stopping at |theta| = LARGEST; False when stuck. Leaves
    `scores` of where it ends."""
    d = layout.ptr[v + 1] - layout.ptr[v]
    share = longest_share(patterns, v, d, step)
    for _ in range(40):
        length = 0.0
        for j in range(d):
            trial[j] = theta[j] + share * step[j]
            length += trial[j] * trial[j]
        length = math.sqrt(length)
        if length > LARGEST:
            for j in range(d):
                trial[j] *= LARGEST / length
        scores(layout, links, patterns, v, trial, False, 0.0, grad, hess)
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
