"""Ends of E[Y | do(S)] where the frontier is too wide for exact passes: interval arithmetic over the nodes' means.

m_X: the mean of X under do(S), in [low, high]; middle and half: the centre and half the width of a parent's interval.
line    m_X = theta . m, whose theta . middle runs over its ends over C_t, and theta . (m - middle) is at most
        sum_j half_j max |theta_j|
curve   f(theta . V) for every pattern V: the same with free parents anywhere in [0, 1], then f
table   the lowest and highest end of the patterns that what is set and known allows; [0, 1] where they are too many.
        A pattern's ends are the same for every action, and kept from one to the next (`Kept`)
Wider than the exact passes, which use that a pattern's probability is the same wherever it occurs.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.estimation.anytime import find_centre, highest, table_interval
from dobandit.estimation.mle import find_pattern
from dobandit.estimation.statistics import Layout
from dobandit.model.link_kernels import IDENTITY, link_value

_MOST_FREE = 12


class Kept(NamedTuple):
    """The ends of patterns that were worked out already, NaN for the others; those of node v begin at start[v]."""

    start: NDArray[np.int64]  # (n + 2,)
    ends: NDArray[np.float64]  # (patterns, 2)


def nothing_kept(layout: Layout) -> Kept:
    """Room for the patterns of every node that does not have too many."""
    named = np.diff(layout.ptr) - [int(0 in layout.parent[a:b]) for a, b in pairwise(layout.ptr.tolist())]
    sizes = [1 << count if count <= _MOST_FREE else 0 for count in named.tolist()]
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Kept(start, np.full((int(start[-1]), 2), math.nan))


@kernel
def bound_sizes(layout: Any, sets: Any, state: Any, order: Any, nats: float, sizes: Any) -> None:
    """sizes[slot]: max |theta_j| over C_t for every weight of the promised nodes of `order`; nats = log(n / delta)."""
    for i in range(len(order)):
        v = order[i]
        start, d = layout.ptr[v], layout.ptr[v + 1] - layout.ptr[v]
        if not sets.promised[v]:
            continue
        centre = find_centre(layout, sets, state, v, nats)
        for j in range(d):
            sizes[start + j] = 0.0
            for end in range(2):
                if centre.status == 1 and layout.parent[start + j] > 0:
                    for k in range(d):
                        sets.along[k] = 2.0 * end - 1.0 if k == j else 0.0
                    sizes[start + j] = max(sizes[start + j], highest(layout, sets, state, v, centre, -1))


@kernel
def bound_means(
    layout: Any, sets: Any, state: Any, order: Any, nats: float, sizes: Any, kept: Any, fixed: Any, low: Any, high: Any
) -> None:
    """low[v], high[v]: the ends of the mean of each node of `order` (topological), given what is set or known."""
    low[0] = high[0] = 1.0
    for i in range(len(order)):
        v = order[i]
        if not math.isnan(fixed[v]):
            low[v] = high[v] = fixed[v]
        elif layout.ptr[v + 1] == layout.ptr[v]:
            low[v] = high[v] = 0.0
        else:
            bound_mean(layout, sets, state, v, nats, sizes, kept, fixed, low, high)


@kernel
def bound_listed(
    layout: Any, sets: Any, state: Any, order: Any, nats: float, sizes: Any, kept: Any, ids: Any, to: Any, context: Any,
    fixed: Any, low: Any, high: Any,
) -> None:  # fmt: skip
    """low[i, v], high[i, v]: the ends of `bound_means` under the i-th of many actions. fixed: scratch."""
    for i in range(len(ids)):
        for v in range(len(context)):
            fixed[v] = context[v]
        for j in range(ids.shape[1]):
            if ids[i, j] > 0:
                fixed[ids[i, j]] = to[i, j]
        bound_means(layout, sets, state, order, nats, sizes, kept, fixed, low[i], high[i])


@kernel
def bound_mean(
    layout: Any, sets: Any, state: Any, v: int, nats: float, sizes: Any, kept: Any, fixed: Any, low: Any, high: Any
) -> None:
    start, d = layout.ptr[v], layout.ptr[v + 1] - layout.ptr[v]
    low[v], high[v] = 0.0, 1.0
    if sets.promised[v]:
        centre = find_centre(layout, sets, state, v, nats)
        if centre.status == 1:
            return bound_sum(layout, sets, state, v, centre, sizes, fixed, low, high)
    free = 0
    for j in range(d):
        parent = layout.parent[start + j]
        if parent and math.isnan(fixed[parent]):
            free += 1
    if free > _MOST_FREE:
        return None
    row = sets.row
    first = 1 if layout.parent[start] == 0 else 0
    low[v], high[v] = 1.0, 0.0
    for pattern in range(1 << free):
        bit = code = 0
        for j in range(d):
            parent = layout.parent[start + j]
            if parent == 0 or not math.isnan(fixed[parent]):
                row[j] = fixed[parent] if parent else 1.0
            else:
                row[j] = float((pattern >> bit) & 1)
                bit += 1
            if j >= first and row[j] != 0.0:
                code |= 1 << (j - first)
        at = kept.start[v] + code
        if kept.start[v + 1] == kept.start[v]:
            pattern_ends(sets, state, v, d, first, nats)
        elif math.isnan(kept.ends[at, 0]):
            pattern_ends(sets, state, v, d, first, nats)
            kept.ends[at, 0], kept.ends[at, 1] = sets.ends[0], sets.ends[1]
        else:
            sets.ends[0], sets.ends[1] = kept.ends[at, 0], kept.ends[at, 1]
        low[v], high[v] = min(low[v], sets.ends[0]), max(high[v], sets.ends[1])
    return None


@kernel
def pattern_ends(sets: Any, state: Any, v: int, d: int, first: int, nats: float) -> None:
    """sets.ends: the ends of P(v = 1) for the parents' pattern in sets.row, by its counts alone."""
    patterns = state.patterns
    k = patterns.table[patterns.table_ptr[v] + find_pattern(patterns, v, d, sets.row)]
    seen = patterns.seen[patterns.first[v] + k] if k >= 0 else 0.0
    ones = patterns.total[patterns.first[v] + k] if k >= 0 else 0.0
    table_interval(seen, ones, nats + (d - first) * math.log(2.0), sets.ends)


@kernel
def bound_sum(
    layout: Any, sets: Any, state: Any, v: int, centre: Any, sizes: Any, fixed: Any, low: Any, high: Any
) -> None:
    """The ends of a line's or a curve's mean."""
    start, d, links = layout.ptr[v], layout.ptr[v + 1] - layout.ptr[v], sets.links
    straight = links.code[v] == IDENTITY
    beside = 0.0
    for j in range(d):
        parent = layout.parent[start + j]
        known = parent == 0 or not math.isnan(fixed[parent])
        least, most = (low[parent], high[parent]) if straight or known else (0.0, 1.0)
        sets.row[j] = 0.5 * (least + most)
        beside += 0.5 * (most - least) * sizes[start + j]
    size = 0.0
    for j in range(d):
        size += abs(sets.row[j])
    for end in range(2):
        sign = 2.0 * end - 1.0
        x = 0.0
        if size > 0.0:
            for j in range(d):
                sets.along[j] = sign * sets.row[j]
            x = sign * (highest(layout, sets, state, v, centre, -1) + beside)
        p = min(max(link_value(links, v, x), 0.0), 1.0)
        if end:
            high[v] = p
        else:
            low[v] = p
