"""The optimistic value of every set for any link, pattern by pattern.

Given its parents' pattern v, node X is 1 with probability at most
    g_X(v) = min(1, f_X(v . theta_X + rho_X ||v||_{M_X^+})).
The value of a set is E[Y | do(S)] of the network with these conditional probabilities. It is at least the literal
arg max of the paper's line 9 (docs/oracles.md has the two-line proof), and it needs no search over weights.
It is exact: a table over the frontier (decided nodes that still have effects to come) is carried from node to node, for
a block of sets at once (`frontier`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined
from dobandit.estimation.statistics import dot, pattern_row
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.link_kernels import LinkArrays, link_value
from dobandit.oracle.frontier import Frontier, columns_for, fill, forwards, hold_block
from dobandit.oracle.listing import Listing, pick_best, prepare, propose, score, score_prepared
from dobandit.oracle.pattern_tables import quadratic


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
    )


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
    theta, inverse, order, row = state.theta, state.stats.inverse, plan.listing.order, plan.row
    for depth in range(len(order)):
        v, base = order[depth], plan.frontier.table_ptr[depth]
        d = layout.ptr[v + 1] - layout.ptr[v]
        for pattern in range(plan.frontier.table_ptr[depth + 1] - base):
            if d > 0:
                pattern_row(layout, v, pattern, row)
            reach = rho[v] * math.sqrt(max(quadratic(inverse, layout.square[v], row, d), 0.0))
            p = link_value(plan.links, v, dot(row, 0, theta, layout.ptr[v], d) + reach)
            plan.table[base + pattern] = min(max(p, 0.0), 1.0)


@score.of(PerPattern)
def score_per_pattern(plan: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """Tables of every node once, then the frontier for every action."""
    prepare(plan, layout, state, rho)
    score_prepared(plan, layout, state, rho, fixed)


propose.of(PerPattern)(pick_best)
