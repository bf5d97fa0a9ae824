"""What a mixture says of every parent pattern of every node, and how sure it is of a sum over patterns.

D(v): how much E[Y] moves with p_X(v), left in `influence` by an evaluator.  p: the mixture's mean; p_k: member k's.
A node's share in the variance of E[Y] is
    sum over members k of weight_k (q_k + b_k^2),
q_k: the variance of sum_v D(v) p_k(v) under member k alone (straight: g' A g with g = sum_v D(v) v; curved: with f'
in g; table: sum_v D(v)^2 Var p(v)).  b_k = sum_v D(v) (p_k(v) - p(v)): how far the members disagree.
Half of the weight is always the table's here: rows of a few patterns speak for a line, however wrong it is elsewhere,
and an action that was unlucky in its first rounds would never be played again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.least_squares import pattern_row
from dobandit.estimation.mixture import (
    BACK,
    CURVED,
    EVEN,
    OWN_LINES,
    STRAIGHT,
    TABLE,
    context_bits,
    line_of,
    member_means,
)
from dobandit.kernels import inlined, kernel, record
from dobandit.model.link_kernels import slope_at

_LITTLE = 1e-6  # members with less weight are passed over
AT_LEAST = 0.5  # weight of the table in a variance, where a node has one
# What each member says of a pattern; f' of the curve; Var p of the table; D.
PATTERN = record(straight="f8", curved="f8", table="f8", own="f8", slope="f8", spread="f8", influence="f8")


class NodeTables(NamedTuple):
    """Numbers by pattern; those of depth i begin at steps[i]["table"]. Bit j: the j-th parent that is not the constant.
    D: the most parents of a node, the constant counted."""

    mean: NDArray[np.float64]  # p
    patterns: NDArray[Any]  # PATTERN
    row: NDArray[np.float64]  # (D,) scratch
    along: NDArray[np.float64]  # (D,) scratch
    folded: NDArray[np.float64]  # (patterns of the widest node,) scratch


def node_tables(steps: NDArray[Any], widest: int) -> NodeTables:
    """Tables for nodes with at most `widest` parents."""
    sizes = np.diff(steps["table"])
    row, along = np.zeros((2, max(widest, 1)))
    return NodeTables(
        np.zeros(int(sizes.sum())), np.zeros(int(sizes.sum()), PATTERN), row, along, np.zeros(int(sizes.max(initial=1)))
    )


@kernel
def fill_tables(belief: Any, steps: Any, tables: Any) -> None:
    """What the members say of every pattern of every node."""
    nodes, slots, pairs, cells = belief.nodes, belief.slots, belief.pairs, belief.cells
    bits, points, members = belief.bits, belief.points, belief.members
    mean, patterns, row = tables.mean, tables.patterns, tables.row
    for depth in range(len(steps) - 2):
        v, base = steps[depth]["node"], steps[depth]["table"]
        node = nodes[v]
        for k in range(steps[depth + 1]["table"] - base):
            if node["width"] == 0:  # it cannot happen by itself
                mean[base + k] = 0.0
                continue
            pattern = patterns[base + k]
            pattern_row(node, k, row)
            straight, curved, table, own, mean[base + k] = member_means(
                nodes, slots, pairs, cells, bits, points, members, v, row
            )
            pattern["straight"], pattern["curved"], pattern["table"], pattern["own"] = straight, curved, table, own
            if members[4 * v + CURVED]["there"]:
                x = 0.0
                for j in range(node["width"]):
                    x += row[j] * slots[node["start"] + j]["curve"]
                pattern["slope"] = slope_at(node, points, x)
            if members[4 * v + TABLE]["there"]:
                seen = cells[node["cell"] + k]["seen"]
                pattern["spread"] = table_spread(nodes, slots, pairs, members, v, row, table, seen)


@inlined
def table_spread(nodes: Any, slots: Any, pairs: Any, members: Any, v: int, row: Any, p: float, seen: float) -> float:
    """The variance of a cell: that of its counts, and what the imagined rows take over from the others' variance."""
    p = (p * seen + 2.0) / (seen + 4.0)  # as Wilson's interval does: a few unlucky rows must not look certain
    prior = BACK / (seen + BACK + EVEN)
    others = 0.0
    if members[4 * v + STRAIGHT]["there"]:
        others = line_variance(nodes, pairs, v, row)
    elif members[4 * v + OWN_LINES]["there"]:
        others = line_variance(nodes, pairs, line_of(nodes, slots, v, row), row)
    return p * (1.0 - p) / (seen + BACK + EVEN + 1.0) + prior * prior * min(others, 0.25)


