"""The optimistic value of every set for any link, pattern by pattern.

Given its parents' pattern v, node X is 1 with probability at most
    g_X(v) = min(1, f_X(v . theta_X + rho_X ||v||_{M_X^+})).
The value of a set is E[Y | do(S)] of the network with these conditional probabilities. It is at least the literal
arg max of the paper's line 9 (docs/oracles.md has the two-line proof), and it needs no search over weights.
It is exact (`exact_pass`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.model.link_kernels import LinkArrays, link_value
from dobandit.oracle.exact_pass import expect_actions
from dobandit.oracle.frontier import Frontier, columns_for, ends_of_target
from dobandit.oracle.listing import Listing, pick_best, prepare, propose, score, score_prepared


class PerPattern(NamedTuple):
    """The oracle: actions, links, and scratch. Depths follow `listing.order`."""

    listing: Listing
    links: LinkArrays
    frontier: Frontier
    table: NDArray[np.float64]  # g_X by pattern
    states: NDArray[np.float64]  # (states, columns) E[Y] from there on
    known: NDArray[np.float64]  # (depths, columns) value given to a node, NaN: free
    target: NDArray[np.float64]  # (2, columns) E[Y] where Y is 0 and where it is 1
    lin: NDArray[np.float64]  # (patterns of the widest node,) v . theta
    quad: NDArray[np.float64]  # (patterns of the widest node,) v' M^+ v


def per_pattern(listing: Listing, links: LinkArrays, frontier: Frontier) -> PerPattern:
    """The oracle for the actions of a list."""
    patterns, states = frontier.table_ptr, int(frontier.state_ptr[-1])
    columns = columns_for(len(listing.values), states)
    known = np.full((len(listing.order), columns), math.nan)
    lin, quad = np.zeros((2, int(np.diff(patterns).max(initial=1))))
    table, worth = np.zeros(int(patterns[-1])), np.zeros((states, columns))
    return PerPattern(listing, links, frontier, table, worth, known, ends_of_target(columns), lin, quad)


@score_prepared.of(PerPattern)
def score_exactly(plan: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    table, values = plan.table, plan.listing.values
    expect_actions(plan.frontier, plan.listing, table, table, fixed, plan.known, plan.target, plan.states, 1, values)


@prepare.of(PerPattern)
def fill_tables_of_bounds(plan: Any, layout: Any, state: Any, rho: Any) -> None:
    """g of every node: v . theta and v' M^+ v of a pattern follow from those of the pattern without its last parent."""
    theta, inverse, lin, quad = state.slots["curve"], state.pairs["inverse"], plan.lin, plan.quad
    for depth in range(len(plan.listing.order)):
        v, base = plan.listing.order[depth], plan.frontier.table_ptr[depth]
        start, at, patterns = layout.ptr[v], layout.square[v], plan.frontier.table_ptr[depth + 1] - base
        d = layout.ptr[v + 1] - start
        first = 1 if d > 0 and layout.parent[start] == 0 else 0
        lin[0], quad[0] = (theta[start], inverse[at]) if first else (0.0, 0.0)
        for j in range(first, d):
            half, row = 1 << (j - first), at + j * d
            for rest in range(half):
                cross = inverse[row] if first else 0.0
                for i in range(first, j):
                    cross += inverse[row + i] * ((rest >> (i - first)) & 1)
                lin[half + rest] = lin[rest] + theta[start + j]
                quad[half + rest] = quad[rest] + inverse[row + j] + 2.0 * cross
        for k in range(patterns):
            p = link_value(plan.links, v, lin[k] + rho[v] * math.sqrt(max(quad[k], 0.0)))
            plan.table[base + k] = min(max(p, 0.0), 1.0)


@score.of(PerPattern)
def score_per_pattern(plan: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """Tables of every node once, then the frontier for every action."""
    prepare(plan, layout, state, rho)
    score_prepared(plan, layout, state, rho, fixed)


propose.of(PerPattern)(pick_best)
