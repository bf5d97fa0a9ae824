"""The optimistic value of every set for any link, pattern by pattern.

Given its parents' pattern v, node X is 1 with probability at most
    g_X(v) = min(1, f_X(v . theta_X + rho_X ||v||_{M_X^+})).
The value of a set is E[Y | do(S)] of the network with these conditional probabilities. It is at least the literal
arg max of the paper's line 9 (docs/oracles.md has the two-line proof), and it needs no search over weights.

Exact: a table over the frontier (decided nodes that still have effects to come) is carried from node to node.
Monte Carlo, where a table would be too large: the same fixed uniforms for every set, so differences are sharp; one
world after another, so that sets which leave a node with the same pattern share its g (`recent_patterns`).
Tables are carried for a block of sets at once (`columns`); worlds are drawn anew only from where a set differs from the
one before it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.model.link_kernels import LinkArrays
from dobandit.oracle.columns import columns_for, fill, forwards, hold_block
from dobandit.oracle.frontier import MOST_PARENTS, Frontier, frontier_of, parents_by_depth
from dobandit.oracle.listing import Listing, held_at, members_before, pick_best, propose, score
from dobandit.oracle.recent_patterns import (
    RecentPatterns,
    optimistic_probability,
    pattern_probability,
    recent_patterns,
)


class PerPattern(NamedTuple):
    """The oracle: actions, links, and scratch. Depths follow `listing.order`."""

    listing: Listing
    links: LinkArrays
    sampled: bool  # Monte Carlo instead of frontier tables
    frontier: Frontier  # without states where it is sampled, and without patterns where a node has too many parents
    table: NDArray[np.float64]  # g_X by pattern
    weight: NDArray[np.float64]  # (states, columns) their probabilities
    known: NDArray[np.float64]  # (depths, columns) value given to a node, NaN: free
    total: NDArray[np.float64]  # (columns,)
    row: NDArray[np.float64]  # (D,)
    along: NDArray[np.float64]  # (D,)
    # sampled
    uniforms: NDArray[np.float64]  # (samples, depths)
    world: NDArray[np.float64]  # (n + 1,)
    recent: RecentPatterns


def per_pattern(
    graph: CausalGraph, listing: Listing, links: LinkArrays, rng: np.random.Generator, samples: int
) -> PerPattern:
    """Plan the recursion: exact where the frontier stays small, sampled otherwise."""
    parents = parents_by_depth(graph, listing.order)
    widest = int(np.diff(graph.arrays.parent_ptr)[listing.order].max(initial=1))
    frontier = frontier_of(graph, listing.order)
    count = samples if frontier is None else 0
    if frontier is None:
        table_ptr = offsets([1 << len(p) if len(p) <= MOST_PARENTS else 0 for p in parents])
        empty = np.zeros(0, dtype=np.int64)
        frontier = Frontier(table_ptr, np.zeros(len(parents) + 2, dtype=np.int64), empty, empty, empty)
    states = int(frontier.state_ptr[-1])
    columns = columns_for(len(listing.values), states)
    return PerPattern(
        listing,
        links,
        count > 0,
        frontier,
        np.zeros(int(frontier.table_ptr[-1])),
        np.zeros((states, columns)),
        np.full((len(parents), columns), math.nan),
        np.zeros(columns),
        np.zeros(max(widest, 1)),
        np.zeros(max(widest, 1)),
        np.ascontiguousarray(rng.random((len(parents) if count else 0, count)).T),
        np.ones(len(graph) + 1),
        recent_patterns(widest, count > 0),
    )


@kernel
def fill_table(layout: Any, links: Any, plan: Any, theta: Any, inverse: Any, rho: float, v: int, depth: int) -> None:
    """g_v for every pattern, in Gray-code order: flipping one parent updates A row in O(d)."""
    start, at = layout.ptr[v], layout.square[v]
    d = layout.ptr[v + 1] - start
    first = 1 if d > 0 and layout.parent[start] == 0 else 0
    lin = quad = 0.0
    for j in range(d):
        plan.row[j] = 0.0
        plan.along[j] = inverse[at + j * d] if first else 0.0  # A e_0
    if first:
        plan.row[0] = 1.0
        lin, quad = theta[start], inverse[at]
    base, gray = plan.frontier.table_ptr[depth], 0
    plan.table[base] = optimistic_probability(links, v, lin, quad, rho)
    for step in range(1, plan.frontier.table_ptr[depth + 1] - base):
        bit = 0
        while not (step >> bit) & 1:
            bit += 1
        j = bit + first
        sign = 1.0 - 2.0 * plan.row[j]
        lin += sign * theta[start + j]
        quad += 2.0 * sign * plan.along[j] + inverse[at + j * d + j]
        for i in range(d):
            plan.along[i] += sign * inverse[at + i * d + j]
        plan.row[j] += sign
        gray ^= 1 << bit
        plan.table[base + gray] = optimistic_probability(links, v, lin, quad, rho)


@inlined
def add_shares(total: Any, weight: Any, known: Any, p: float) -> None:
    """What a state adds to the probability that the target is 1."""
    for c in range(len(total)):
        total[c] += weight[c] * (p if math.isnan(known[c]) else known[c])


@kernel
def score_exactly(plan: Any, fixed: Any) -> None:
    """The frontier is carried to the target, for one block of actions after the other."""
    frontier, weight, known, total = plan.frontier, plan.weight, plan.known, plan.total
    values, columns, last = plan.listing.values, plan.known.shape[1], len(plan.known) - 1
    fill(weight[0], 1.0)
    for start in range(0, len(values), columns):
        hold_block(plan.listing, start, fixed, known)
        for depth in range(last):
            forwards(frontier, plan.table, weight, known, depth)
        fill(total, 0.0)
        for s in range(frontier.state_ptr[last], frontier.state_ptr[last + 1]):
            p = plan.table[frontier.table_ptr[last] + frontier.pattern[s]]
            add_shares(total, weight[s], known[last], p)
        for c in range(min(columns, len(values) - start)):
            values[start + c] = total[c]


@kernel
def drawn_probability(layout: Any, plan: Any, theta: Any, inverse: Any, rho: float, v: int, depth: int) -> float:
    """g_v at the values that v's parents have in the world that is being drawn."""
    base = plan.frontier.table_ptr[depth]
    if plan.frontier.table_ptr[depth + 1] == base:
        stamp = plan.recent.clock[0] * len(plan.listing.order) + depth
        return pattern_probability(layout, plan.links, plan.recent, plan.world, theta, inverse, rho, v, stamp)
    first, pattern = layout.ptr[v], 0
    if layout.ptr[v + 1] > first and layout.parent[first] == 0:
        first += 1
    for slot in range(first, layout.ptr[v + 1]):
        if plan.world[layout.parent[slot]] > 0.5:
            pattern |= 1 << (slot - first)
    return plan.table[base + pattern]


