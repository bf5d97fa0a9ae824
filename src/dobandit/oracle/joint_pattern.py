"""One bonus for E[Y | do(S)], whatever the nodes look like: value + c sqrt(variance), over the joint distribution.

p_X(v): the mixture's probability that X is 1 given its parents' pattern v.
weight, value: of each state of the frontier (decided nodes that still have effects to come), the probability of getting
there and E[Y] from there on; one pass forwards, one backwards.
D_X(v) = dE[Y] / dp_X(v): the sum over the states with that pattern of weight (value with X = 1 - value with X = 0).
The variance of E[Y] is the sum over nodes, whose errors are independent, of what `pattern_tables` makes of D_X.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.frontier import Frontier
from dobandit.oracle.listing import Listing, held_at, members_before, pick_best, propose, score
from dobandit.oracle.pattern_tables import PatternTables, fill_tables, node_variance, pattern_tables


class JointPattern(NamedTuple):
    """The oracle: actions, the frontier, and what is believed of every pattern."""

    listing: Listing
    frontier: Frontier
    weight: NDArray[np.float64]  # by state
    value: NDArray[np.float64]  # by state
    known: NDArray[np.float64]  # (depths,) value given to a node, NaN: free
    tables: PatternTables


def joint_pattern(graph: CausalGraph, listing: Listing, mix: Any, frontier: Frontier) -> JointPattern:
    """The oracle for the actions of a list."""
    widest, states = int(np.diff(graph.arrays.parent_ptr).max(initial=1)), int(frontier.state_ptr[-1])
    weight, value = np.zeros((2, states))
    known = np.full(len(listing.order), math.nan)
    return JointPattern(listing, frontier, weight, value, known, pattern_tables(mix, frontier.table_ptr, widest))


@kernel
def forwards(oracle: Any, depth: int, last: bool) -> None:
    """Carry the weights of the frontier's states past the node at `depth`."""
    frontier, weight, known = oracle.frontier, oracle.weight, oracle.known[depth]
    here, after = frontier.state_ptr[depth], frontier.state_ptr[depth + 1]
    if last:
        return
    for s in range(after, frontier.state_ptr[depth + 2]):
        weight[s] = 0.0
    base = frontier.table_ptr[depth]
    for s in range(here, after):
        p = oracle.tables.mean[base + frontier.pattern[s]] if math.isnan(known) else known
        weight[after + frontier.next_one[s]] += weight[s] * p
        weight[after + frontier.next_zero[s]] += weight[s] * (1.0 - p)


@kernel
def backwards(oracle: Any, depth: int, last: bool) -> None:
    """E[Y] from each state on, and D of every pattern of the node at `depth` where it is free."""
    frontier, weight, value, known = oracle.frontier, oracle.weight, oracle.value, oracle.known[depth]
    here, after, base = frontier.state_ptr[depth], frontier.state_ptr[depth + 1], frontier.table_ptr[depth]
    for at in range(base, frontier.table_ptr[depth + 1]):
        oracle.tables.influence[at] = 0.0
    for s in range(here, after):
        at = base + frontier.pattern[s]
        p = oracle.tables.mean[at] if math.isnan(known) else known
        one = 1.0 if last else value[after + frontier.next_one[s]]
        zero = 0.0 if last else value[after + frontier.next_zero[s]]
        value[s] = p * one + (1.0 - p) * zero
        if math.isnan(known):
            oracle.tables.influence[at] += weight[s] * (one - zero)


@kernel
def walk_patterns(oracle: Any, layout: Any, state: Any, bonus: float, fixed: Any) -> None:
    """Both passes for every action; forwards only from where it differs from the action before."""
    listing, known = oracle.listing, oracle.known
    depths = len(listing.order)
    oracle.weight[0] = 1.0
    for i in range(len(listing.values)):
        at = members_before(listing.member, i, listing.first[i])
        for depth in range(listing.first[i], depths):
            known[depth], at = held_at(listing, i, depth, at, fixed)
            forwards(oracle, depth, depth == depths - 1)
        variance = 0.0
        for depth in range(depths - 1, -1, -1):
            backwards(oracle, depth, depth == depths - 1)
            if bonus > 0.0 and math.isnan(known[depth]):
                variance += node_variance(layout, oracle.tables, state, listing.order[depth], depth)
        listing.values[i] = oracle.value[0] + bonus * math.sqrt(variance)


@score.of(JointPattern)
def score_joint_pattern(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """Tables once, then both passes for every action."""
    fill_tables(layout, oracle.listing.order, oracle.tables, state)
    walk_patterns(oracle, layout, state, rho[layout.target], fixed)


propose.of(JointPattern)(pick_best)
