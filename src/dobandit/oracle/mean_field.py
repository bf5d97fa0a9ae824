"""E[Y | do(S)] plus a bonus where nodes count as independent given their own causes, for graphs too wide for an exact
pass: one pass forwards for means and spreads, one backwards for weights.

m: means under do(S).  s_XP: how much X's mean moves with that of its parent P.  q_X: the variance of X's mean given its
parents' means.  w_X = dE[Y] / dm_X = sum over X's free effects C of s_CX w_C.
    index = m_Y + c sqrt(sum over free nodes X of w_X^2 q_X)
Errors of different nodes are independent, so that their shares of E[Y]'s variance add up (the delta method).
straight line   m_X = theta . m over X's parents, and q_X = m' A m, A the covariance of theta. Exact where every node is
                one: w_X is then the total weight of the paths from X to Y that avoid S. No sign is assumed, and nothing
                is clipped, which would tie actions that differ.
few parents     m_X = sum_v P(v) p_X(v), P(v) the product of the parents' means: exact where the parents are independent
                or p_X is a straight line. q_X is what `pattern_tables` makes of D_X(v) = P(v).
many parents    the node's straight line, or its curve at the parents' means.
A search tries one lever more on an action that it has scored: then only nodes that the lever reaches are settled again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import by_type, inlined, kernel
from dobandit.estimation.mixture import CURVED
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.model.link_kernels import link_slope, link_value
from dobandit.oracle.frontier import parents_by_depth
from dobandit.oracle.listing import Listing, held_at, members_before, pick_best, prepare, propose, score, score_prepared
from dobandit.oracle.pattern_tables import PatternTables, fill_tables, node_variance, pattern_tables

MOST_TABULATED = 6  # parents
Array = NDArray[np.float64]


class StraightLines(NamedTuple):
    """In place of `PatternTables` where every node is a straight line: no node has a table."""

    table_ptr: NDArray[np.int64]  # (depths + 1,) zeros


class MeanField(NamedTuple):
    """The evaluator: actions, edges grouped by cause, and scratch, by id but for what is said."""

    listing: Listing
    tables: Any  # PatternTables, or StraightLines
    edge_ptr: NDArray[np.int64]  # (n + 2,) edges into the target's ancestors and the target
    effect: NDArray[np.int64]  # effect of each such edge
    slot: NDArray[np.int64]  # its slot among the effect's parents
    known: Array  # (depths,) value given to a node, NaN: free
    means: Array  # m
    spread: Array  # q
    weight: Array  # w
    slope: Array  # by slot: s
    line: Array  # by slot: theta of nodes without a table
    levels: Array  # scratch of `contract`
    kept_means: Array  # what a trial has changed, as it was before
    kept_spread: Array
    kept_slope: Array
    moved: NDArray[np.bool_]  # whose mean has changed since the action before
    settled: NDArray[np.int64]  # (depths,) what a trial has settled again


def mean_field(graph: CausalGraph, listing: Listing, mix: Any = None) -> MeanField:
    """The evaluator for the actions of a list. mix: the estimator of the nodes; None: every node is a straight line."""
    depths, nodes = len(listing.order), len(graph) + 1
    tables: Any = StraightLines(np.zeros(depths + 1, dtype=np.int64))
    if mix is not None:
        counts = [len(parents) for parents in parents_by_depth(graph, listing.order)]
        table_ptr = offsets([1 << d if d <= MOST_TABULATED else 0 for d in counts])
        tables = pattern_tables(mix, table_ptr, int(np.diff(graph.arrays.parent_ptr).max(initial=1)))
    parent, child = graph.arrays.parent, graph.slot_child
    slots = np.flatnonzero(np.isin(child, listing.order))
    slots = slots[np.argsort(parent[slots], kind="stable")]
    means, spread, weight, kept_means, kept_spread = np.zeros((5, nodes))
    slope, line, kept_slope = np.zeros((3, len(parent)))
    means[0] = 1.0
    edges: Any = offsets(np.bincount(parent[slots], minlength=nodes)), child[slots], slots
    passes: Any = np.full(depths, math.nan), means, spread, weight, slope, line, np.zeros(2 << MOST_TABULATED)
    trial: Any = kept_means, kept_spread, kept_slope, np.zeros(nodes, dtype=np.bool_), np.zeros(depths, dtype=np.int64)
    return MeanField(listing, tables, *edges, *passes, *trial)


@by_type
def fill_nodes(tables: Any, field: Any, layout: Any, state: Any) -> None:
    """What is believed of every node: its table, or its line."""


@fill_nodes.of(StraightLines)
def fill_lines(tables: Any, field: Any, layout: Any, state: Any) -> None:
    """A mean moves with its parents' as their weights say."""
    for slot in range(len(state.slots["line"])):
        field.line[slot] = field.slope[slot] = state.slots["line"][slot]


