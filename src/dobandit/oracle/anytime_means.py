"""Ends of E[Y | do(S)] where the frontier is too wide for exact passes: interval arithmetic over the nodes' means.

m_X: the mean of X under do(S), in [low, high]; middle and half: the centre and half the width of a parent's interval.
line    m_X = theta . m, whose theta . middle runs over its ends over C_t, and theta . (m - middle) is at most
        sum_j half_j max |theta_j|
curve   E[f(theta . V)]: theta . V has a mean as a line does, and runs over the same with free parents anywhere in
        [0, 1]; the envelopes of f over that range, at that mean (`oracle.envelopes`)
table   the lowest and highest end of the patterns that what is set and known allows; [0, 1] where they are too many.
        A pattern's ends are the same for every action, and kept from one to the next (`Kept`)
Wider than the exact passes, which use that a pattern's probability is the same wherever it occurs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import by_type, inlined, kernel
from dobandit.estimation.anytime import NonePromised, SomePromised, cell_interval, find_centre, highest
from dobandit.estimation.statistics import Layout, named_parents
from dobandit.graph.ordering import offsets
from dobandit.model.link_kernels import IDENTITY
from dobandit.oracle.envelopes import envelope

_MOST_FREE = 12


class Kept(NamedTuple):
    """The ends of patterns that were worked out already, NaN for the others; those of node v begin at start[v]."""

    start: NDArray[np.int64]  # (n + 2,)
    ends: NDArray[np.float64]  # (patterns, 2)


def nothing_kept(layout: Layout) -> Kept:
    """Room for the patterns of every node that does not have too many."""
    sizes = [1 << count if count <= _MOST_FREE else 0 for count in named_parents(layout).tolist()]
    start = offsets(sizes)
    return Kept(start, np.full((int(start[-1]), 2), math.nan))


@kernel
def bound_listed(
    layout: Any, sets: Any, state: Any, order: Any, nats: float, kept: Any, fixed: Any, low: Any, high: Any
) -> None:
    """low[i, v], high[i, v]: the ends of the mean of each node of `order` (topological) under the i-th of many actions,
    where fixed[i] is set or known (NaN: free). nats = log(n / delta). Node after node: its set is the same for all."""
    for k in range(len(order)):
        v = order[k]
        for i in range(len(fixed)):
            low[i, 0] = high[i, 0] = 1.0
            low[i, v] = high[i, v] = fixed[i, v] if not math.isnan(fixed[i, v]) else 0.0
        if layout.ptr[v + 1] > layout.ptr[v] and not bound_promised(
            sets.kind, layout, sets, state, v, nats, fixed, low, high
        ):
            for i in range(len(fixed)):
                if math.isnan(fixed[i, v]):
                    bound_table(layout, sets, state, v, nats, kept, fixed[i], low[i], high[i])


@by_type
def bound_promised(
    kind: Any, layout: Any, sets: Any, state: Any, v: int, nats: float, fixed: Any, low: Any, high: Any
) -> Any:
    """The ends of the mean of a node with a promised link; False where it has none, or no weights make the rows
    likely."""


@bound_promised.of(NonePromised)
def bound_none(
    kind: Any, layout: Any, sets: Any, state: Any, v: int, nats: float, fixed: Any, low: Any, high: Any
) -> bool:
    return False


@bound_promised.of(SomePromised)
def bound_convex(
    kind: Any, layout: Any, sets: Any, state: Any, v: int, nats: float, fixed: Any, low: Any, high: Any
) -> bool:
    if not sets.promised[v]:
        return False
    centre = find_centre(layout, sets, state, v, nats)
    if centre.status == 0:
        return False
    bound_sizes(layout, sets, state, v, centre)
    straight, last = sets.links.code[v] == IDENTITY, -1
    for i in range(len(fixed)):
        if not math.isnan(fixed[i, v]):
            continue
        held = last >= 0 and held_alike(layout, v, fixed, last, i)
        if held and known_alike(layout, v, low, high, last, i):
            low[i, v], high[i, v] = low[last, v], high[last, v]
            continue
        if not straight and not held:
            for end in range(2):
                sets.ends[end] = end_of_sum(layout, sets, state, v, centre, fixed[i], low[i], high[i], end, True)
        bound_sum(layout, sets, state, v, centre, fixed[i], low[i], high[i])
        last = i
    return True


@inlined
def held_alike(layout: Any, v: int, fixed: Any, i: int, k: int) -> bool:
    """Whether two actions hold the same parents of v, to the same."""
    for at in range(layout.ptr[v], layout.ptr[v + 1]):
        one, other = fixed[i, layout.parent[at]], fixed[k, layout.parent[at]]
        if one != other and not (math.isnan(one) and math.isnan(other)):
            return False
    return True


@inlined
def known_alike(layout: Any, v: int, low: Any, high: Any, i: int, k: int) -> bool:
    """Whether the means of v's parents have the same ends under two actions."""
    for at in range(layout.ptr[v], layout.ptr[v + 1]):
        parent = layout.parent[at]
        if low[i, parent] != low[k, parent] or high[i, parent] != high[k, parent]:
            return False
    return True


