"""What a mixture says of every parent pattern of every node, and how sure it is of a sum over patterns.

D(v): how much E[Y] moves with p_X(v), left in `influence` by the oracle.  p: the mixture's mean; p_k: member k's.
A node's share in the variance of E[Y] is
    sum over members k of weight_k (q_k + b_k^2),
q_k: the variance of sum_v D(v) p_k(v) under member k alone (straight: g' A g with g = sum_v D(v) v; curved: with f'
in g; table: sum_v D(v)^2 Var p(v)).  b_k = sum_v D(v) (p_k(v) - p(v)): how far the members disagree.
Half of the weight is always the table's here: rows of a few patterns speak for a line, however wrong it is elsewhere,
and an action that was unlucky in its first rounds would never be played again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.estimation.least_squares import dot, pattern_row
from dobandit.estimation.mixture import (
    BACK,
    CURVED,
    EVEN,
    OWN_LINES,
    STRAIGHT,
    TABLE,
    context_bits,
    line_of,
    member_means,
    segments_at,
)
from dobandit.model.link_kernels import link_slope

_LITTLE = 1e-6  # members with less weight are passed over
AT_LEAST = 0.5  # weight of the table in a variance, where a node has one


class PatternTables(NamedTuple):
    """Numbers by pattern; those of depth i begin at table_ptr[i]. Bit j: the j-th parent that is not the constant."""

    mix: Any  # the estimator, which knows the members of each node
    table_ptr: NDArray[np.int64]  # (depths + 1,)
    member: NDArray[np.float64]  # (patterns, members) what each member says
    mean: NDArray[np.float64]  # p
    slope: NDArray[np.float64]  # f' of the curve
    spread: NDArray[np.float64]  # Var p of the table
    influence: NDArray[np.float64]  # D
    row: NDArray[np.float64]  # (D,) scratch
    along: NDArray[np.float64]  # (D,) scratch
    folded: NDArray[np.float64]  # (patterns of the widest node,) scratch
    out: NDArray[np.float64]  # (5,) scratch


def pattern_tables(mix: Any, table_ptr: NDArray[np.int64], widest: int) -> PatternTables:
    """Tables for nodes with at most `widest` parents."""
    patterns = int(table_ptr[-1])
    mean, slope, spread, influence = np.zeros((4, patterns))
    row, along = np.zeros((2, max(widest, 1)))
    folded = np.zeros(int(np.diff(table_ptr).max(initial=1)))
    return PatternTables(
        mix, table_ptr, np.zeros((patterns, 4)), mean, slope, spread, influence, row, along, folded, np.zeros(5)
    )


@kernel
def fill_tables(layout: Any, order: Any, tables: Any, state: Any) -> None:
    """What the members say of every pattern of every node."""
    mix, row = tables.mix, tables.row
    for depth in range(len(order)):
        v = order[depth]
        start = layout.ptr[v]
        d, base = layout.ptr[v + 1] - start, tables.table_ptr[depth]
        for pattern in range(tables.table_ptr[depth + 1] - base):
            at = base + pattern
            if d == 0:  # it cannot happen by itself
                tables.mean[at] = 0.0
                continue
            pattern_row(layout, v, pattern, row)
            member_means(layout, mix, state, v, row, tables.out)
            for k in range(4):
                tables.member[at, k] = tables.out[k]
            tables.mean[at] = tables.out[4]
            if mix.has[v, CURVED]:
                x = dot(row, 0, state.slots["curve"], start, d)
                tables.slope[at] = link_slope(mix.links, v, x)
            if mix.has[v, TABLE]:
                table_spread(layout, tables, state, v, d, at, state.cells["seen"][state.nodes["cell"][v] + pattern])


@kernel
def table_spread(layout: Any, tables: Any, state: Any, v: int, d: int, at: int, seen: float) -> None:
    """The variance of a cell: that of its counts, and what the imagined rows take over from the others' variance."""
    row = tables.row
    p = tables.member[at, TABLE]
    p = (p * seen + 2.0) / (seen + 4.0)  # as Wilson's interval does: a few unlucky rows must not look certain
    prior = BACK / (seen + BACK + EVEN)
    others = 0.0
    if tables.mix.has[v, STRAIGHT]:
        others = quadratic(state.pairs["inverse"], layout.square[v], row, d)
    elif tables.mix.has[v, OWN_LINES]:
        segments = tables.mix.segments
        others = quadratic(state.pairs["inverse"], segments.layout.square[line_of(segments, layout, v, row)], row, d)
    tables.spread[at] = p * (1.0 - p) / (seen + BACK + EVEN + 1.0) + prior * prior * min(others, 0.25)


