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

from dobandit.kernels import kernel
from dobandit.model.link_kernels import value_at
from dobandit.oracle.action_list import ActionList
from dobandit.oracle.exact_pass import expect_actions
from dobandit.oracle.frontier import Frontier, columns_for

Array = NDArray[np.float64]


class PerPattern(NamedTuple):
    """The plan of an evaluator: actions, the frontier, and scratch."""

    actions: ActionList
    steps: NDArray[Any]  # STEP
    states: NDArray[Any]  # STATE
    table: Array  # g_X by pattern
    known: Array  # (depths, columns) value given to a node, NaN: free
    value: Array  # (states, columns) E[Y] from there on
    sums: Array  # (2, patterns of the widest node) v . theta and v' M^+ v
    found: Array  # (actions,) E[Y]


def per_pattern(actions: ActionList, frontier: Frontier) -> PerPattern:
    """The plan for the actions of a list."""
    sizes, states = np.diff(frontier.steps["table"]), len(frontier.states)
    columns = columns_for(len(actions.scores), states)
    known, value = np.full((len(actions.order), columns), math.nan), np.zeros((states, columns))
    sums, found = np.zeros((2, int(sizes.max(initial=1)))), np.zeros(len(actions.scores))
    return PerPattern(actions, *frontier, np.zeros(int(sizes.sum())), known, value, sums, found)


@kernel
def fill_upper_tables(belief: Any, plan: Any, reach: Any) -> None:
    """g of every node: v . theta and v' M^+ v of a pattern follow from those of the pattern without its last parent."""
    nodes, slots, pairs, points = belief.nodes, belief.slots, belief.pairs, belief.points
    steps, sums, table = plan.steps, plan.sums, plan.table
    for depth in range(len(steps) - 2):
        v, base = steps[depth]["node"], steps[depth]["table"]
        node = nodes[v]
        start, at, d, first = node["start"], node["square"], node["width"], node["constant"]
        sums[0, 0] = slots[start]["curve"] if first else 0.0
        sums[1, 0] = pairs[at]["inverse"] if first else 0.0
        for j in range(first, d):
            half, row = 1 << (j - first), at + j * d
            for rest in range(half):
                cross = pairs[row]["inverse"] if first else 0.0
                for i in range(first, j):
                    cross += pairs[row + i]["inverse"] * ((rest >> (i - first)) & 1)
                sums[0, half + rest] = sums[0, rest] + slots[start + j]["curve"]
                sums[1, half + rest] = sums[1, rest] + pairs[row + j]["inverse"] + 2.0 * cross
        for k in range(steps[depth + 1]["table"] - base):
            p = value_at(node, points, sums[0, k] + reach[v] * math.sqrt(max(sums[1, k], 0.0)))
            table[base + k] = min(max(p, 0.0), 1.0)


@kernel
def score_per_pattern(plan: Any, fixed: Any) -> None:
    """E[Y] of every action by the tables as they stand."""
    scores, found, table = plan.actions.scores, plan.found, plan.table
    expect_actions(plan.steps, plan.states, plan.actions.held, table, table, fixed, plan.known, plan.value, True, found)
    for i in range(len(scores)):
        scores[i]["mean"] = scores[i]["index"] = found[i]


@kernel
def pattern_index(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    """Tables of every node once, then the frontier for every action; reach: radii by id."""
    fill_upper_tables(belief, plan, reach)
    score_per_pattern(plan, fixed)
