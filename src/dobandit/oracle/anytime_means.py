"""Ends of E[Y | do(S)] where the frontier is too wide for exact passes: interval arithmetic over the nodes' means.

m_X: the mean of X under do(S), in [low, high]; middle and half: the centre and half the width of a parent's interval.
line    m_X = theta . m, whose theta . middle runs over its ends over C_t, and theta . (m - middle) is at most
        sum_j half_j max |theta_j|
curve   f(theta . V) for every pattern V: the same with free parents anywhere in [0, 1], then f
table   the lowest and highest end of the patterns that what is set and known allows; [0, 1] where they are too many
Wider than the exact passes, which use that a pattern's probability is the same wherever it occurs.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.compiled import kernel
from dobandit.estimation.anytime import find_centre, highest, table_interval
from dobandit.estimation.mle import find_pattern
from dobandit.model.link_kernels import IDENTITY, link_value

_MOST_FREE = 12


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
    layout: Any, sets: Any, state: Any, order: Any, nats: float, sizes: Any, fixed: Any, low: Any, high: Any
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
            bound_mean(layout, sets, state, v, nats, sizes, fixed, low, high)


@kernel
def bound_mean(
    layout: Any, sets: Any, state: Any, v: int, nats: float, sizes: Any, fixed: Any, low: Any, high: Any
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
    patterns, row = state.patterns, sets.row
    first = 1 if layout.parent[start] == 0 else 0
    low[v], high[v] = 1.0, 0.0
    for pattern in range(1 << free):
        bit = 0
        for j in range(d):
            parent = layout.parent[start + j]
            if parent == 0 or not math.isnan(fixed[parent]):
                row[j] = fixed[parent] if parent else 1.0
            else:
                row[j] = float((pattern >> bit) & 1)
                bit += 1
        k = patterns.table[patterns.table_ptr[v] + find_pattern(patterns, v, d, row)]
        seen = patterns.seen[patterns.first[v] + k] if k >= 0 else 0.0
        ones = patterns.total[patterns.first[v] + k] if k >= 0 else 0.0
        table_interval(seen, ones, nats + (d - first) * math.log(2.0), sets.ends)
        low[v], high[v] = min(low[v], sets.ends[0]), max(high[v], sets.ends[1])
    return None


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
