"""One bonus for E[Y | do(S)] on graphs too wide for exact passes: nodes count as independent given their own causes.

m: means under do(S), one pass forwards.  For a node with few parents m_X = sum_v P(v) p_X(v), P(v) the product of the
parents' means: exact where its parents are independent, or where p_X is a straight line, else an approximation.  A node
with many parents is taken by its straight line, or by its curve at the parents' means.
w_X = dE[Y] / dm_X, one pass backwards.  D_X(v) = w_X P(v), of which `pattern_tables` makes the variance.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.estimation.mixture import CURVED
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.link_kernels import link_slope, link_value
from dobandit.oracle.frontier import parents_by_depth
from dobandit.oracle.listing import Listing, members_before, pick_best, prepare, propose, score, score_first
from dobandit.oracle.pattern_tables import PatternTables, fill_tables, node_variance, pattern_tables

MOST_TABULATED = 6  # parents


class JointField(NamedTuple):
    """The oracle: actions, and scratch by id."""

    listing: Listing
    means: NDArray[np.float64]
    weight: NDArray[np.float64]  # w
    free: NDArray[np.bool_]
    line: NDArray[np.float64]  # by slot: the weights of nodes with many parents
    levels: NDArray[np.float64]  # scratch of `contract`
    tables: PatternTables


def joint_field(graph: CausalGraph, listing: Listing, mix: Any) -> JointField:
    """The oracle for the actions of a list."""
    counts = [len(parents) for parents in parents_by_depth(graph, listing.order)]
    table_ptr = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum([1 << d if d <= MOST_TABULATED else 0 for d in counts], out=table_ptr[1:])
    means, weight = np.zeros((2, len(graph) + 1))
    widest = int(np.diff(graph.arrays.parent_ptr).max(initial=1))
    free = np.zeros(len(graph) + 1, dtype=np.bool_)
    line = np.zeros(int(graph.arrays.parent_ptr[-1]))
    levels = np.zeros(2 << MOST_TABULATED)
    return JointField(listing, means, weight, free, line, levels, pattern_tables(mix, table_ptr, widest))


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
    oracle.means[0] = 1.0


@inlined
def contract(layout: Any, oracle: Any, v: int, base: int, patterns: int) -> float:
    """sum_v P(v) p(v), one parent after another: level j + 1 is level j with its lowest bit averaged out.

    Leaves level j of 2^(d - j) numbers in `levels`, one after another, which the way back needs.
    """
    levels, mean = oracle.levels, oracle.tables.mean
    slot = layout.ptr[v]
    if patterns > 1 and layout.parent[slot] == 0:
        slot += 1
    for i in range(patterns):
        levels[i] = mean[base + i]
    here, size = 0, patterns
    while size > 1:
        m = min(max(oracle.means[layout.parent[slot]], 0.0), 1.0)
        after, size = here + size, size // 2
        for i in range(size):
            zero, one = levels[here + 2 * i], levels[here + 2 * i + 1]
            levels[after + i] = zero + m * (one - zero)
        here = after
        slot += 1
    return levels[here]


@inlined
def expand(layout: Any, oracle: Any, v: int, base: int, patterns: int, w: float) -> None:
    """The way back of `contract`: w P(v) of every pattern into `influence`, and w times the slope of v's mean in each
    parent's mean added to `weight`."""
    levels, influence = oracle.levels, oracle.tables.influence
    slot, size, here = layout.ptr[v + 1] - 1, 1, 2 * patterns - 2
    influence[base] = w
    while size < patterns:
        here -= 2 * size
        parent = layout.parent[slot]
        m = min(max(oracle.means[parent], 0.0), 1.0)
        slope = 0.0
        for i in range(size - 1, -1, -1):
            share = influence[base + i]
            slope += share * (levels[here + 2 * i + 1] - levels[here + 2 * i])
            influence[base + 2 * i + 1] = share * m
            influence[base + 2 * i] = share * (1.0 - m)
        oracle.weight[parent] += slope
        size *= 2
        slot -= 1