@inlined
def node_variance(layout: Any, tables: Any, state: Any, v: int, depth: int) -> float:
    """The share of a free node in the variance of E[Y]."""
    base, end = tables.table_ptr[depth], tables.table_ptr[depth + 1]
    b0 = b1 = b2 = b3 = cells = total = 0.0
    for at in range(base, end):  # five sums at once: one alone would be waited for at each step
        influence, mean, member = tables.influence[at], tables.mean[at], tables.member[at]
        b0 += influence * (member[0] - mean)
        b1 += influence * (member[1] - mean)
        b2 += influence * (member[2] - mean)
        b3 += influence * (member[3] - mean)
        cells += influence * influence * tables.spread[at]
    apart = (b0, b1, b2, b3)
    for k in range(4):
        share = state.weight[v, k]
        if tables.mix.has[v, TABLE]:
            share = (1.0 - AT_LEAST) * share + (AT_LEAST if k == TABLE else 0.0)
        if share < _LITTLE:
            continue
        if k == TABLE:
            spread = cells
        elif k == OWN_LINES:
            spread = own_lines_variance(layout, tables, state, v, base, end)
        else:
            spread = line_variance(layout, tables, state, v, base, end, k == CURVED)
        total += share * (spread + apart[k] * apart[k])
    return total


@inlined
def line_variance(layout: Any, tables: Any, state: Any, v: int, base: int, end: int, curved: bool) -> float:
    """g' A g of a straight line or a curve."""
    for i in range(end - base):
        tables.folded[i] = tables.influence[base + i] * (tables.slope[base + i] if curved else 1.0)
    fold(layout, tables, v, end - base)
    covariance = state.pairs["covariance"] if curved else state.pairs["inverse"]
    return max(quadratic(covariance, layout.square[v], tables.along, layout.ptr[v + 1] - layout.ptr[v]), 0.0)


@inlined
def own_lines_variance(layout: Any, tables: Any, state: Any, v: int, base: int, end: int) -> float:
    """The sum of g' A g over the segments that matter: one, where the context is known."""
    segments, size, total = tables.mix.segments, end - base, 0.0
    context = context_bits(segments, layout, v)
    rest = (size - 1) & ~context
    part = 0  # the context's bits of a pattern; the segments come in the order of their numbers
    for segment in range(segments_at(segments, layout, v)):
        some, i = False, 0
        while not some:  # only the segment's own patterns: a pass over all for each segment would take 4^parents
            some = tables.influence[base + part + i] != 0.0
            i = (i - rest) & rest
            if i == 0:
                break
        if some:
            for j in range(size):
                tables.folded[j] = tables.influence[base + j] if (j & context) == part else 0.0
            fold(layout, tables, v, size)
            square = segments.layout.square[segments.first[v] + segment]
            total += max(
                quadratic(state.pairs["inverse"], square, tables.along, layout.ptr[v + 1] - layout.ptr[v]), 0.0
            )
        part = (part - context) & context
    return total


@inlined
def fold(layout: Any, tables: Any, v: int, size: int) -> None:
    """along = sum over patterns of folded(pattern) times its row of parents: they are summed out one after another."""
    start, folded, g = layout.ptr[v], tables.folded, tables.along
    d = layout.ptr[v + 1] - start
    first = 1 if d > 0 and layout.parent[start] == 0 else 0
    for j in range(first, d):
        size //= 2
        total = 0.0
        for i in range(size):
            total += folded[2 * i + 1]
            folded[i] = folded[2 * i] + folded[2 * i + 1]
        g[j] = total
    if first:
        g[0] = folded[0]


@inlined
def quadratic(matrix: Any, at: int, g: Any, d: int) -> float:
    total = 0.0
    for i in range(d):
        for j in range(d):
            total += g[i] * matrix[at + i * d + j] * g[j]
    return total
