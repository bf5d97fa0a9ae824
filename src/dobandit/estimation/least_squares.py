"""Least squares of each node's value on its parents', row by row (`belief` has the notation).

M^+ follows each row by a rank-one update (Sherman-Morrison inside M's range, Meyer 1973 when the row is new to it),
so a row costs O(d^2) whatever t is, and a singular M needs no special case. Rounding is wiped out every
REFRESH rows by a Cholesky factorisation: M^+ = (M + cN)^-1 - N/c.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import inlined, kernel

REFRESH = 1024
# Squared share of a row that must lie outside M's range to count as new; 0/1 rows are far from this on both sides.
NEW_DIRECTION = 1e-9


@inlined
def dot(a: Any, i: int, b: Any, j: int, d: int) -> float:
    """a[i : i + d] . b[j : j + d]"""
    total = 0.0
    for k in range(d):
        total += a[i + k] * b[j + k]
    return total


@inlined
def gather(layout: Any, values: Any, was_set: Any, v: int, row: Any) -> bool:
    """Copy v's parent values into `row`; False if the round says nothing about v: it was set, or a value is missing."""
    if was_set[v] or math.isnan(values[v]):
        return False
    start = layout.ptr[v]
    for j in range(layout.ptr[v + 1] - start):
        row[j] = values[layout.parent[start + j]]
        if math.isnan(row[j]):
            return False
    return True


@inlined
def pattern_row(layout: Any, v: int, pattern: int, row: Any) -> None:
    """row = the values of v's parents, of which it has some, in a pattern. Bit j: the j-th that is not the constant."""
    start = layout.ptr[v]
    first = 1 if layout.parent[start] == 0 else 0
    row[0] = 1.0
    for j in range(first, layout.ptr[v + 1] - start):
        row[j] = float((pattern >> (j - first)) & 1)


@kernel
def add_round(layout: Any, state: Any, values: Any, was_set: Any) -> None:
    """Take a round into the sums of every node that it says something about."""
    for v in range(1, len(layout.ptr) - 1):
        if gather(layout, values, was_set, v, state.row):
            add_row(layout, state, v, state.row, values[v])


@kernel
def add_row(layout: Any, state: Any, v: int, row: Any, x: float) -> None:
    """Take the pair (row, x) into v's sums, inverse and least-squares weights."""
    d, start, at = layout.ptr[v + 1] - layout.ptr[v], layout.ptr[v], layout.square[v]
    inverse, k = state.pairs["inverse"], state.work
    beta = 1.0
    for i in range(d):
        state.slots["rhs"][start + i] += x * row[i]
        total = 0.0
        base = at + i * d
        for j in range(d):
            state.pairs["gram"][base + j] += row[i] * row[j]
            total += inverse[base + j] * row[j]
        k[i] = total  # M^+ row
        beta += total * row[i]
    if state.nodes["rank"][v] == d or not widen(layout, state, v, row, beta):
        for i in range(d):
            base = at + i * d
            scaled = k[i] / beta
            for j in range(d):
                inverse[base + j] -= scaled * k[j]
    state.nodes["rows"][v] += 1
    state.nodes["fresh"][v] += 1
    if state.nodes["fresh"][v] >= REFRESH:
        refresh(layout, state, v)
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += inverse[at + i * d + j] * state.slots["rhs"][start + j]
        state.slots["line"][start + i] = total


@kernel
def widen(layout: Any, state: Any, v: int, row: Any, beta: float) -> bool:
    """Meyer's update for a row with a part outside M's range; False, and nothing done, if there is none.

    The scratch begins with k = M^+ row; beta = 1 + row . k.
    """
    d, at = layout.ptr[v + 1] - layout.ptr[v], layout.square[v]
    inverse, null = state.pairs["inverse"], state.pairs["null"]
    k, u = state.work[0:d], state.work[d : 2 * d]
    size = outside = 0.0
    for i in range(d):
        u[i] = dot(null, at + i * d, row, 0, d)
        size += row[i] * row[i]
        outside += u[i] * u[i]
    if outside <= NEW_DIRECTION * size:
        return False
    for i in range(d):
        base = at + i * d
        for j in range(d):
            inverse[base + j] += beta * u[i] * u[j] / (outside * outside) - (k[i] * u[j] + u[i] * k[j]) / outside
            null[base + j] -= u[i] * u[j] / outside
    state.nodes["rank"][v] += 1
    if state.nodes["rank"][v] == d:
        null[at : at + d * d] = 0.0  # what is left of it is rounding, and so is part of the inverse: factorise M now
        state.nodes["fresh"][v] = REFRESH
    return True


