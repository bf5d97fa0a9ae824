"""One bonus for E[Y | do(S)], whatever the nodes look like: value + c sqrt(variance), over the joint distribution.

p_X(v): the mixture's probability that X is 1 given its parents' pattern v.
weight, value: of each state of the frontier (decided nodes that still have effects to come), the probability of getting
there and E[Y] from there on; one pass forwards, one backwards.
D_X(v) = dE[Y] / dp_X(v): the sum over the states with that pattern of weight (value with X = 1 - value with X = 0).
The variance of E[Y] is the sum over nodes, whose errors are independent, of what `pattern_tables` makes of D_X.

The passes run for a block of actions at once, a column each (`frontier`); the value alone needs only the one
backwards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import inlined, kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.exact_pass import bound_states, expect_actions
from dobandit.oracle.frontier import Frontier, columns_for, ends_of_target, fill, forwards, hold_block
from dobandit.oracle.listing import Listing, pick_best, propose, score
from dobandit.oracle.pattern_tables import PatternTables, fill_tables, node_variance, pattern_tables


class JointPattern(NamedTuple):
    """The oracle: actions, the frontier, and what is believed of every pattern."""

    listing: Listing
    frontier: Frontier
    weight: NDArray[np.float64]  # (states, columns)
    value: NDArray[np.float64]  # (states, columns)
    influence: NDArray[np.float64]  # (patterns of the widest node, columns) D of one node
    known: NDArray[np.float64]  # (depths, columns) value given to a node, NaN: free
    variance: NDArray[np.float64]  # (columns,)
    target: NDArray[np.float64]  # (2, columns) E[Y] where Y is 0 and where it is 1
    tables: PatternTables


def joint_pattern(graph: CausalGraph, listing: Listing, mix: Any, frontier: Frontier) -> JointPattern:
    """The oracle for the actions of a list."""
    widest, states = int(np.diff(graph.arrays.parent_ptr).max(initial=1)), int(frontier.state_ptr[-1])
    columns = columns_for(len(listing.values), states)
    weight, value = np.zeros((2, states, columns))
    influence = np.zeros((int(np.diff(frontier.table_ptr).max(initial=1)), columns))
    known = np.full((len(listing.order), columns), math.nan)
    variance, target = np.zeros(columns), ends_of_target(columns)
    tables = pattern_tables(mix, frontier.table_ptr, widest)
    return JointPattern(listing, frontier, weight, value, influence, known, variance, target, tables)


@inlined
def add_influence(influence: Any, weight: Any, one: Any, zero: Any) -> None:
    """What a state adds to D of the pattern that it has."""
    for c in range(len(influence)):
        influence[c] += weight[c] * (one[c] - zero[c])


@kernel
def influences_at(oracle: Any, depth: int) -> None:
    """D of every pattern of the node at `depth`, from the weights of its states and E[Y] from the next ones on."""
    frontier, value, influence = oracle.frontier, oracle.value, oracle.influence
    here, after = frontier.state_ptr[depth], frontier.state_ptr[depth + 1]
    last = depth == len(oracle.known) - 1
    for at in range(frontier.table_ptr[depth + 1] - frontier.table_ptr[depth]):
        fill(influence[at], 0.0)
    for s in range(here, after):
        one = oracle.target[1] if last else value[after + frontier.states["one"][s]]
        zero = oracle.target[0] if last else value[after + frontier.states["zero"][s]]
        add_influence(influence[frontier.states["pattern"][s]], oracle.weight[s], one, zero)


@inlined
def add_variances(oracle: Any, layout: Any, state: Any, depth: int, count: int) -> None:
    """What the node at `depth` adds to the variance of each of the first columns, where it is free."""
    tables, base = oracle.tables, oracle.frontier.table_ptr[depth]
    for c in range(count):
        if math.isnan(oracle.known[depth, c]):
            for at in range(oracle.frontier.table_ptr[depth + 1] - base):
                tables.influence[base + at] = oracle.influence[at, c]
            oracle.variance[c] += node_variance(layout, tables, state, oracle.listing.order[depth], depth)


@kernel
def walk_patterns(oracle: Any, layout: Any, state: Any, bonus: float, fixed: Any) -> None:
    """The index of every action, one block after the other."""
    frontier, known, target, value = oracle.frontier, oracle.known, oracle.target, oracle.value
    values, mean, depths, columns = oracle.listing.values, oracle.tables.mean, len(known), known.shape[1]
    if bonus <= 0.0:
        expect_actions(frontier, oracle.listing, mean, mean, fixed, known, target, value, 1, values)
        return
    fill(oracle.weight[0], 1.0)
    for start in range(0, len(values), columns):
        count = min(columns, len(values) - start)
        hold_block(oracle.listing, start, fixed, known)
        fill(oracle.variance, 0.0)
        for depth in range(depths - 1):
            forwards(frontier, mean, oracle.weight, known, depth)
        for depth in range(depths - 1, -1, -1):
            bound_states(frontier, mean, mean, known, target, value, depth, 1)
            influences_at(oracle, depth)
            add_variances(oracle, layout, state, depth, count)
        for c in range(count):
            values[start + c] = value[0, c] + bonus * math.sqrt(oracle.variance[c])


@score.of(JointPattern)
def score_joint_pattern(oracle: Any, layout: Any, state: Any, rho: Any, fixed: Any) -> None:
    """Tables once, then the passes for every action."""
    fill_tables(layout, oracle.listing.order, oracle.tables, state)
    walk_patterns(oracle, layout, state, rho[layout.target], fixed)


propose.of(JointPattern)(pick_best)
