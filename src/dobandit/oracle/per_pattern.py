"""The optimistic value of every set for any link, pattern by pattern.

Given its parents' pattern v, node X is 1 with probability at most
    g_X(v) = min(1, f_X(v . theta_X + rho_X ||v||_{M_X^+})).
The value of a set is E[Y | do(S)] of the network with these conditional probabilities: the upper end of a pass over
intervals that end at g (`interval_pass`). It is at least the literal arg max of the paper's line 9 (docs/oracles.md has
the two-line proof), and it needs no search over weights.
"""

from __future__ import annotations

import math
from typing import Any

from dobandit.kernels import kernel
from dobandit.model.link_kernels import value_at
from dobandit.oracle.interval_pass import highest_means


@kernel
def fill_upper_tables(belief: Any, plan: Any, reach: Any) -> None:
    """Intervals that begin and end at g. On the way they hold v . theta and v' M^+ v, which follow from those of the
    pattern without its last parent."""
    nodes, slots, pairs, points = belief.nodes, belief.slots, belief.pairs, belief.points
    low, high = plan.low, plan.high
    for table in range(len(plan.tables)):
        v, base = plan.tables[table]["node"], plan.tables[table]["first"]
        node = nodes[v]
        start, at, d, first = node["start"], node["square"], node["width"], node["constant"]
        low[base] = slots[start]["curve"] if first else 0.0
        high[base] = pairs[at]["inverse"] if first else 0.0
        for j in range(first, d):
            half, row = 1 << (j - first), at + j * d
            for rest in range(half):
                cross = pairs[row]["inverse"] if first else 0.0
                for i in range(first, j):
                    cross += pairs[row + i]["inverse"] * ((rest >> (i - first)) & 1)
                low[base + half + rest] = low[base + rest] + slots[start + j]["curve"]
                high[base + half + rest] = high[base + rest] + pairs[row + j]["inverse"] + 2.0 * cross
        for k in range(base, base + plan.tables[table]["patterns"]):
            p = value_at(node, points, low[k] + reach[v] * math.sqrt(max(high[k], 0.0)))
            low[k] = high[k] = min(max(p, 0.0), 1.0)


@kernel
def score_per_pattern(plan: Any, fixed: Any) -> None:
    """E[Y] of every action by the tables as they stand."""
    highest_means(plan, fixed)
    for i in range(len(plan.ends)):
        plan.actions.scores[i]["mean"] = plan.actions.scores[i]["index"] = plan.ends[i]


@kernel
def pattern_index(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    """Tables of every node once, then the frontier for every action; reach: radii by id."""
    fill_upper_tables(belief, plan, reach)
    score_per_pattern(plan, fixed)