@inlined
def line_variance(nodes: Any, pairs: Any, line: int, g: Any) -> float:
    """g' A g, A the covariance of a line's weights."""
    total, d, at = 0.0, nodes[line]["width"], nodes[line]["square"]
    for i in range(d):
        for j in range(d):
            total += g[i] * pairs[at + i * d + j]["inverse"] * g[j]
    return total


@inlined
def curve_variance(nodes: Any, pairs: Any, v: int, g: Any) -> float:
    """g' A g, A the covariance of a curve's weights."""
    total, d, at = 0.0, nodes[v]["width"], nodes[v]["square"]
    for i in range(d):
        for j in range(d):
            total += g[i] * pairs[at + i * d + j]["covariance"] * g[j]
    return total


@inlined
def node_variance(
    nodes: Any, slots: Any, pairs: Any, members: Any, steps: Any, mean: Any, patterns: Any, along: Any, folded: Any,
    depth: int,
) -> float:  # fmt: skip
    """The share of a free node in the variance of E[Y]."""
    v, base, end = steps[depth]["node"], steps[depth]["table"], steps[depth + 1]["table"]
    b0 = b1 = b2 = b3 = cells = total = 0.0
    for at in range(base, end):  # five sums at once: one alone would be waited for at each step
        pattern = patterns[at]
        influence = pattern["influence"]
        b0 += influence * (pattern["straight"] - mean[at])
        b1 += influence * (pattern["curved"] - mean[at])
        b2 += influence * (pattern["table"] - mean[at])
        b3 += influence * (pattern["own"] - mean[at])
        cells += influence * influence * pattern["spread"]
    apart = (b0, b1, b2, b3)
    for k in range(4):
        share = members[4 * v + k]["weight"]
        if members[4 * v + TABLE]["there"]:
            share = (1.0 - AT_LEAST) * share + (AT_LEAST if k == TABLE else 0.0)
        if share < _LITTLE:
            continue
        if k == TABLE:
            spread = cells
        elif k == OWN_LINES:
            spread = own_lines_variance(nodes, slots, pairs, patterns, along, folded, v, base, end - base)
        else:
            for i in range(end - base):
                folded[i] = patterns[base + i]["influence"] * (patterns[base + i]["slope"] if k == CURVED else 1.0)
            fold(nodes[v], folded, along, end - base)
            spread = curve_variance(nodes, pairs, v, along) if k == CURVED else line_variance(nodes, pairs, v, along)
        total += share * (max(spread, 0.0) + apart[k] * apart[k])
    return total


@kernel
def own_lines_variance(
    nodes: Any, slots: Any, pairs: Any, patterns: Any, along: Any, folded: Any, v: int, base: int, size: int
) -> float:
    """The sum of g' A g over the segments that matter: one, where the context is known."""
    context, total = context_bits(nodes, slots, v), 0.0
    rest = (size - 1) & ~context
    part, line = 0, nodes[v]["segments"]  # the context's bits of a pattern; segments come in the order of their numbers
    while True:
        some, i = False, 0
        while not some:  # only the segment's own patterns: a pass over all for each segment would take 4^parents
            some = patterns[base + part + i]["influence"] != 0.0
            i = (i - rest) & rest
            if i == 0:
                break
        if some:
            for j in range(size):
                folded[j] = patterns[base + j]["influence"] if (j & context) == part else 0.0
            fold(nodes[v], folded, along, size)
            total += max(line_variance(nodes, pairs, line, along), 0.0)
        part, line = (part - context) & context, line + 1
        if part == 0:
            return total


@inlined
def fold(node: Any, folded: Any, along: Any, size: int) -> None:
    """along = sum over patterns of folded(pattern) times its row of parents: they are summed out one after another."""
    for j in range(node["constant"], node["width"]):
        size //= 2
        total = 0.0
        for i in range(size):
            total += folded[2 * i + 1]
            folded[i] = folded[2 * i] + folded[2 * i + 1]
        along[j] = total
    if node["constant"]:
        along[0] = folded[0]
