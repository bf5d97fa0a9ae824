"""One bonus for E[Y | do(S)] on graphs too wide for exact passes: nodes count as independent given their own causes.

For a node with few parents m_X = sum_v P(v) p_X(v), P(v) the product of the parents' means: exact where its parents are
independent, or where p_X is a straight line, else an approximation.  A node with many parents is taken by its straight
line, or by its curve at the parents' means.
q_X of `joint_means` is what `pattern_tables` makes of D_X(v) = P(v).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.estimation.mixture import CURVED
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.model.link_kernels import link_slope, link_value
from dobandit.oracle.frontier import parents_by_depth
from dobandit.oracle.joint_means import Walk, score_by_means, score_prepared_means, settle, walk_of
from dobandit.oracle.listing import Listing, pick_best, prepare, propose, score, score_prepared
from dobandit.oracle.pattern_tables import PatternTables, fill_tables, node_variance, pattern_tables

MOST_TABULATED = 6  # parents


class JointField(NamedTuple):
    """The oracle: actions, and scratch."""

    listing: Listing
    walk: Walk
    line: NDArray[np.float64]  # by slot: the weights of nodes with many parents
    levels: NDArray[np.float64]  # scratch of `contract`
    tables: PatternTables


def joint_field(graph: CausalGraph, listing: Listing, mix: Any) -> JointField:
    """The oracle for the actions of a list."""
    counts = [len(parents) for parents in parents_by_depth(graph, listing.order)]
    table_ptr = offsets([1 << d if d <= MOST_TABULATED else 0 for d in counts])
    widest = int(np.diff(graph.arrays.parent_ptr).max(initial=1))
    line, levels = np.zeros(len(graph.arrays.parent)), np.zeros(2 << MOST_TABULATED)
    return JointField(listing, walk_of(graph, listing), line, levels, pattern_tables(mix, table_ptr, widest))


@kernel
def fill_field(oracle: Any, layout: Any, state: Any) -> None:
    """What is believed of every pattern, and the weights where there are too many of them."""
    order, tables = oracle.listing.order, oracle.tables
    fill_tables(layout, order, tables, state)
    for depth in range(len(order)):
        if tables.table_ptr[depth] == tables.table_ptr[depth + 1]:
            curved = tables.mix.has[order[depth], CURVED]
            for slot in range(layout.ptr[order[depth]], layout.ptr[order[depth] + 1]):
                oracle.line[slot] = state.patterns.theta[slot] if curved else state.theta[slot]


@inlined
def contract(layout: Any, oracle: Any, v: int, base: int, patterns: int) -> float:
    """sum_v P(v) p(v), one parent after another: level j + 1 is level j with its lowest bit averaged out.

    Leaves level j of 2^(d - j) numbers in `levels`, one after another, which the way back needs.
    """
    levels, mean, means = oracle.levels, oracle.tables.mean, oracle.walk.means
    slot = layout.ptr[v]
    if patterns > 1 and layout.parent[slot] == 0:
        slot += 1
    for i in range(patterns):
        levels[i] = mean[base + i]
    here, size = 0, patterns
    while size > 1:
        m = min(max(means[layout.parent[slot]], 0.0), 1.0)
        after, size = here + size, size // 2
        for i in range(size):
            zero, one = levels[here + 2 * i], levels[here + 2 * i + 1]
            levels[after + i] = zero + m * (one - zero)
        here = after
        slot += 1
    return levels[here]


@inlined
def expand(layout: Any, oracle: Any, v: int, base: int, patterns: int) -> None:
    """The way back of `contract`: P(v) of every pattern into `influence`, and how v's mean moves with each parent's."""
    levels, influence, walk = oracle.levels, oracle.tables.influence, oracle.walk
    slot, size, here = layout.ptr[v + 1] - 1, 1, 2 * patterns - 2
    influence[base] = 1.0
    while size < patterns:
        here -= 2 * size
        m = min(max(walk.means[layout.parent[slot]], 0.0), 1.0)
        slope = 0.0
        for i in range(size - 1, -1, -1):
            share = influence[base + i]
            slope += share * (levels[here + 2 * i + 1] - levels[here + 2 * i])
            influence[base + 2 * i + 1] = share * m
            influence[base + 2 * i] = share * (1.0 - m)
        walk.slope[slot] = slope
        size *= 2
        slot -= 1


@inlined
def settle_wide(oracle: Any, layout: Any, state: Any, v: int) -> None:
    """A node with too many parents for a table: its line, or its curve at the parents' means."""
    walk, means, line, links, start = (
        oracle.walk,
        oracle.walk.means,
        oracle.line,
        oracle.tables.mix.links,
        layout.ptr[v],
    )
    d, at, curved = layout.ptr[v + 1] - start, layout.square[v], oracle.tables.mix.has[v, CURVED]
    covariance = state.covariance if curved else state.stats.inverse
    x = spread = 0.0
    for i in range(d):
        m = means[layout.parent[start + i]]
        x += line[start + i] * m
        for j in range(d):
            spread += m * covariance[at + i * d + j] * means[layout.parent[start + j]]
    slope = link_slope(links, v, x) if curved else 1.0
    for slot in range(start, start + d):
        walk.slope[slot] = slope * line[slot]
    means[v], walk.spread[v] = link_value(links, v, x) if curved else x, slope * slope * max(spread, 0.0)


@settle.of(JointField)
def settle_field(oracle: Any, layout: Any, state: Any, depth: int, spreads: bool) -> None:
    """The mean, and how it moves and spreads."""
    v, tables = oracle.listing.order[depth], oracle.tables
    base, end = tables.table_ptr[depth], tables.table_ptr[depth + 1]
    if end == base:
        settle_wide(oracle, layout, state, v)
        return
    oracle.walk.means[v] = contract(layout, oracle, v, base, end - base)
    if spreads:
        expand(layout, oracle, v, base, end - base)
        oracle.walk.spread[v] = node_variance(layout, tables, state, v, depth)


@prepare.of(JointField)
def prepare_joint_field(oracle: Any, layout: Any, state: Any, rho: Any) -> None:
    """Tables, and weights of nodes with many parents."""
    fill_field(oracle, layout, state)


score.of(JointField)(score_by_means)
score_prepared.of(JointField)(score_prepared_means)
propose.of(JointField)(pick_best)