@kernel
def bound_sizes(layout: Any, sets: Any, state: Any, v: int, centre: Any) -> None:
    """sets.sizes: max |theta_j| over C_t for every weight of v but the constant's."""
    start, d = layout.ptr[v], layout.ptr[v + 1] - layout.ptr[v]
    for j in range(d):
        sets.sizes[j] = 0.0
        for end in range(2):
            if layout.parent[start + j] > 0:
                for k in range(d):
                    sets.along[k] = 2.0 * end - 1.0 if k == j else 0.0
                sets.sizes[j] = max(sets.sizes[j], highest(layout, sets, state, v, centre, -1))


@kernel
def bound_table(
    layout: Any, sets: Any, state: Any, v: int, nats: float, kept: Any, fixed: Any, low: Any, high: Any
) -> None:
    """The lowest and highest end of v's patterns that can come up."""
    start, d = layout.ptr[v], layout.ptr[v + 1] - layout.ptr[v]
    free = 0
    for j in range(d):
        parent = layout.parent[start + j]
        if parent and math.isnan(fixed[parent]):
            free += 1
    low[v], high[v] = 0.0, 1.0
    if free > _MOST_FREE:
        return
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
        at, keeps = kept.start[v] + code, kept.start[v + 1] > kept.start[v]
        if keeps and not math.isnan(kept.ends[at, 0]):
            sets.ends[0], sets.ends[1] = kept.ends[at, 0], kept.ends[at, 1]
        else:
            cell_interval(sets, state, v, d, nats + (d - first) * math.log(2.0))
            if keeps:
                kept.ends[at, 0], kept.ends[at, 1] = sets.ends[0], sets.ends[1]
        low[v], high[v] = min(low[v], sets.ends[0]), max(high[v], sets.ends[1])


@kernel
def bound_sum(layout: Any, sets: Any, state: Any, v: int, centre: Any, fixed: Any, low: Any, high: Any) -> None:
    """The ends of a line's or a curve's mean; of a curve, sets.ends: between which numbers theta . V lies."""
    links = sets.links
    straight = links.code[v] == IDENTITY
    for end in range(2):
        p = mean = end_of_sum(layout, sets, state, v, centre, fixed, low, high, end, False)
        if not straight:
            p = envelope(links, v, sets.ends[0], sets.ends[1], mean, end)
        p = min(max(p, 0.0), 1.0)
        if end:
            high[v] = p
        else:
            low[v] = p


@kernel
def end_of_sum(
    layout: Any, sets: Any, state: Any, v: int, centre: Any, fixed: Any, low: Any, high: Any, end: int, anywhere: bool
) -> float:
    """The lowest (end = 0) or highest (end = 1) theta . m over C_t and all means m of the parents, or over all of their
    values, if they may be `anywhere`."""
    start, d = layout.ptr[v], layout.ptr[v + 1] - layout.ptr[v]
    sign = 2.0 * end - 1.0
    beside = size = 0.0
    for j in range(d):
        parent = layout.parent[start + j]
        free = anywhere and parent > 0 and math.isnan(fixed[parent])
        least, most = (0.0, 1.0) if free else (low[parent], high[parent])
        sets.along[j] = sign * 0.5 * (least + most)
        beside += 0.5 * (most - least) * sets.sizes[j]
        size += abs(sets.along[j])
    return sign * (highest(layout, sets, state, v, centre, -1) + beside) if size > 0.0 else 0.0
