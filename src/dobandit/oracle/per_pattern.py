"""The optimistic value of every set for any link, pattern by pattern.

Given its parents' pattern v, node X is 1 with probability at most
    g_X(v) = min(1, f_X(v . theta_X + rho_X ||v||_{M_X^+})).
The value of a set is E[Y | do(S)] of the network with these conditional probabilities. It is at least the literal
arg max of the paper's line 9 (docs/oracles.md has the two-line proof), and it needs no search over weights.
It is exact: a table over the frontier (decided nodes that still have effects to come) is carried from node to node, for
a block of sets at once (`columns`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.link_kernels import LinkArrays, link_value
from dobandit.oracle.columns import columns_for, fill, forwards, hold_block
from dobandit.oracle.frontier import Frontier
from dobandit.oracle.listing import Listing, pick_best, prepare, propose, score, score_prepared


class PerPattern(NamedTuple):
    """The oracle: actions, links, and scratch. Depths follow `listing.order`."""

    listing: Listing
    links: LinkArrays
    frontier: Frontier
    table: NDArray[np.float64]  # g_X by pattern
    weight: NDArray[np.float64]  # (states, columns) their probabilities
    known: NDArray[np.float64]  # (depths, columns) value given to a node, NaN: free
    total: NDArray[np.float64]  # (columns,)
    row: NDArray[np.float64]  # (D,)
    along: NDArray[np.float64]  # (D,)


def per_pattern(graph: CausalGraph, listing: Listing, links: LinkArrays, frontier: Frontier) -> PerPattern:
    """The oracle for the actions of a list."""
    widest, states = int(np.diff(graph.arrays.parent_ptr).max(initial=1)), int(frontier.state_ptr[-1])
    columns = columns_for(len(listing.values), states)
    return PerPattern(
        listing,
        links,
        frontier,
        np.zeros(int(frontier.table_ptr[-1])),
        np.zeros((states, columns)),
        np.full((len(listing.order), columns), math.nan),
        np.zeros(columns),
        np.zeros(max(widest, 1)),
        np.zeros(max(widest, 1)),
    )


@inlined
def optimistic_probability(links: Any, v: int, lin: float, quad: float, rho: float) -> float:
    """min(1, f(lin + rho sqrt(quad))), not below 0."""
    return min(max(link_value(links, v, lin + rho * math.sqrt(max(quad, 0.0))), 0.0), 1.0)


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


@score_prepared.of(PerPattern)
def score_exactly(plan: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
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


@prepare.of(PerPattern)
def fill_tables_of_bounds(plan: Any, layout: Any, state: Any, rho: Any) -> None:
    """g of every node, pattern by pattern."""
    for depth in range(len(plan.listing.order)):
        v = plan.listing.order[depth]
        fill_table(layout, plan.links, plan, state.theta, state.stats.inverse, rho[v], v, depth)


@score.of(PerPattern)
def score_per_pattern(plan: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """Tables of every node once, then the frontier for every action."""
    prepare(plan, layout, state, rho)
    score_prepared(plan, layout, state, rho, fixed)


propose.of(PerPattern)(pick_best)
