"""The best action of a model drawn from what is believed (Thompson's rule): E[Y | do(S)] under a sample of every node.

z: standard normal numbers, from the round's uniform ones.  A: the covariance of a node's weights, A = L L'.
straight   theta + L z, and of it theta . v for each pattern v
curved     f((theta + L z) . v)
own lines  like straight, with the same z in every segment: a round is in one of them
table      Beta(a, b) for each pattern; a: 1.5 for each of its rows with a 1, and the imagined ones; b: the same of 0.
           If a row counted once, what looks bad would be tried for longer than pays
A line or a curve that is drawn beyond 0 or 1 is held off them by a little, less for patterns seen more often, so that
of patterns drawn as sure the one that was seen to be is played.
Where a node is a mixture, one member is drawn by its weight, and speaks for the node in this round. The plain index, of
intervals and of what looks best, is that of the evaluator inside.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.cholesky import factorise
from dobandit.estimation.mixture import BACK, CURVED, EVEN, OWN_LINES, TABLE, context_bits, within
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import offsets
from dobandit.kernels import inlined, kernel, record
from dobandit.model.link_kernels import value_at
from dobandit.oracle.action_list import ActionList
from dobandit.oracle.exact_pass import exact_index, score_exactly
from dobandit.oracle.mean_field import fill_nodes, mean_field_index, score_means
from dobandit.oracle.node_tables import fill_tables

_MOST_DRAWN = 64  # patterns per node with numbers of their own: those beyond share them
_TINY = 1e-12
_BOLD = 1.5  # rows that a row of a table counts as
_OFF = 1e-3  # how far draws are held off 0 and 1 where no row was seen
_HALF = 2.0**26  # of a uniform number's digits
# Of a table: where a node's numbers begin among the round's, and how many there are; the first draws the member.
ROOM = record(first="i8", count="i8")


class Sampled(NamedTuple):
    """The plan of an evaluator: one with a joint bonus, and room for a sample."""

    actions: ActionList
    joint: Any  # ExactPass or MeanField
    rooms: NDArray[Any]  # (tables,) ROOM
    factor: NDArray[np.float64]  # (D * D,) scratch: L
    line: NDArray[np.float64]  # (D,) scratch


def sampled(graph: CausalGraph, joint: Any) -> Sampled:
    """The plan around another."""
    tables = joint.tables.tables
    sizes = np.diff(graph.arrays.parent_ptr)[tables["node"]]
    rooms = np.zeros(len(sizes), ROOM)
    rooms["count"] = 1 + np.maximum(sizes, 2 * np.minimum(tables["patterns"], _MOST_DRAWN))
    rooms["first"] = 1 + offsets(rooms["count"])[:-1]
    widest = max(int(sizes.max(initial=1)), 1)
    return Sampled(joint.actions, joint, rooms, np.zeros(widest * widest), np.zeros(widest))


def draws_of(plan: Sampled) -> int:
    """How many random numbers a round takes: one for ties, then those of every node."""
    return int(1 + plan.rooms["count"].sum())


@kernel
def normal(u: float) -> float:
    """The standard normal number at the quantile u (Acklam's approximation: nine digits)."""
    u = min(max(u, _TINY), 1.0 - _TINY)
    if 0.02425 <= u <= 0.97575:
        q = u - 0.5
        r = q * q
        top = ((-39.69683028665376 * r + 220.9460984245205) * r - 275.9285104469687) * r + 138.3577518672690
        top = (top * r - 30.66479806614716) * r + 2.506628277459239
        low = ((-54.47609879822406 * r + 161.5858368580409) * r - 155.6989798598866) * r + 66.80131188771972
        return q * top / ((low * r - 13.28068155288572) * r + 1.0)
    q = math.sqrt(-2.0 * math.log(min(u, 1.0 - u)))
    top = ((-0.007784894002430293 * q - 0.3223964580411365) * q - 2.400758277161838) * q - 2.549732539343734
    top = (top * q + 4.374664141464968) * q + 2.938163982698783
    low = ((0.007784695709041462 * q + 0.3224671290700398) * q + 2.445134137142996) * q + 3.754408661907416
    tail = top / (low * q + 1.0)
    return tail if u < 0.5 else -tail


@inlined
def draw_line(node: Any, slots: Any, pairs: Any, curved: bool, factor: Any, line: Any, draws: Any, first: int) -> None:
    """line = theta + L z, the weights of a line or a curve; theta itself where rounding has left A without a factor."""
    start, at, d = node["start"], node["square"], node["width"]
    for i in range(d * d):
        factor[i] = pairs[at + i]["covariance"] if curved else pairs[at + i]["inverse"]
    sound = factorise(factor, 0, d)
    for i in range(d):
        total = slots[start + i]["curve"] if curved else slots[start + i]["line"]
        if sound:
            for j in range(i + 1):
                total += factor[i * d + j] * normal(draws[first + j])
        line[i] = total


@inlined
def draw_gamma(shape: float, u: float) -> float:
    """A gamma number: that of shape + 1 by Wilson and Hilferty's cube, times a power that makes it one of `shape`. The
    upper half of u's digits makes the one, the lower half the other."""
    upper = math.floor(u * _HALF)
    above, lower = shape + 1.0, (u * _HALF - upper) + 0.5 / _HALF
    root = 1.0 - 1.0 / (9.0 * above) + normal((upper + 0.5) / _HALF) / (3.0 * math.sqrt(above))
    return above * max(root, 0.0) ** 3 * lower ** (1.0 / shape)


@inlined
def draw_beta(a: float, b: float, one: float, other: float) -> float:
    """A draw from Beta(a, b) by two uniform numbers."""
    ones, zeros = draw_gamma(a, one), draw_gamma(b, other)
    return ones / (ones + zeros) if ones + zeros > 0.0 else a / (a + b)


@inlined
def draw_share(cell: Any, p: float, one: float, other: float) -> float:
    """A draw from a cell's distribution, whose mean is p, by two uniform numbers."""
    rows, more = cell["seen"] + BACK + EVEN, _BOLD - 1.0
    ones, zeros = more * cell["total"], more * (cell["seen"] - cell["total"])
    return draw_beta(p * rows + ones, (1.0 - p) * rows + zeros, one, other)


@kernel
def draw_node(
    nodes: Any, slots: Any, pairs: Any, cells: Any, points: Any, members: Any, table: Any, mean: Any, patterns: Any,
    room: Any, factor: Any, line: Any, draws: Any,
) -> None:  # fmt: skip
    """Put a sample of every pattern of a node into `mean`; `line` is that of the weights, where it is a line."""
    v, base, end = table["node"], table["first"], table["first"] + table["patterns"]
    node, first, member, tabulated = nodes[v], room["first"], 0, False
    if len(members) > 0:
        member, left, tabulated = -1, draws[first], members[4 * v + TABLE]["there"] > 0
        for k in range(4):
            if members[4 * v + k]["there"] and (member < 0 or left >= 0.0):
                member = k
                left -= members[4 * v + k]["weight"]
    if member == TABLE:
        for cell in range(base, end):
            at = first + 1 + 2 * (cell - base) % (room["count"] - 1)
            own = cells[node["cell"] + cell - base]
            mean[cell] = draw_share(own, patterns[cell]["table"], draws[at], draws[at + 1])
        return
    context = context_bits(nodes, slots, v) if member == OWN_LINES else 0
    rest, part, segment = (end - base - 1) & ~context, 0, node["segments"]  # part: the context's bits of a pattern
    while True:  # the only line, or that of each segment
        drawn = nodes[segment] if member == OWN_LINES else node
        draw_line(drawn, slots, pairs, member == CURVED, factor, line, draws, first + 1)
        i = 0
        while end > base:
            x = line_at(node, line, part + i)
            p = value_at(node, points, x) if member == CURVED else x
            seen = cells[node["cell"] + part + i]["seen"] if tabulated else 0.0
            mean[base + part + i] = within(p, _OFF / (seen + 1.0) if tabulated else 0.0)
            i = (i - rest) & rest
            if i == 0:
                break
        part, segment = (part - context) & context, segment + 1
        if part == 0:
            return


@inlined
def line_at(node: Any, line: Any, pattern: int) -> float:
    """The drawn line at a pattern of a node's parents."""
    constant = node["constant"]
    x = line[0] if constant else 0.0
    for j in range(constant, node["width"]):
        if (pattern >> (j - constant)) & 1:
            x += line[j]
    return x


@kernel
def draw_nodes(belief: Any, tables: Any, rooms: Any, factor: Any, line: Any, draws: Any, lines: Any) -> None:
    """A sample of every node; lines: by slot, where the weights of nodes without a table go."""
    nodes, slots, pairs, points, members = belief.nodes, belief.slots, belief.pairs, belief.points, belief.members
    mean, patterns, cells = tables.mean, tables.patterns, belief.cells
    for i in range(len(rooms)):
        table = tables.tables[i]
        node = nodes[table["node"]]
        if node["width"] > 0:
            room = rooms[i]
            draw_node(nodes, slots, pairs, cells, points, members, table, mean, patterns, room, factor, line, draws)
            if table["patterns"] == 0:
                for j in range(node["width"]):
                    lines[node["start"] + j]["line"] = line[j]


@kernel
def sampled_index(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    """E[Y] of every action under a drawn model, exactly; without optimism, the index of the evaluator inside."""
    joint = plan.joint
    if reach[joint.actions.order[len(joint.actions.order) - 1]] <= 0.0:
        exact_index(belief, joint, fixed, reach, draws)
        return
    fill_tables(belief, joint.tables)
    draw_nodes(belief, joint.tables, plan.rooms, plan.factor, plan.line, draws, belief.slots)
    score_exactly(belief, joint, fixed, 0.0)


@kernel
def sampled_field_index(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    """The same with nodes as if independent, for wide graphs and straight lines."""
    joint = plan.joint
    if reach[joint.actions.order[len(joint.actions.order) - 1]] <= 0.0:
        mean_field_index(belief, joint, fixed, reach, draws)
        return
    fill_nodes(belief, joint)
    draw_nodes(belief, joint.tables, plan.rooms, plan.factor, plan.line, draws, joint.weights)
    score_means(belief, joint, fixed, 0.0)