@kernel
def refresh(layout: Any, state: Any, v: int) -> None:
    """Recompute v's M^+ from its sums: M^+ = (M + cN)^-1 - N/c, by Cholesky."""
    d, at = layout.ptr[v + 1] - layout.ptr[v], layout.square[v]
    state.nodes["fresh"][v] = 0
    trace = 0.0
    for i in range(d):
        trace += state.pairs["gram"][at + i * d + i]
    if trace <= 0.0:
        return
    c = trace / d
    factor = state.work[0 : d * d]
    for i in range(d * d):
        factor[i] = state.pairs["gram"][at + i] + c * state.pairs["null"][at + i]
    if not factorise(factor, d):
        return  # rounding made it indefinite: the updated inverse is the better one
    invert_factor(factor, d)
    for i in range(d):
        for j in range(i + 1):
            total = inverse_entry(factor, d, i, j) - state.pairs["null"][at + i * d + j] / c
            state.pairs["inverse"][at + i * d + j] = total
            state.pairs["inverse"][at + j * d + i] = total


@kernel
def factorise(a: Any, d: int) -> bool:
    """Cholesky: overwrite the lower triangle of a (d, d, flat) by L with L L^T = a; False if not positive definite."""
    for j in range(d):
        pivot = a[j * d + j]
        for m in range(j):
            pivot -= a[j * d + m] * a[j * d + m]
        if not pivot > 0.0:
            return False
        pivot = math.sqrt(pivot)
        a[j * d + j] = pivot
        for i in range(j + 1, d):
            total = a[i * d + j]
            for m in range(j):
                total -= a[i * d + m] * a[j * d + m]
            a[i * d + j] = total / pivot
    return True


@inlined
def solve_factored(factor: Any, d: int, rhs: Any, out: Any) -> None:
    """out = (F F^T)^-1 rhs; they may be one array."""
    for i in range(d):
        total = rhs[i]
        for m in range(i):
            total -= factor[i * d + m] * out[m]
        out[i] = total / factor[i * d + i]
    for i in range(d - 1, -1, -1):
        total = out[i]
        for m in range(i + 1, d):
            total -= factor[m * d + i] * out[m]
        out[i] = total / factor[i * d + i]


@kernel
def invert_factor(a: Any, d: int) -> None:
    """Overwrite the lower triangle L by L^-1."""
    for j in range(d):
        a[j * d + j] = 1.0 / a[j * d + j]
        for i in range(j + 1, d):
            total = 0.0
            for m in range(j, i):
                total -= a[i * d + m] * a[m * d + j]
            a[i * d + j] = total / a[i * d + i]


@inlined
def inverse_entry(factor: Any, d: int, i: int, j: int) -> float:
    """Entry (i, j), j <= i, of (L L^T)^-1, from L^-1 in the lower triangle of `factor`."""
    total = 0.0
    for m in range(i, d):
        total += factor[m * d + i] * factor[m * d + j]
    return total


@kernel
def reaches_lambda(layout: Any, state: Any, v: int, threshold: float) -> bool:
    """Whether lambda_min(M_v) >= threshold: M - threshold * I has a Cholesky factor."""
    d, at = layout.ptr[v + 1] - layout.ptr[v], layout.square[v]
    if state.nodes["rows"][v] < threshold or state.nodes["rank"][v] < d:
        return False
    factor = state.work[0 : d * d]
    for i in range(d * d):
        factor[i] = state.pairs["gram"][at + i]
    # A hair below the threshold, so that a lambda_min of exactly the threshold counts.
    for i in range(d):
        factor[i * d + i] -= threshold * (1.0 - 1e-12)
    return factorise(factor, d)