@kernel
def score_sampled(plan: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """The mean over the worlds of the target's probability, for every action."""
    listing, values = plan.listing, plan.listing.values
    plan.recent.clock[0] += 1
    for i in range(len(values)):
        values[i] = 0.0
    for k in range(len(plan.uniforms)):
        p = 0.0
        for i in range(len(values)):
            at = members_before(listing.member, i, listing.first[i])
            for depth in range(listing.first[i], len(listing.order)):
                v = listing.order[depth]
                p, at = held_at(listing, i, depth, at, fixed)
                if math.isnan(p):
                    p = drawn_probability(layout, plan, state.theta, state.stats.inverse, rho[v], v, depth)
                plan.world[v] = 1.0 if plan.uniforms[k, depth] < p else 0.0
            values[i] += p
    for i in range(len(values)):
        values[i] /= len(plan.uniforms)


@score.of(PerPattern)
def score_per_pattern(plan: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """Tables of every node once, then the frontier, or the sampled worlds, for every action."""
    listing, depths = plan.listing, len(plan.listing.order)
    for depth in range(depths):
        v = listing.order[depth]
        if plan.frontier.table_ptr[depth + 1] > plan.frontier.table_ptr[depth]:
            fill_table(layout, plan.links, plan, state.theta, state.stats.inverse, rho[v], v, depth)
    if plan.sampled:
        score_sampled(plan, layout, state, rho, fixed)
    else:
        score_exactly(plan, fixed)


propose.of(PerPattern)(pick_best)
