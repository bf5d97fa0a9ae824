"""What a mixture says of every parent pattern of every node, and how sure it is of a sum over patterns.

D(v): how much E[Y] moves with p_X(v), in a column for each action.  p: the mixture's mean; p_k: member k's.
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
from dobandit.oracle.frontier import patterns_in

_LITTLE = 1e-6  # members with less weight are passed over
AT_LEAST = 0.5  # weight of the table in a variance, where a node has one
# What each member says of a pattern; f' of the curve; Var p of the table.
PATTERN = record(straight="f8", curved="f8", table="f8", own="f8", slope="f8", spread="f8")


class NodeTables(NamedTuple):
    """Numbers by pattern; those of a node begin where `tables` says. Bit j: the j-th parent that is not the constant.
    D: the most parents of a node, the constant counted."""

    tables: NDArray[Any]  # TABLE

    mean: NDArray[np.float64]  # p
    patterns: NDArray[Any]  # PATTERN
    row: NDArray[np.float64]  # (D,) scratch
    influence: NDArray[np.float64]  # (patterns of the widest node, columns) D of one node
    along: NDArray[np.float64]  # (D, columns) scratch: g
    sums: NDArray[np.float64]  # (3, columns) b_k and q_k of a member; the share of a node in the variance


def node_tables(tables: NDArray[Any], widest: int, columns: int = 1) -> NodeTables:
    """Tables for nodes with at most `widest` parents, and for so many actions at once."""
    count, widest = patterns_in(tables), max(widest, 1)
    influence = np.zeros((int(tables["patterns"].max(initial=1)), columns))
    mean, patterns, row = np.zeros(count), np.zeros(count, PATTERN), np.zeros(widest)
    return NodeTables(tables, mean, patterns, row, influence, np.zeros((widest, columns)), np.zeros((3, columns)))


@kernel
def fill_tables(belief: Any, tables: Any) -> None:
    """What the members say of every pattern of every node."""
    nodes, slots, pairs, cells = belief.nodes, belief.slots, belief.pairs, belief.cells
    bits, points, members = belief.bits, belief.points, belief.members
    mean, patterns, row = tables.mean, tables.patterns, tables.row
    for i in range(len(tables.tables)):
        v, base = tables.tables[i]["node"], tables.tables[i]["first"]
        node = nodes[v]
        for k in range(tables.tables[i]["patterns"]):
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


@kernel
def node_variances(
    nodes: Any, slots: Any, pairs: Any, members: Any, mean: Any, patterns: Any, influence: Any, along: Any, sums: Any,
    v: int, base: int, count: int, first: int,
) -> None:  # fmt: skip
    """sums[2] = the share of a free node in the variance of E[Y], by column; its table begins at `base`, its influences
    at row `first`."""
    columns = sums.shape[1]
    for c in range(columns):
        sums[2, c] = 0.0
    for k in range(4):
        share = members[4 * v + k]["weight"]
        if members[4 * v + TABLE]["there"]:
            share = (1.0 - AT_LEAST) * share + (AT_LEAST if k == TABLE else 0.0)
        if share < _LITTLE:
            continue
        for c in range(columns):
            sums[0, c] = sums[1, c] = 0.0
        for i in range(count):
            pattern = patterns[base + i]
            apart = said_by(pattern, k) - mean[base + i]
            spread = pattern["spread"] if k == TABLE else 0.0
            for c in range(columns):
                d = influence[first + i, c]
                sums[0, c] += d * apart
                sums[1, c] += d * d * spread
        if k != TABLE:
            add_lines(nodes, slots, pairs, patterns, influence, along, sums, v, base, first, count, k)
        for c in range(columns):
            sums[2, c] += share * (max(sums[1, c], 0.0) + sums[0, c] * sums[0, c])


@inlined
def said_by(pattern: Any, k: int) -> float:
    """What member k says of a pattern."""
    if k == STRAIGHT:
        return pattern["straight"]
    if k == CURVED:
        return pattern["curved"]
    return pattern["table"] if k == TABLE else pattern["own"]


@kernel
def add_lines(
    nodes: Any, slots: Any, pairs: Any, patterns: Any, influence: Any, along: Any, sums: Any, v: int, base: int,
    first: int, count: int, k: int,
) -> None:  # fmt: skip
    """Add g' A g of a straight line or a curve to sums[1], or the sum of g' A g over the lines of segments, of which
    one matters where the context is known."""
    node, d, columns = nodes[v], nodes[v]["width"], sums.shape[1]
    context = context_bits(nodes, slots, v) if k == OWN_LINES else 0
    line, rest = node["segments"] if k == OWN_LINES else v, (count - 1) & ~context
    part = 0  # the context's bits of a pattern; segments come in the order of their numbers
    while True:
        for j in range(d):
            for c in range(columns):
                along[j, c] = 0.0
        i, some = 0, k != OWN_LINES
        while True:  # only the segment's own patterns: a pass over all for each segment would take 4^parents
            slope = patterns[base + part + i]["slope"] if k == CURVED else 1.0
            for c in range(0 if some else columns):
                some = some or influence[first + part + i, c] != 0.0
            for j in range(d):
                if j < node["constant"] or ((part + i) >> (j - node["constant"])) & 1:
                    for c in range(columns):
                        along[j, c] += slope * influence[first + part + i, c]
            i = (i - rest) & rest
            if i == 0:
                break
        at = nodes[line]["square"]
        for i in range(d if some else 0):
            for j in range(d):
                pair = pairs[at + i * d + j]
                a = pair["covariance"] if k == CURVED else pair["inverse"]
                for c in range(columns):
                    sums[1, c] += along[i, c] * a * along[j, c]
        part, line = (part - context) & context, line + 1
        if part == 0:
            return