@inlined
def field_mean(layout: Any, oracle: Any, state: Any, v: int, depth: int) -> float:
    """The mean of v given its parents' means."""
    tables, means, start = oracle.tables, oracle.means, layout.ptr[v]
    base, end = tables.table_ptr[depth], tables.table_ptr[depth + 1]
    if end > base:
        return contract(layout, oracle, v, base, end - base)
    total = 0.0
    for slot in range(start, layout.ptr[v + 1]):
        total += oracle.line[slot] * means[layout.parent[slot]]
    return link_value(tables.mix.links, v, total) if tables.mix.has[v, CURVED] else total


@inlined
def field_backwards(layout: Any, oracle: Any, state: Any, v: int, depth: int) -> float:
    """Hand w_v on to v's parents; returns v's share in the variance of E[Y]."""
    tables, means, weight, start = oracle.tables, oracle.means, oracle.weight, layout.ptr[v]
    d, w = layout.ptr[v + 1] - start, weight[v]
    base, end = tables.table_ptr[depth], tables.table_ptr[depth + 1]
    if end > base:
        contract(layout, oracle, v, base, end - base)
        expand(layout, oracle, v, base, end - base, w)
        return node_variance(layout, tables, state, v, depth)
    curved = tables.mix.has[v, CURVED]
    theta, covariance = oracle.line, state.stats.inverse
    slope = 1.0
    if curved:
        covariance = state.covariance
        x = 0.0
        for slot in range(start, start + d):
            x += theta[slot] * means[layout.parent[slot]]
        slope = link_slope(tables.mix.links, v, x)
    spread = 0.0
    for i in range(d):
        x = means[layout.parent[start + i]]
        weight[layout.parent[start + i]] += w * slope * theta[start + i]
        for j in range(d):
            spread += x * covariance[layout.square[v] + i * d + j] * means[layout.parent[start + j]]
    return w * w * slope * slope * max(spread, 0.0)


@score.of(JointField)
def score_joint_field(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """Tables once, then both passes for every action; forwards only from where it differs from the action before."""
    fill_field(oracle, layout, state)
    for i in range(len(oracle.listing.values)):
        score_row(layout, oracle, state, fixed, rho[layout.target], i)


@kernel
def score_row(layout: Any, oracle: Any, state: Any, fixed: Any, bonus: float, i: int) -> None:
    """Both passes for action i."""
    listing, free, means, weight = oracle.listing, oracle.free, oracle.means, oracle.weight
    order, member = listing.order, listing.member
    first = listing.first[i]
    at = members_before(member, i, first)
    for depth in range(first, len(order)):
        v = order[depth]
        is_set = at < member.shape[1] and member[i, at] == depth
        free[v] = not is_set and math.isnan(fixed[v])
        if free[v]:
            means[v] = field_mean(layout, oracle, state, v, depth)
        elif is_set:
            means[v] = listing.member_to[i, at]
            at += 1
        else:
            means[v] = fixed[v]
    variance = 0.0
    if bonus > 0.0:
        for depth in range(len(order)):
            weight[order[depth]] = 0.0
        weight[layout.target] = 1.0
        for depth in range(len(order) - 1, -1, -1):
            if free[order[depth]] and weight[order[depth]] != 0.0:
                variance += field_backwards(layout, oracle, state, order[depth], depth)
    listing.values[i] = means[layout.target] + bonus * math.sqrt(max(variance, 0.0))


@prepare.of(JointField)
def prepare_joint_field(oracle: Any, layout: Any, state: Any) -> None:
    """The tables."""
    fill_field(oracle, layout, state)


@score_first.of(JointField)
def score_first_field(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """Both passes for the one action."""
    score_row(layout, oracle, state, fixed, rho[layout.target], 0)


propose.of(JointField)(pick_best)