@fill_nodes.of(PatternTables)
def fill_patterns(tables: Any, field: Any, layout: Any, state: Any) -> None:
    """Tables, and the weights of nodes with many parents."""
    order = field.listing.order
    fill_tables(layout, order, tables, state)
    for depth in range(len(order)):
        if tables.table_ptr[depth] == tables.table_ptr[depth + 1]:
            curved = tables.mix.has[order[depth], CURVED]
            for slot in range(layout.ptr[order[depth]], layout.ptr[order[depth] + 1]):
                field.line[slot] = state.slots["curve"][slot] if curved else state.slots["line"][slot]


@by_type
def settle(tables: Any, field: Any, layout: Any, state: Any, depth: int, spreads: bool) -> None:
    """The mean of the node at `depth` given its parents' means, and, where spreads are wanted, q and s."""


@settle.of(StraightLines)
def settle_straight(tables: Any, field: Any, layout: Any, state: Any, depth: int, spreads: bool) -> None:
    v = field.listing.order[depth]
    field.means[v], field.spread[v] = along_line(field, layout, state.pairs["inverse"], v)


@settle.of(PatternTables)
def settle_mixed(tables: Any, field: Any, layout: Any, state: Any, depth: int, spreads: bool) -> None:
    v, base, end = field.listing.order[depth], tables.table_ptr[depth], tables.table_ptr[depth + 1]
    if end > base:
        field.means[v] = contract(field, layout, v, base, end - base)
        if spreads:
            expand(field, layout, v, base, end - base)
            field.spread[v] = node_variance(layout, tables, state, v, depth)
        return
    links, curved = tables.mix.links, tables.mix.has[v, CURVED]
    x, spread = along_line(field, layout, state.pairs["covariance"] if curved else state.pairs["inverse"], v)
    slope = link_slope(links, v, x) if curved else 1.0
    for slot in range(layout.ptr[v], layout.ptr[v + 1]):
        field.slope[slot] = slope * field.line[slot]
    field.means[v], field.spread[v] = link_value(links, v, x) if curved else x, slope * slope * max(spread, 0.0)


@inlined
def along_line(field: Any, layout: Any, covariance: Any, v: int) -> tuple[float, float]:
    """theta . m and m' A m of a node without a table."""
    means, start, at = field.means, layout.ptr[v], layout.square[v]
    d = layout.ptr[v + 1] - start
    x = spread = 0.0
    for i in range(d):
        m = means[layout.parent[start + i]]
        if m == 0.0:
            continue
        x += m * field.line[start + i]
        cross = 0.0
        for j in range(i):
            cross += covariance[at + i * d + j] * means[layout.parent[start + j]]
        spread += m * (covariance[at + i * d + i] * m + 2.0 * cross)
    return x, spread


@inlined
def contract(field: Any, layout: Any, v: int, base: int, patterns: int) -> float:
    """sum_v P(v) p(v), one parent after another: level j + 1 is level j with its lowest bit averaged out.

    Leaves level j of 2^(d - j) numbers in `levels`, one after another, which the way back needs.
    """
    levels, mean, means = field.levels, field.tables.mean, field.means
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
def expand(field: Any, layout: Any, v: int, base: int, patterns: int) -> None:
    """The way back of `contract`: P(v) of every pattern into `influence`, and how v's mean moves with each parent's."""
    levels, influence = field.levels, field.tables.influence
    slot, size, here = layout.ptr[v + 1] - 1, 1, 2 * patterns - 2
    influence[base] = 1.0
    while size < patterns:
        here -= 2 * size
        m = min(max(field.means[layout.parent[slot]], 0.0), 1.0)
        slope = 0.0
        for i in range(size - 1, -1, -1):
            share = influence[base + i]
            slope += share * (levels[here + 2 * i + 1] - levels[here + 2 * i])
            influence[base + 2 * i + 1] = share * m
            influence[base + 2 * i] = share * (1.0 - m)
        field.slope[slot] = slope
        size *= 2
        slot -= 1


