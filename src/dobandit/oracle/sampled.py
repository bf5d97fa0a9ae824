"""The best action of a model drawn from what is believed (Thompson's rule): E[Y | do(S)] under a sample of every node.

z: standard normal numbers, from the round's uniform ones.  A: the covariance of a node's weights, A = L L'.
straight   theta + L z, and of it theta . v for each pattern v
curved     f((theta + L z) . v)
own lines  like straight, with the same z in every segment: a round is in one of them
table      p(v) + sqrt(Var p(v)) z, held within [0, 1]: a number per pattern
Where a node is a mixture, one member is drawn by its weight, and speaks for the node in this round. The plain index, of
intervals and of what looks best, is that of the oracle inside.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import by_type, inlined, kernel
from dobandit.estimation.belief import Layout
from dobandit.estimation.least_squares import factorise
from dobandit.estimation.mixture import CURVED, OWN_LINES, STRAIGHT, TABLE, context_bits, segments_at
from dobandit.graph.ordering import offsets
from dobandit.model.link_kernels import link_value
from dobandit.oracle.joint_pattern import JointPattern, walk_patterns
from dobandit.oracle.listing import IDLE, Listing, pick, propose, score
from dobandit.oracle.mean_field import MeanField, StraightLines, fill_nodes, score_means
from dobandit.oracle.pattern_tables import PatternTables, fill_tables

_MOST_DRAWN = 64  # numbers per node: patterns beyond share them
_TINY = 1e-12


class Sampled(NamedTuple):
    """The oracle: one with a joint bonus, and room for a sample."""

    listing: Listing
    joint: Any  # JointPattern or MeanField
    first: NDArray[np.int64]  # (depths,) where a node's numbers begin among the round's
    room: NDArray[np.int64]  # (depths,) how many there are, the first of which draws the member
    factor: NDArray[np.float64]  # (D * D,) scratch: L
    line: NDArray[np.float64]  # (D,) scratch


def sampled(layout: Layout, joint: Any) -> Sampled:
    """The oracle around another."""
    sizes = np.diff(layout.ptr)[joint.listing.order]
    room = 1 + np.maximum(sizes, np.minimum(np.diff(joint.tables.table_ptr), _MOST_DRAWN))
    first = 1 + offsets(room)[:-1]
    widest = max(int(sizes.max(initial=1)), 1)
    line, factor = np.zeros(widest), np.zeros(widest * widest)
    return Sampled(joint.listing, joint, first, room, factor, line)


def draws_of(oracle: Sampled) -> int:
    """How many random numbers a round takes: one for ties, then those of every node."""
    return int(1 + oracle.room.sum())


@kernel
def normal(u: float) -> float:
    """The standard normal number at the quantile u (Acklam's approximation: nine digits)."""
    u = min(max(u, _TINY), 1.0 - _TINY)
    if 0.02425 <= u <= 0.97575:
        q = u - 0.5
        r = q * q
        top = ((-39.69683028665376 * r + 220.9460984245205) * r - 275.9285104469687) * r + 138.3577518672690
        top = (top * r - 30.66479806614716) * r + 2.506628277459239
        low = ((-54.47609879822406 * r + 161.5858368580409) * r - 155.6989798598866) * r + 66.80131188771972
        return q * top / ((low * r - 13.28068155288572) * r + 1.0)
    q = math.sqrt(-2.0 * math.log(min(u, 1.0 - u)))
    top = ((-0.007784894002430293 * q - 0.3223964580411365) * q - 2.400758277161838) * q - 2.549732539343734
    top = (top * q + 4.374664141464968) * q + 2.938163982698783
    low = ((0.007784695709041462 * q + 0.3224671290700398) * q + 2.445134137142996) * q + 3.754408661907416
    tail = top / (low * q + 1.0)
    return tail if u < 0.5 else -tail


@kernel
def draw_line(s: Any, at: int, d: int, theta: Any, covariance: Any, draws: Any, first: int) -> None:
    """s.line = theta + L z; theta itself where rounding has left A without a factor."""
    for i in range(d * d):
        s.factor[i] = covariance[at + i]
    sound = factorise(s.factor, d)
    for i in range(d):
        total = theta[i]
        if sound:
            for j in range(i + 1):
                total += s.factor[i * d + j] * normal(draws[first + j])
        s.line[i] = total


@by_type
def draw_node(tables: Any, s: Any, layout: Any, state: Any, v: int, depth: int, draws: Any) -> None:
    """Draw the mechanism of a node."""


@draw_node.of(StraightLines)
def draw_straight(tables: Any, s: Any, layout: Any, state: Any, v: int, depth: int, draws: Any) -> None:
    """Weights into s.line."""
    start, end = layout.ptr[v], layout.ptr[v + 1]
    theta, first = state.slots["line"][start:end], s.first[depth] + 1
    draw_line(s, layout.square[v], end - start, theta, state.pairs["inverse"], draws, first)


@draw_node.of(PatternTables)
def draw_mixed(tables: Any, s: Any, layout: Any, state: Any, v: int, depth: int, draws: Any) -> None:
    draw_patterns(s, layout, tables, state, v, depth, draws)


@kernel
def draw_patterns(s: Any, layout: Any, tables: Any, state: Any, v: int, depth: int, draws: Any) -> None:
    """Put a sample of every pattern of v into tables.mean; s.line is that of the weights, where it is a line."""
    start, base, end = layout.ptr[v], tables.table_ptr[depth], tables.table_ptr[depth + 1]
    d, at = layout.ptr[v + 1] - start, layout.square[v]
    first, room = s.first[depth], s.room[depth]
    member, left = -1, draws[first]
    for k in range(4):
        if tables.mix.has[v, k] and (member < 0 or left >= 0.0):
            member = k
            left -= state.weight[v, k]
    if member == TABLE:
        for cell in range(base, end):
            z = normal(draws[first + 1 + (cell - base) % (room - 1)])
            p = tables.member[cell, TABLE] + math.sqrt(tables.spread[cell]) * z
            tables.mean[cell] = min(max(p, 0.0), 1.0)
        return
    if member == OWN_LINES:
        segments, lines = tables.mix.segments, tables.mix.segments.layout
        context = context_bits(segments, layout, v)
        rest = (end - base - 1) & ~context
        part = 0  # the context's bits of a pattern
        for segment in range(segments_at(segments, layout, v)):
            line = segments.first[v] + segment
            theta = state.slots["line"][lines.ptr[line] : lines.ptr[line] + d]
            draw_line(s, lines.square[line], d, theta, state.pairs["inverse"], draws, first + 1)
            i = 0
            while True:
                tables.mean[base + part + i] = min(max(line_at(s, layout, v, part + i), 0.0), 1.0)
                i = (i - rest) & rest
                if i == 0:
                    break
            part = (part - context) & context
        return
    if member == STRAIGHT:
        draw_line(s, at, d, state.slots["line"][start : start + d], state.pairs["inverse"], draws, first + 1)
    else:
        draw_line(s, at, d, state.slots["curve"][start : start + d], state.pairs["covariance"], draws, first + 1)
    for cell in range(base, end):
        x = line_at(s, layout, v, cell - base)
        p = link_value(tables.mix.links, v, x) if member == CURVED else x
        tables.mean[cell] = min(max(p, 0.0), 1.0)


@inlined
def line_at(s: Any, layout: Any, v: int, pattern: int) -> float:
    """The drawn line at a pattern of v's parents."""
    start = layout.ptr[v]
    constant = 1 if layout.parent[start] == 0 else 0
    x = s.line[0] if constant else 0.0
    for j in range(constant, layout.ptr[v + 1] - start):
        if (pattern >> (j - constant)) & 1:
            x += s.line[j]
    return x


@by_type
def score_drawn(joint: Any, s: Any, layout: Any, state: Any, fixed: Any, draws: Any) -> None:
    """Draw a model, and leave E[Y] of every action under it in the list."""


@score_drawn.of(JointPattern)
def score_drawn_patterns(joint: Any, s: Any, layout: Any, state: Any, fixed: Any, draws: Any) -> None:
    """Probabilities of every pattern, and one pass over the joint distribution."""
    order = joint.listing.order
    fill_tables(layout, order, joint.tables, state)
    for depth in range(len(order)):
        if layout.ptr[order[depth] + 1] > layout.ptr[order[depth]]:
            draw_patterns(s, layout, joint.tables, state, order[depth], depth, draws)
    walk_patterns(joint, layout, state, 0.0, fixed)


@score_drawn.of(MeanField)
def score_drawn_field(joint: Any, s: Any, layout: Any, state: Any, fixed: Any, draws: Any) -> None:
    """Probabilities of every pattern, weights of nodes without a table, and one pass with nodes as if independent."""
    order, tables = joint.listing.order, joint.tables
    fill_nodes(tables, joint, layout, state)
    for depth in range(len(order)):
        v = order[depth]
        start = layout.ptr[v]
        d = layout.ptr[v + 1] - start
        if d > 0:
            draw_node(tables, s, layout, state, v, depth, draws)
            if tables.table_ptr[depth + 1] == tables.table_ptr[depth]:
                for j in range(d):
                    joint.line[start + j] = s.line[j]
    score_means(joint, layout, state, 0.0, fixed)


@propose.of(Sampled)
def propose_sampled(s: Any, layout: Any, state: Any, rho: Any, fixed: Any, draws: Any) -> int:
    """The best action of the drawn model; without optimism or draws, the index of the oracle inside."""
    if len(draws) == 0 or rho[layout.target] <= 0.0:
        score(s.joint, layout, state, rho, fixed)
    else:
        score_drawn(s.joint, s, layout, state, fixed, draws)
    return pick(s.listing.values, draws[0]) if len(draws) > 0 else IDLE