@inlined
def index_now(field: Any, layout: Any, bonus: float) -> float:
    """The index of the action whose nodes are settled; the variance of E[Y] takes the backward pass."""
    value = field.means[layout.target]
    if bonus <= 0.0:
        return value
    order, weight, variance = field.listing.order, field.weight, 0.0
    for depth in range(len(order) - 1, -1, -1):
        v = order[depth]
        total = 1.0 if v == layout.target else 0.0
        for e in range(field.edge_ptr[v], field.edge_ptr[v + 1]):
            total += field.slope[field.slot[e]] * weight[field.effect[e]]
        if math.isnan(field.known[depth]):
            weight[v] = total
            variance += total * total * field.spread[v]
        else:
            weight[v] = 0.0  # nothing moves it
    return value + bonus * math.sqrt(max(variance, 0.0))


@inlined
def reached(layout: Any, moved: Any, v: int) -> bool:
    """Whether the mean of a parent of v has changed."""
    some = False
    for slot in range(layout.ptr[v], layout.ptr[v + 1]):
        some = some or moved[layout.parent[slot]]
    return some


@kernel
def score_means(field: Any, layout: Any, state: Any, bonus: float, fixed: Any) -> None:
    """Both passes for every action; forwards only where something differs from the action before."""
    listing, known, means, moved = field.listing, field.known, field.means, field.moved
    for i in range(len(listing.values)):
        for depth in range(listing.first[i]):
            moved[listing.order[depth]] = False
        at = members_before(listing.member, i, listing.first[i])
        for depth in range(listing.first[i], len(listing.order)):
            v, held = listing.order[depth], not math.isnan(known[depth])
            known[depth], at = held_at(listing, i, depth, at, fixed)
            before = means[v]
            if not math.isnan(known[depth]):
                means[v] = known[depth]
            elif i == 0 or held or reached(layout, moved, v):
                settle(field.tables, field, layout, state, depth, bonus > 0.0)
            moved[v] = means[v] != before
        listing.values[i] = index_now(field, layout, bonus)
    for depth in range(len(listing.order)):
        moved[listing.order[depth]] = False


@kernel
def index_with(field: Any, layout: Any, state: Any, bonus: float, depth: int, to: float) -> float:
    """The index of the list's first action, which was scored last, with the node at `depth` held too."""
    order, means, known, moved = field.listing.order, field.means, field.known, field.moved
    if depth == len(order):  # it does not matter to the target
        return field.listing.values[0]
    held, was, count = order[depth], known[depth], 0
    field.kept_means[held], known[depth], means[held] = means[held], to, to
    moved[held] = to != field.kept_means[held]
    for k in range(depth + 1, len(order) if moved[held] else 0):
        v = order[k]
        if math.isnan(known[k]) and reached(layout, moved, v):
            field.kept_means[v], field.kept_spread[v] = means[v], field.spread[v]
            for slot in range(layout.ptr[v], layout.ptr[v + 1]):
                field.kept_slope[slot] = field.slope[slot]
            settle(field.tables, field, layout, state, k, bonus > 0.0)
            moved[v] = means[v] != field.kept_means[v]
            field.settled[count] = v
            count += 1
    value = index_now(field, layout, bonus)
    for k in range(count):
        v = field.settled[k]
        means[v], field.spread[v], moved[v] = field.kept_means[v], field.kept_spread[v], False
        for slot in range(layout.ptr[v], layout.ptr[v + 1]):
            field.slope[slot] = field.kept_slope[slot]
    means[held], known[depth], moved[held] = field.kept_means[held], was, False
    return value


@prepare.of(MeanField)
def prepare_field(field: Any, layout: Any, state: Any, rho: Any) -> None:
    fill_nodes(field.tables, field, layout, state)


@score_prepared.of(MeanField)
def score_prepared_field(field: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    score_means(field, layout, state, rho[layout.target], fixed)


@score.of(MeanField)
def score_field(field: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    prepare(field, layout, state, rho)
    score_means(field, layout, state, rho[layout.target], fixed)


propose.of(MeanField)(pick_best)
